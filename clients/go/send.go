package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// request is a call of the API. Fields that are zero are not sent.
type request struct {
	method      string
	path        string // the path with escaped segments
	query       url.Values
	data        any // sent as {"data": data}; nil: no body
	token       Secret
	ifMatch     Tag
	idempotency string
	reference   string
	serverID    string
	accept      string
	repeatable  bool // a retry does no harm, even if the registry has already carried out the first try
	once        bool // the request is never retried
	redirected  bool // a 302 is a valid answer; the client does not follow it
}

// answer is a response that was read to its end, with a status below 400.
type answer struct {
	header http.Header
	text   []byte
}

// path returns the path of the API with the given segments. It escapes the segments.
func path(segments ...string) string {
	var joined strings.Builder
	joined.WriteString(prefix)
	for _, s := range segments {
		joined.WriteString("/" + url.PathEscape(s))
	}
	return joined.String()
}

// read returns a request that reads.
func read(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query, repeatable: true}
}

// write returns a request that changes an asset.
func write(method, path string, data any, w Write) request {
	guarded := w.IfMatch != "" && w.IfMatch != AnyTag
	return request{method: method, path: path, data: data, token: w.Token, ifMatch: w.IfMatch, repeatable: guarded}
}

// envelope is the body of an answer.
type envelope[T any] struct {
	Data   T      `json:"data"`
	Access Access `json:"access"`
	Next   link   `json:"next_page"`
	Prev   *link  `json:"prev_page"`
	header http.Header
}

type link struct {
	Offset Timestamp `json:"offset"`
}

// call sends a request, with retries, and decodes the answer.
func call[T any](ctx context.Context, c *Client, r request) (envelope[T], error) {
	got, err := c.send(ctx, r)
	if err != nil {
		return envelope[T]{}, err
	}
	var parts struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(got.text, &parts); err == nil && (parts.Data == nil || string(parts.Data) == "null") {
		return envelope[T]{}, fmt.Errorf("%s %s: %w: it has no data", r.method, r.path, errNotOurs)
	}
	return open[T](r, got)
}

// open decodes the body of an answer.
func open[T any](r request, got answer) (envelope[T], error) {
	var body envelope[T]
	body.header = got.header
	return body, got.into(&body, r)
}

// into decodes the whole body of an answer.
func (a answer) into(v any, r request) error {
	if err := json.Unmarshal(a.text, v); err != nil {
		return fmt.Errorf("%s %s: %w: %w", r.method, r.path, errNotOurs, err)
	}
	return nil
}

// fetch sends a request, with retries, and decodes the whole body of the answer.
func fetch[T any](ctx context.Context, c *Client, r request) (v T, err error) {
	got, err := c.send(ctx, r)
	if err == nil {
		err = got.into(&v, r)
	}
	return v, err
}

// dataOf sends a request, with retries, and returns the data of the answer.
func dataOf[T any](ctx context.Context, c *Client, r request) (T, error) {
	body, err := call[T](ctx, c, r)
	return body.Data, err
}

// The function `one` sends a request whose answer is an object with a tag.
func one[T any, P tagged[T]](ctx context.Context, c *Client, r request) (T, error) {
	body, err := call[T](ctx, c, r)
	P(&body.Data).setTagged(taggedBy(r, body.header))
	return body.Data, err
}

// send sends a request, with retries. An answer with an error status is an *Error.
func (c *Client) send(ctx context.Context, r request) (answer, error) {
	var body []byte
	if r.data != nil {
		var err error
		if body, err = json.Marshal(map[string]any{"data": r.data}); err != nil {
			return answer{}, fmt.Errorf("%s %s: encode the request: %w", r.method, r.path, err)
		}
	}
	if r.idempotency == "" && r.method == http.MethodPost && r.path == assetsPath {
		r.idempotency = rand.Text()
	}
	tries := c.retry.start()
	for uncertain := false; ; {
		got, err := c.try(ctx, r, body)
		if err == nil || ctx.Err() != nil {
			return got, err
		}
		if refusal, ok := errors.AsType[*Error](err); ok {
			refusal.Uncertain = uncertain
		}
		end := endOf(err)
		uncertain = uncertain || end == unknown && r.method != http.MethodGet
		if r.once || end == final || end == unknown && !r.repeatable || !tries.pause(ctx, err) {
			return got, err
		}
	}
}

// try sends a request once.
func (c *Client) try(ctx context.Context, r request, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	resp, err := c.do(ctx, r, body)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	return readAnswer(r, resp)
}

// readAnswer reads an answer to its end. An answer with an error status is an *Error.
func readAnswer(r request, resp *http.Response) (answer, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("%s %s: the answer ended early: %w", r.method, r.path, err)
	case len(text) > maxAnswer:
		return answer{}, fmt.Errorf("%s %s: %w", r.method, r.path, errTooLarge)
	case resp.StatusCode >= 300 && (resp.StatusCode != http.StatusFound || !r.redirected):
		return answer{}, newError(r, resp, text)
	case resp.StatusCode != http.StatusFound && !isOurs(r, resp):
		return answer{}, fmt.Errorf("%s %s: %w: %s with the type %.80q", r.method, r.path, errNotOurs, resp.Status,
			resp.Header.Get("Content-Type"))
	}
	return answer{resp.Header, text}, nil
}

// isOurs reports whether an answer has a status of success that a registry gives to such a request, and is JSON. A page
// of a proxy is no success: a caller would take a write for done.
func isOurs(r request, resp *http.Response) bool {
	switch {
	case resp.StatusCode == http.StatusNoContent && r.method == http.MethodDelete:
		return true
	case resp.StatusCode != http.StatusOK && (resp.StatusCode != http.StatusCreated || r.method != http.MethodPost):
		return false
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

var errNotOurs = errors.New("the answer is not the registry's")

var errTooLarge = fmt.Errorf("the answer has more than %d bytes", maxAnswer)

// do sends a request once, after the functions `adapt` have changed it. A path with an empty id is an error.
func (c *Client) do(
	ctx context.Context, r request, body []byte, adapt ...func(*http.Request),
) (*http.Response, error) {
	if _, steps, _ := strings.Cut(r.path, "/"); steps != "" {
		if err := checkIDs(strings.Split(steps, "/")...); err != nil {
			return nil, err
		}
	}
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.authorize(req)
	if r.serverID != "" {
		req.AddCookie(&http.Cookie{Name: serverCookie, Value: r.serverID})
	}
	for name, value := range map[string]string{
		"X-Access-Token": string(r.token), "If-Match": string(r.ifMatch), "Idempotency-Key": r.idempotency,
		"Registry-Reference": r.reference, "User-Agent": c.userAgent, "Accept": r.accept,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	for _, change := range adapt {
		change(req)
	}
	return c.http.Do(req)
}
