// Package logclient reads public logs over HTTP, and asks witnesses for
// cosignatures (docs/log.md).
package logclient

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/shared/httpclient"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

const (
	attempts = 4
	pause    = 250 * time.Millisecond // pause before the second attempt; it doubles before each further attempt
	longest  = 10 * time.Second       // the longest pause that a server may ask for
	onePart  = 30 * time.Second       // the time limit of one request with its answer
)

// Source is a log below an address. It implements translog.Source. Its methods may
// be called concurrently. A request that fails for a temporary reason is repeated up
// to three times.
type Source struct {
	prefix *url.URL
	client *http.Client
}

var _ translog.Source = (*Source)(nil)

// NewSource returns the log below a prefix, such as "https://registry.example/log".
// A nil transport is http.DefaultTransport.
func NewSource(prefix string, transport http.RoundTripper) (*Source, error) {
	address, err := address(prefix)
	if err != nil {
		return nil, err
	}
	client := httpclient.New(transport)
	client.Timeout = onePart
	return &Source{address, client}, nil
}

// address parses the address of a log or a witness.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%.80q is not an address with http or https", text)
	}
	return u, nil
}

// ReadCheckpoint returns the newest signed checkpoint.
func (s *Source) ReadCheckpoint(ctx context.Context) ([]byte, error) {
	return s.read(ctx, "checkpoint", translog.MaxCheckpoint)
}

// ReadPart returns a tile or an entry bundle. It returns an error with the cause
// fs.ErrNotExist if the log does not have it.
func (s *Source) ReadPart(ctx context.Context, tile translog.Tile) ([]byte, error) {
	return s.read(ctx, tile.Path(), translog.MaxBundle)
}

// read reads the data at a path. The argument `limit` is the largest number of bytes.
func (s *Source) read(ctx context.Context, path string, limit int64) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		data, after, err := s.readOnce(ctx, path, limit)
		if err == nil || after < 0 || attempt == attempts {
			return data, err
		}
		if !sleep.For(ctx, min(max(after, pause<<(attempt-1)), longest)) {
			return nil, ctx.Err()
		}
	}
}

// readOnce sends one request. If it returns an error, the result `after` says whether to repeat the request: a
// negative value means no; any other value is the pause that the server asks for, or 0.
func (s *Source) readOnce(ctx context.Context, path string, limit int64) (data []byte, after time.Duration, err error) {
	target := s.prefix.JoinPath(path).String()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, -1, err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = answer.Body.Close() }() // an error of Close does not matter after reading
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound:
		return nil, -1, fmt.Errorf("%s: %w", target, fs.ErrNotExist)
	case code == http.StatusTooManyRequests || code >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // 0 without this header
		return nil, time.Duration(min(max(seconds, 0), 60)) * time.Second, fmt.Errorf("%s: status %d", target, code)
	case code != http.StatusOK:
		return nil, -1, fmt.Errorf("%s: status %d", target, code)
	}
	data, err = io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", target, err)
	}
	if int64(len(data)) > limit {
		return nil, -1, fmt.Errorf("%s: more than %d bytes", target, limit)
	}
	return data, 0, nil
}
