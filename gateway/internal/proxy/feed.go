package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/follow"
	"asset-registry/shared/httpserver"
)

const pageWithin = 10 * time.Second // the answer with a page must begin within this time

func (u *Upstream) Page(ctx context.Context, s stream.Selection, offset string, limit int) (io.ReadCloser, error) {
	query := feedQuery(s)
	query.Set("limit", strconv.Itoa(limit))
	if offset != "" {
		query.Set("offset", offset)
	}
	body, err := u.feed(ctx, follow.PagePath(s.Version), query, pageWithin)
	if err != nil {
		return nil, err
	}
	body.timer.Reset(httpserver.DefaultPace.All)
	return body, nil
}

func (u *Upstream) Live(ctx context.Context, s stream.Selection) (io.ReadCloser, error) {
	body, err := u.feed(ctx, follow.LivePath(s.Version), feedQuery(s), silence)
	if err != nil {
		return nil, err
	}
	body.renew = silence
	return body, nil
}

// feed asks the asset service for a part of the feed. The argument "within" is the longest time until the answer
// begins. After this time, the timer in the returned body ends the request.
func (u *Upstream) feed(ctx context.Context, path string, query url.Values, within time.Duration) (*feedBody, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body := &feedBody{cancel: cancel, timer: time.AfterFunc(within, func() { cancel(errSilent) })}
	resp, err := u.send(ctx, u.streams, http.MethodGet, &url.URL{Path: path, RawQuery: query.Encode()})
	if err != nil {
		body.end()
		return nil, err
	}
	body.ReadCloser = resp.Body
	if resp.StatusCode != http.StatusOK {
		defer body.Close()
		return nil, refusal(resp)
	}
	return body, nil
}

func feedQuery(s stream.Selection) url.Values {
	query := url.Values{}
	if s.Mode != "" {
		query.Set("mode", s.Mode)
	}
	if s.Fields != "" {
		query.Set("opt_fields", s.Fields)
	}
	return query
}

// refusal returns the fault in an answer of the asset service.
func refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized {
		return unavailable(errSignature)
	}
	return faulthttp.Read(resp)
}

// feedBody is the body of an answer. The request ends when the body is closed, or when its timer expires.
type feedBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	timer  *time.Timer
	renew  time.Duration // each Read may take this time; 0: the timer is for the whole body
}

func (b *feedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.renew > 0 && n > 0 {
		b.timer.Reset(b.renew)
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read the feed: %w", err)
	}
	return n, err
}

func (b *feedBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// end ends the request.
func (b *feedBody) end() {
	b.timer.Stop()
	b.cancel(nil)
}
