package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// streams is a fake registry that answers each request with the next handler, and
// repeats the last one.
type streams struct {
	*httptest.Server
	mu   sync.Mutex
	sent []*http.Request
}

func newStreams(t *testing.T, handlers ...http.HandlerFunc) *streams {
	t.Helper()
	s := &streams{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		next := handlers[min(len(s.sent), len(handlers)-1)]
		s.sent = append(s.sent, r)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		next(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// offsets returns the offset of each request.
func (s *streams) offsets() (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.sent {
		found = append(found, r.URL.Query().Get("offset"))
	}
	return found
}

func (s *streams) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(Config{URL: s.URL, Retry: Retry{Tries: 2}})
	must(t, err)
	return c
}

// sends writes the parts of a stream one by one and ends it.
func sends(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Set-Cookie", "SERVER_ID=data; Path=/")
		for _, part := range append([]string{"retry: 1\n\n"}, parts...) {
			io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	}
}

// cuts writes the parts of a stream and breaks the connection.
func cuts(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sends(parts...)(w, r)
		panic(http.ErrAbortHandler)
	}
}

// waits writes the parts of a stream and leaves the stream open.
func waits(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sends(parts...)(w, r)
		<-r.Context().Done()
	}
}

func refuses(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func entry(offset string) string {
	return fmt.Sprintf("id: %s\ndata: {\"id\":\"a%[1]s\",\ndata: \"dateModified\":\"%[1]s\"}\n\n", offset)
}

func bookmark(offset string) string {
	return fmt.Sprintf("event: bookmark\nid: %s\ndata: {\"offset\":\"%[1]s\"}\n\n", offset)
}

// live follows a feed until it has received `count` assets and errors in all. It returns the ids of the assets, the
// text "offset SERVER_ID" of the last position, and the errors.
func live(t *testing.T, c *Client, feed Feed, count int) (got []string, last string, errs []error) {
	t.Helper()
	feed.Live = true
	for page, err := range c.Follow(t.Context(), feed, time.Millisecond) {
		if err != nil {
			errs = append(errs, err)
		} else {
			got, last = append(got, ids(page)...), string(page.Next.Offset)+" "+page.Next.ServerID
		}
		if len(got)+len(errs) >= count {
			break
		}
	}
	return got, last, errs
}

func TestAStreamGoesOnWhereItEnded(t *testing.T) {
	for _, c := range []struct {
		name    string
		first   http.HandlerFunc
		offsets []string
	}{
		{"it ends", sends(entry("1"), ":\n\n", entry("2")), []string{"", "2"}},
		{"it breaks off between messages", cuts(entry("1"), entry("2")), []string{"", "2"}},
		{"it breaks off inside a message", cuts(entry("1") + entry("2") + entry("3")[:20]), []string{"", "2"}},
		{"it ends inside a message", sends(entry("1"), entry("2"), entry("3")[:20]), []string{"", "2"}},
		{"a bookmark moves it on", sends(entry("1"), entry("2"), bookmark("25")), []string{"", "25"}},
		{"its lines end in CRLF", cuts(strings.ReplaceAll(entry("1")+entry("2"), "\n", "\r\n")), []string{"", "2"}},
		{"the retry is part of an entry", sends("retry: 1\n" + entry("1") + "retry: 1\n" + entry("2")), []string{"", "2"}},
		{"an unknown event", cuts(entry("1"), "event: x\nid: 9\ndata: 1\n\n", entry("2")), []string{"", "2"}},
		{"a busy registry", refuses(503, busyBody), []string{"", ""}},
		{"a limit", refuses(429, busyBody), []string{"", ""}},
		{"no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStreams(t, c.first, waits(entry("1"), entry("2"), entry("30")))
			want := []string{"a1", "a2", "a30"}
			if c.offsets[1] != "" {
				want = []string{"a1", "a2", "a1", "a2", "a30"} // the second stream sends a1 and a2 again
			}
			got, last, errs := live(t, s.client(t), Feed{}, len(want))
			errorIf(t, !slices.Equal(got, want) || last != "30 data" || len(errs) > 0,
				"got %q up to %q and errors %v, want %q up to 30 data", got, last, errs, want)
			if !slices.Equal(s.offsets(), c.offsets) {
				t.Errorf("got requests with offsets %q, want %q", s.offsets(), c.offsets)
			}
		})
	}
}

func TestAStreamIsAskedForWithTheFeed(t *testing.T) {
	s := newStreams(t, sends(entry("5")), waits(entry("6")))
	feed := Feed{Position: Position{Offset: "4", ServerID: "data"}, Mode: TestMode, Fields: []string{"*"}, Descending: true}
	live(t, s.client(t), feed, 2)
	for i, want := range []string{"mode=test&offset=4&opt_fields=%2A", "mode=test&offset=5&opt_fields=%2A"} {
		r := s.sent[i]
		if r.URL.RawQuery != want || r.Header.Get("Accept") != "text/event-stream" ||
			r.Header.Get("Cookie") != "SERVER_ID=data" {
			t.Errorf("request %d: got %s with %v, want %s for an event stream with the cookie", i, r.URL, r.Header, want)
		}
	}
}

