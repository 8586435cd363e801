package stream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/follow"
	"asset-registry/shared/testing/expect"
)

func TestFormatOf(t *testing.T) {
	for _, c := range []struct {
		accept string
		want   Format
	}{
		{"", None},
		{"*/*", None},
		{"application/json", None},
		{"text/event-stream", Events},
		{"text/event-stream, */*;q=0.1", Events},
		{"Text/Event-Stream; charset=utf-8", Events},
		{"application/x-ndjson", Lines},
		{"application/x-ndjson, text/event-stream", Lines},
		{"application/json, text/event-stream", None},
		{"text/event-stream;q=0", None},
		{"text/event-stream;q=0.0, application/x-ndjson", Lines},
		{"text/*", None},
		{";;, text/event-stream", Events},
	} {
		expect.Equal(t, FormatOf(c.accept), c.want, "%q", c.accept)
	}
}

func TestFormats(t *testing.T) {
	const offset, data = "2026-11-20T12:00:00.000007+00:00", `{"id":"a","title":"x: y"}`
	e := event(offset, []byte(data))
	got := map[string]string{
		"event": string(Events.entry(e)), "line": string(Lines.entry(e)),
		"event in parts":    Events.entryHead(offset) + data + Events.entryEnd(),
		"line in parts":     Lines.entryHead(offset) + data + Lines.entryEnd(),
		"event of bookmark": Events.bookmark(offset), "line of bookmark": Lines.bookmark(offset),
		"event of retry": Events.retry(1500 * time.Millisecond), "line of retry": Lines.retry(time.Second),
		"event of heartbeat": Events.heartbeat(), "line of heartbeat": Lines.heartbeat(),
	}
	wantEvent := "id: " + offset + "\ndata: " + data + "\n\n"
	want := map[string]string{
		"event": wantEvent, "line": data + "\n", "event in parts": wantEvent, "line in parts": data + "\n",
		"event of bookmark": "event: bookmark\nid: " + offset + "\ndata: {\"offset\":\"" + offset + "\"}\n\n",
		"line of bookmark":  `{"bookmark":{"offset":"` + offset + "\"}}\n",
		"event of retry":    "retry: 1500\n\n", "line of retry": "",
		"event of heartbeat": ":\n\n", "line of heartbeat": "\n",
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the texts")
}

// fixed is a feed with one entry, at position 10. Its live feeds send what the test writes to them.
type fixed struct {
	live  chan *io.PipeWriter
	pages chan string // the offsets for which pages were asked
	err   error       // error of Page
}

var farOffset = offsetOf(1 << 52) // an offset that nobody can have handed out

func newFixed() *fixed {
	return &fixed{live: make(chan *io.PipeWriter, 100), pages: make(chan string, 1000)}
}

func (f *fixed) Page(_ context.Context, _ Selection, offset string, _ int) (io.ReadCloser, error) {
	f.pages <- offset
	if f.err != nil {
		return nil, f.err
	}
	after := positionOf(offset)
	body := follow.AppendBookmark(nil, after, offsetText(after))
	if offset == farOffset {
		body = follow.AppendGap(nil, 20, offsetText(20))
	}
	if after < 10 {
		body = follow.AppendEntry(body, 10, offsetText(10), []byte(`{"id":"a"}`))
	}
	return io.NopCloser(strings.NewReader(string(follow.AppendBookmark(body, 20, offsetText(20))))), nil
}

func (f *fixed) Live(ctx context.Context, _ Selection) (io.ReadCloser, error) {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
	f.live <- w
	return r, nil
}

func newHubs(s Source) *Hubs {
	return NewHubs(s, Options{Memory: 1 << 20, Chosen: 2, Log: slog.New(slog.DiscardHandler)})
}

// inBubble runs a test with a simulated clock.
func inBubble(t *testing.T, test func(*testing.T, *fixed, *Hubs)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixed()
		hubs := newHubs(f)
		defer hubs.Close()
		test(t, f, hubs)
	})
}

