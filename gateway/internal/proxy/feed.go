package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
)

const (
	pageWithin  = 10 * time.Second // the answer with a page must begin
	liveSilence = 10 * time.Second // a live feed without a message for so long is dead
)

// errSilent is the cause if a live feed sends nothing.
var errSilent = errors.New("the asset service sends nothing")

// Page implements stream.Source.
func (u *Upstream) Page(ctx context.Context, s stream.Selection, offset string, limit int) (io.ReadCloser, error) {
	query := feedQuery(s)
	query.Set("limit", strconv.Itoa(limit))
	if offset != "" {
		query.Set("offset", offset)
	}
	began, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(pageWithin, func() { cancel(context.DeadlineExceeded) })
	resp, err := u.feed(began, s, "page", query)
	if err != nil || !timer.Stop() {
		cancel(err)
		return nil, unavailable(errors.Join(err, context.Cause(began)))
	}
	if resp.StatusCode != http.StatusOK {
		defer cancel(nil)
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return &feedBody{ReadCloser: resp.Body, cancel: cancel, within: httpserver.DefaultPace.All}, nil
}

// Live implements stream.Source.
func (u *Upstream) Live(ctx context.Context, s stream.Selection) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body := &feedBody{cancel: cancel, within: liveSilence, renew: true}
	body.start()
	resp, err := u.feed(ctx, s, "live", feedQuery(s))
	if err != nil {
		body.stop()
		return nil, errors.Join(err, context.Cause(ctx))
	}
	body.ReadCloser = resp.Body
	if resp.StatusCode != http.StatusOK {
		defer body.Close()
		return nil, refusal(resp)
	}
	return body, nil
}

// feed sends a request to the asset service's routes of the feed.
func (u *Upstream) feed(ctx context.Context, s stream.Selection, what string, query url.Values) (*http.Response, error) {
	to := &url.URL{Path: "/feed/" + s.Version + "/" + what, RawQuery: query.Encode()}
	return u.send(ctx, u.streams, http.MethodGet, to)
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

// refusal returns the fault that the asset service has answered.
func refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized {
		return unavailable(errSignature)
	}
	return faulthttp.Read(resp)
}

// feedBody is the body of an answer. It ends its request when it is closed, or when no
// byte came within a time.
type feedBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
	within time.Duration
	renew  bool // each Read may take the time again
	timer  *time.Timer
}

func (b *feedBody) start() { b.timer = time.AfterFunc(b.within, func() { b.cancel(errSilent) }) }

func (b *feedBody) stop() {
	b.timer.Stop()
	b.cancel(nil)
}

func (b *feedBody) Read(p []byte) (int, error) {
	if b.timer == nil {
		b.start()
	}
	n, err := b.ReadCloser.Read(p)
	if b.renew && n > 0 {
		b.timer.Reset(b.within)
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read the feed: %w", err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *feedBody) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