func TestMessagesThatArriveTogetherMakeAPage(t *testing.T) {
	fourth := make(chan struct{})
	s := newStreams(t, func(w http.ResponseWriter, r *http.Request) {
		sends(entry("1")+entry("2")+entry("3")+bookmark("4")+entry("5")[:9])(w, r)
		<-fourth
		io.WriteString(w, entry("5")[9:])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	var sizes []int
	var positions []Timestamp
	for page, err := range s.client(t).Follow(t.Context(), Feed{Live: true, Limit: 2}, 0) {
		must(t, err)
		sizes, positions = append(sizes, len(page.Assets)), append(positions, page.Next.Offset)
		if page.Next.Offset == "4" {
			close(fourth)
		} else if page.Next.Offset == "5" {
			break
		}
	}
	if want := []Timestamp{"2", "4", "5"}; !slices.Equal(positions, want) || !slices.Equal(sizes, []int{2, 1, 1}) {
		t.Errorf("got pages of %v up to %v, want 2, 1, 1 up to %v", sizes, positions, want)
	}
}

func TestASilentStreamIsBegunAgain(t *testing.T) {
	s := newStreams(t, waits(entry("1")), waits(entry("2")))
	c := s.client(t)
	c.silence = 50 * time.Millisecond
	if got, _, errs := live(t, c, Feed{}, 2); !slices.Equal(got, []string{"a1", "a2"}) {
		t.Errorf("got %q, %v, want a1 and a2", got, errs)
	}
}

func TestEachByteEndsTheSilence(t *testing.T) {
	told := 0
	body := heard{io.NopCloser(iotest.OneByteReader(strings.NewReader(":\n\n"))), func() { told++ }}
	if _, err := io.ReadAll(body); err != nil || told != 3 {
		t.Errorf("got %d reads, %v, want 3", told, err)
	}
}

func TestAStreamStartsOver(t *testing.T) {
	s := newStreams(t, refuses(404, lostBody), waits(entry("1")))
	got, _, errs := live(t, s.client(t), Feed{Position: Position{Offset: "9", ServerID: "old"}}, 2)
	errorIf(t, len(errs) != 1 || !errors.Is(errs[0], ErrStartOver) || !slices.Equal(got, []string{"a1"}),
		"got %q and errors %v, want a1 after ErrStartOver", got, errs)
	if !slices.Equal(s.offsets(), []string{"9", ""}) || s.sent[1].Header.Get("Cookie") != "" {
		t.Errorf("got offsets %q, want 9 and none, the second without a cookie", s.offsets())
	}
}

func TestALastingFailureIsTold(t *testing.T) {
	isForeign := func(err error) bool { return errors.Is(err, errForeign) }
	for _, c := range []struct {
		name     string
		handler  http.HandlerFunc
		requests int // the number of requests before the error
		want     func(error) bool
	}{
		{"a refusal that repeats", refuses(400, busyBody), 1, IsInvalid},
		{"a busy registry", refuses(503, busyBody), 2, IsBusy},
		{"a stream without a message", sends(), 2, func(err error) bool { return errors.Is(err, errEnded) }},
		{"a message that is too long", sends("data: " + strings.Repeat("x", maxMessage)), 1,
			func(err error) bool { return errors.Is(err, errLongMessage) }},
		{"many long lines", sends(strings.Repeat("data: "+strings.Repeat("x", maxMessage/4)+"\n", 5)), 1,
			func(err error) bool { return errors.Is(err, errLongMessage) }},
		{"a message that is no asset", sends("id: 1\ndata: x\n\n"), 1, isForeign},
		{"a message without an offset", sends("data: {}\n\n"), 1, isForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStreams(t, c.handler)
			got, _, errs := live(t, s.client(t), Feed{}, 1)
			if len(got) > 0 || len(errs) != 1 || !c.want(errs[0]) || len(s.offsets()) != c.requests {
				t.Errorf("got %q, %v after %d requests, want one error after %d", got, errs, len(s.offsets()), c.requests)
			}
		})
	}
}

func TestARegistryWithoutStreamsIsFollowedByPages(t *testing.T) {
	answers := func(r reply) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, r.body)
		}
	}
	s := newStreams(t, answers(first), answers(second), answers(empty), waits(entry("4")))
	got, _, errs := live(t, s.client(t), Feed{}, 4)
	errorIf(t, !slices.Equal(got, []string{"a", "b", "c", "a4"}) || len(errs) > 0,
		"got %q, %v, want a, b, c, and a4 from a stream", got, errs)
	if !slices.Equal(s.offsets(), []string{"", "2", "3", "3"}) {
		t.Errorf("got offsets %q, want none, 2, 3, 3", s.offsets())
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	s := newStreams(t, waits(entry("1")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range s.client(t).Follow(ctx, Feed{Live: true}, time.Hour) {
		last = err
		cancel()
	}
	errorIf(t, !errors.Is(last, context.Canceled), "got %v, want context.Canceled", last)
}

func TestTheWaitBeforeANewStream(t *testing.T) {
	busy := func(after time.Duration) error { return &Error{Status: 503, RetryAfter: after} }
	for _, c := range []struct {
		name     string
		retry    time.Duration
		failures int
		err      error
		want     time.Duration
	}{
		{"the first failure", 0, 0, io.ErrUnexpectedEOF, firstPause},
		{"the third failure", 0, 2, io.ErrUnexpectedEOF, 4 * firstPause},
		{"many failures", 0, 1000, io.ErrUnexpectedEOF, longestPause},
		{"the registry's retry", 7 * time.Second, 0, io.ErrUnexpectedEOF, 7 * time.Second},
		{"Retry-After", 7 * time.Second, 0, busy(9 * time.Second), 9 * time.Second},
		{"a long Retry-After", 0, 0, busy(longestRetryAfter), longestFollow},
		{"the first start over", 7 * time.Second, 0, ErrStartOver, 0},
		{"the second start over", 0, 1, ErrStartOver, 2 * firstPause},
	} {
		f := follower{c: &Client{retry: Retry{}.orDefault()}, retry: c.retry, failures: c.failures,
			yield: func(Page, error) bool { return true }}
		if got := f.failed(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