func followerOf(t *testing.T, f *fixed, hubs *Hubs) *Follower {
	t.Helper()
	hub, leave, err := hubs.Join(Selection{})
	expect.OK(t, err)
	t.Cleanup(leave)
	return &Follower{Source: f, Hub: hub, Format: Events, Enter: func() bool { return true }, Leave: func() {}}
}

// recorder is an http.ResponseWriter whose client may stop reading.
type recorder struct {
	*httptest.ResponseRecorder
	stuck bool
}

func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

func (r *recorder) Write(p []byte) (int, error) {
	if r.stuck {
		return 0, os.ErrDeadlineExceeded
	}
	return r.ResponseRecorder.Write(p)
}

// openAndRun opens a follower and then runs it, as a gateway does.
func openAndRun(ctx context.Context, f *Follower, w http.ResponseWriter) error {
	if err := f.Open(ctx, w.Header()); err != nil {
		return err
	}
	return f.Run(ctx, w)
}

func newRecorder() *recorder { return &recorder{ResponseRecorder: httptest.NewRecorder()} }

// Promises: stream-retry
func TestAStreamFromItsStartToTheEndOfTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T, source *fixed, hubs *Hubs) {
		f, w, draining := followerOf(t, source, hubs), newRecorder(), make(chan struct{})
		f.Draining = draining
		ended := make(chan error, 1)
		go func() { ended <- openAndRun(t.Context(), f, w) }()
		live := <-source.live
		live.Write(follow.AppendBookmark(nil, 20, offsetText(20)))
		live.Write(follow.AppendEntry(nil, 30, offsetText(30), []byte(`{"id":"b"}`)))
		time.Sleep(heartbeat + time.Second) // time for a heartbeat
		live.Write(follow.AppendBookmark(nil, 40, offsetText(40)))
		time.Sleep(heartbeat) // time for a bookmark
		close(draining)
		expect.Try(t, <-ended)
		got, last, _ := strings.Cut(w.Body.String(), "40Z\"}\n\n")
		want := "retry: 1000\n\n" + string(event(offsetText(10), []byte(`{"id":"a"}`))) +
			string(event(offsetText(30), []byte(`{"id":"b"}`))) + ":\n\n" +
			strings.TrimSuffix(Events.bookmark(offsetText(40)), "40Z\"}\n\n")
		if diff := cmp.Diff(want, got); diff != "" || !strings.HasPrefix(last, "retry: ") {
			t.Errorf("got %q at the end; the stream differs (-want +got):\n%s", last, diff)
		}
		if got := w.Header(); got.Get("Content-Type") != "text/event-stream" || got.Get("Cache-Control") != "no-store" {
			t.Errorf("got the header %v, want an event stream that is not stored", got)
		}
	})
}

func TestAFaultBeforeTheStreamIsReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, source *fixed, hubs *Hubs) {
		source.err = errors.New("it is refused")
		f, w := followerOf(t, source, hubs), newRecorder()
		if err := f.Open(t.Context(), w.Header()); !errors.Is(err, source.err) || w.Body.Len() > 0 {
			t.Errorf("got %v and %q, want the error and no body", err, w.Body)
		}
		f.Enter = func() bool { return false }
		if err := f.Open(t.Context(), w.Header()); !IsCrowded(err) {
			t.Errorf("got %v, want that there are too many requests", err)
		}
	})
}

// TestPagesOfAStreamAreAdmittedOneByOne has a ring that never starts. So the follower must ask for pages. It must get
// a further page only while the function Again returns true.
func TestPagesOfAStreamAreAdmittedOneByOne(t *testing.T) {
	inBubble(t, func(t *testing.T, source *fixed, hubs *Hubs) {
		f, w := followerOf(t, source, hubs), newRecorder()
		var admits atomic.Bool
		f.Again = admits.Load
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- openAndRun(ctx, f, w) }()
		time.Sleep(time.Minute)
		expect.Equal(t, len(source.pages), 1, "before further pages are admitted: pages")
		admits.Store(true)
		time.Sleep(10 * pageAgain)
		if got := len(source.pages); got < 5 || got > 25 {
			t.Errorf("after ten seconds: got %d pages, want 5 to 25", got)
		}
		cancel()
		expect.Try(t, <-ended)
	})
}

