package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/gateway/internal/stream"
	"asset-registry/shared/httpserver"
)

// dripping is an asset service whose answers never end. It sends a byte at each interval. If the field `begins` is
// false, no answer begins.
type dripping struct {
	every  time.Duration
	begins bool
}

func (d dripping) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if !d.begins {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	body, drops := io.Pipe()
	go func() {
		for {
			select {
			case <-ctx.Done():
				drops.CloseWithError(context.Cause(ctx))
				return
			case <-time.After(d.every):
				_, _ = drops.Write([]byte("x"))
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
}

// TestASilentFeedIsGivenUp reads the feed of an asset service that sends too slowly. The clock is simulated.
func TestASilentFeedIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  dripping
		page  bool // reads a page, not the live feed
		bytes int  // bytes that come before the reading ends
	}{
		{"a live feed that does not begin", dripping{}, false, 0},
		{"a live feed that sends nothing", dripping{time.Hour, true}, false, 0},
		{"a live feed that sends often enough", dripping{silence / 2, true}, false, 1000},
		{"a page that does not begin", dripping{}, true, 0},
		{"a page that does not end", dripping{7 * time.Second, true}, true, int(httpserver.DefaultPace.All / (7 * time.Second))},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			u, read := Remote(c.from, newSigner(t)), 0
			open := u.Live
			if c.page {
				open = func(ctx context.Context, s stream.Selection) (io.ReadCloser, error) { return u.Page(ctx, s, "", 10) }
			}
			body, err := open(ctx, stream.Selection{Version: "2.5"})
			for err == nil && read < 1000 {
				var n int
				n, err = body.Read(make([]byte, 1))
				read += n
			}
			if read != c.bytes || errors.Is(err, errSilent) != (read < 1000) {
				t.Errorf("%s: got %d bytes, %v; want %d bytes", c.name, read, err, c.bytes)
			}
			if body != nil {
				_ = body.Close()
			}
		})
	}
}

// unread is a connection whose client reads nothing. A write fails at its deadline, and a write without a deadline would
// never end.
type unread struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (u *unread) SetWriteDeadline(at time.Time) error {
	u.deadline = at
	return nil
}

var (
	errLate    = errors.New("the client read nothing until the deadline")
	errForever = errors.New("the write would never end")
)

func (u *unread) Write([]byte) (int, error) {
	if u.deadline.IsZero() {
		return 0, errForever
	}
	return 0, errLate
}

// TestALargeAnswerHasADeadline sends answers to a client that does not read. Only a small answer of known length
// needs no deadline of its own, because the deadline of the server covers it.
func TestALargeAnswerHasADeadline(t *testing.T) {
	u := upstreams(t, newSigner(t), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unknown" {
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(make([]byte, 2*httpserver.DefaultPace.Bytes))
	}))["remote"]
	for _, path := range []string{"/known", "/unknown"} {
		w := &unread{ResponseRecorder: httptest.NewRecorder()}
		err := u.Forward(w, httptest.NewRequest("GET", path, nil), Request{Path: path})
		if !errors.Is(err, ErrCut) || !errors.Is(err, errLate) {
			t.Errorf("an answer of %s length: got %v, want ErrCut because of the deadline", path[1:], err)
		}
	}
}

// TestAReadingHasABound reads answers that are longer than the caller takes.
func TestAReadingHasABound(t *testing.T) {
	for name, u := range upstreams(t, newSigner(t), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 100))
	})) {
		for most, want := range map[int64]bool{99: false, 100: true, 101: true} {
			if got, err := u.Read(t.Context(), "/", nil, most); (err == nil) != want || want && len(got) != 100 {
				t.Errorf("%s, at most %d bytes: got %d bytes, %v; want an answer: %t", name, most, len(got), err, want)
			}
		}
	}
}
