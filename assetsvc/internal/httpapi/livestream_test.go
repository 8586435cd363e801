package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/follow"
	"asset-registry/shared/testing/expect"
)

// follower is the connection of a gateway that follows a ring.
type follower struct {
	*httptest.ResponseRecorder
	ring     *follow.Ring
	deadline time.Time
	wrong    []string      // faults of the stream
	held     chan struct{} // a write waits until this channel is closed; nil: a write does not wait
	writes   atomic.Value  // error of the next writes
	flushes  atomic.Value  // error of the next flushes

	mu   sync.Mutex // a timer can wake the stream at any time
	sent string     // flushed bytes that the method `took` has not returned yet
}

func (f *follower) SetWriteDeadline(at time.Time) error {
	f.deadline = at
	return nil
}

func (f *follower) Write(p []byte) (int, error) {
	if f.held != nil {
		<-f.held
	}
	if f.Body.Len() > 4<<20 {
		return 0, errors.New("the stream sends without end")
	}
	if err, ok := f.writes.Load().(error); ok {
		return 0, err
	}
	return f.ResponseRecorder.Write(p)
}

func (f *follower) FlushError() error {
	if left := time.Until(f.deadline); left <= 0 || left > liveWithin {
		f.wrong = append(f.wrong, "a message with the deadline in "+left.String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent += f.Body.String()
	f.Body.Reset()
	err, _ := f.flushes.Load().(error)
	return err
}

// followRing starts a stream of a ring. It returns the connection, and a channel that gets the result of the stream.
func followRing(ctx context.Context, most int, ending <-chan struct{}) (*follower, <-chan error) {
	f := &follower{ResponseRecorder: httptest.NewRecorder(), ring: follow.NewRing(most)}
	s := &liveStream{w: f, control: http.NewResponseController(f), ring: f.ring, ending: ending,
		print: func(int64) string { return "t" }}
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	return f, ended
}

// took returns the messages that the stream has sent since the last call, each as its position. An entry has a plus sign
// and a gap an exclamation mark.
func (f *follower) took() string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	var messages []string
	for line := range strings.Lines(f.sent) {
		position, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasSuffix(rest, "!\n"):
			position += "!"
		case strings.HasSuffix(rest, "}\n"):
			position += "+"
		}
		messages = append(messages, position)
	}
	f.sent = ""
	return strings.Join(messages, " ")
}

// entriesAt returns an entry of the given size, in bytes, for each position.
func entriesAt(size int, positions ...int64) (entries []*follow.Entry) {
	for _, p := range positions {
		data := []byte(`{"title":"` + strings.Repeat("x", size) + `"}`)
		entries = append(entries, &follow.Entry{Position: p, Data: follow.AppendEntry(nil, p, "t", data)})
	}
	return entries
}

// TestAStreamFollowsItsRing changes a ring step by step, and compares the messages of each step.
func TestAStreamFollowsItsRing(t *testing.T) {
	const ringSize = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		f, ended := followRing(ctx, ringSize, nil)
		for _, step := range []struct {
			name string
			do   func()
			want string
		}{
			{"before the ring starts", func() { time.Sleep(2 * liveBeat) }, ""},
			{"the beginning", func() { f.ring.Restart(10, "t") }, "10"},
			{"no change", func() { time.Sleep(liveBeat - 1) }, ""},
			{"a beat without a change", func() { time.Sleep(time.Nanosecond) }, "10"},
			{"a later position", func() { f.ring.Append(nil, 12, "t") }, "12"},
			{"a beat after it", func() { time.Sleep(liveBeat) }, "12"},
			{"entries", func() { f.ring.Append(entriesAt(10, 20, 21), 21, "") }, "20+ 21+"},
			{"more entries than a batch has", func() { f.ring.Append(entriesAt(200_000, 22, 23, 24), 24, "") }, "22+ 23+ 24+"},
			{"entries that displace sent ones", func() { f.ring.Append(entriesAt(400_000, 25), 25, "") }, "25+"},
			{"one more", func() { f.ring.Append(entriesAt(400_000, 26), 26, "") }, "26+"},
			{"one that displaces one of them", func() { f.ring.Append(entriesAt(400_000, 27), 27, "") }, "27+"},
			{"a gap while the gateway reads", func() {
				f.held = make(chan struct{})
				f.ring.Append(nil, 30, "t")
				synctest.Wait()
				f.ring.Restart(40, "t")
				f.ring.Append(entriesAt(10, 41), 41, "")
				close(f.held)
			}, "30 40! 41+"},
			{"a beat after entries", func() { time.Sleep(liveBeat) }, "41"},
		} {
			step.do()
			expect.Equal(t, f.took(), step.want, "%s", step.name)
		}
		leave()
		if err := <-ended; err != nil || len(f.wrong) > 0 {
			t.Errorf("got %v and %q at the end, want none", err, f.wrong)
		}
	})
}

// TestAStreamOfAnEmptyFeedBegins has a ring that starts at the position 0.
func TestAStreamOfAnEmptyFeedBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ending := make(chan struct{})
		f, ended := followRing(t.Context(), 1<<20, ending)
		f.ring.Restart(0, "t")
		expect.Equal(t, f.took(), "0", "")
		close(ending)
		if err := <-ended; err != nil {
			t.Errorf("got %v when the server ends, want no error", err)
		}
	})
}

// TestAStreamEndsWhenItsGatewayLeaves has a connection that fails at each kind of message.
func TestAStreamEndsWhenItsGatewayLeaves(t *testing.T) {
	gone := errors.New("the gateway has left")
	for _, c := range []struct {
		name string
		do   func(*follow.Ring)
	}{
		{"a bookmark", func(r *follow.Ring) { r.Append(nil, 11, "t") }},
		{"an entry", func(r *follow.Ring) { r.Append(entriesAt(10, 11), 11, "") }},
		{"a gap", func(r *follow.Ring) { r.Restart(11, "t") }},
		{"a beat", func(*follow.Ring) { time.Sleep(liveBeat) }},
	} {
		for _, flushes := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				f, ended := followRing(ctx, 1<<20, nil)
				f.ring.Restart(10, "t")
				synctest.Wait()
				if flushes {
					f.flushes.Store(gone)
				} else {
					f.writes.Store(gone)
				}
				c.do(f.ring)
				synctest.Wait()
				leave()
				expect.Err(t, <-ended, gone, "%s, with a flush that fails %t", c.name, flushes)
			})
		}
	}
}