func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, source *fixed, hubs *Hubs) {
		f, w := followerOf(t, source, hubs), newRecorder()
		ended := make(chan error, 1)
		go func() { ended <- openAndRun(t.Context(), f, w) }()
		live := <-source.live
		live.Write(follow.AppendBookmark(nil, 20, offsetText(20)))
		synctest.Wait()
		w.stuck = true
		live.Write(follow.AppendEntry(nil, 30, offsetText(30), []byte(`{"id":"b"}`)))
		expect.Err(t, <-ended, ErrSlow, "")
	})
}

// TestWait lets long polls wait. Each case says how long the wait must last, and how many pages the long poll must ask
// for.
// Promises: long-poll
func TestWait(t *testing.T) {
	for _, c := range []struct {
		name   string
		offset string
		then   func(live *io.PipeWriter) // what the live feed does during the wait; nil: nothing
		waited time.Duration
		pages  int
	}{
		{"a page with an entry", offsetOf(5), nil, 0, 1},
		{"no change", offsetOf(20), func(io *io.PipeWriter) {}, 30 * time.Second, 1},
		{"a change after three seconds", offsetOf(20), func(live *io.PipeWriter) {
			time.Sleep(3 * time.Second)
			live.Write(follow.AppendEntry(nil, 30, offsetText(30), []byte(`{}`)))
		}, 3 * time.Second, 1},
		{"a bookmark is no change", offsetOf(20), func(live *io.PipeWriter) {
			live.Write(follow.AppendBookmark(nil, 30, offsetText(30)))
		}, 30 * time.Second, 1},
		{"an offset that nobody can have handed out", farOffset, nil, 0, 1},
		{"an offset in the future", offsetOf(1 << 50), func(live *io.PipeWriter) {
			live.Write(follow.AppendEntry(nil, 30, offsetText(30), []byte(`{}`)))
		}, 30 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, source *fixed, hubs *Hubs) {
				f := followerOf(t, source, hubs)
				f.Offset = c.offset
				live := <-source.live
				live.Write(follow.AppendBookmark(nil, 20, offsetText(20)))
				synctest.Wait()
				if c.then != nil {
					go c.then(live)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				begun := time.Now()
				f.Wait(ctx)
				if got := time.Since(begun); got != c.waited || len(source.pages) != c.pages {
					t.Errorf("got %v and %d pages, want %v and %d", got, len(source.pages), c.waited, c.pages)
				}
			})
		})
	}
}

// Promises: stream-selections
func TestHubsAreBoundedAndEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, source *fixed, hubs *Hubs) {
		var leaves []func()
		for _, fields := range []string{"a", "b", "", "*"} {
			_, leave, err := hubs.Join(Selection{Fields: fields})
			expect.Must(t, err, "fields %q", fields)
			leaves = append(leaves, leave)
		}
		if _, _, err := hubs.Join(Selection{Fields: "c"}); !errors.Is(err, ErrTooMany) {
			t.Errorf("a third list of fields: got %v, want ErrTooMany", err)
		}
		leaves[0]()
		if _, leave, err := hubs.Join(Selection{Fields: "c"}); err != nil {
			t.Errorf("after the first has left: got %v, want no error", err)
		} else {
			leave()
		}
		leaves[1]()
		leaves[2]()
		time.Sleep(linger / 2)
		_, again, err := hubs.Join(Selection{Fields: "b"})
		expect.OK(t, err)
		time.Sleep(linger)
		if got := hubs.Selections(); got != 2 { // "b" and "*" are left
			t.Errorf("after the others were idle: got %d selections, want 2", got)
		}
		again()
		leaves[3]()
		time.Sleep(2 * linger)
		expect.Equal(t, hubs.Selections(), 0, "after all have left: selections")
	})
}
