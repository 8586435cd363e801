package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry.example/client"

	"asset-registry/shared/testing/expect"
)

// counting is a Store that counts its changes. Each takes a time, and a little more for each entry.
type counting struct {
	state   State
	each    time.Duration
	batches int
	entries int
	most    int           // bytes of the largest batch
	lag     time.Duration // the longest time between an entry's position and its storage
	first   time.Duration // the same of the first entry
}

func (c *counting) State() State                     { return c.state }
func (c *counting) Loaded() (map[string]bool, error) { return nil, nil }

func (c *counting) Apply(change Change) error {
	time.Sleep(c.each + c.each/15*time.Duration(len(change.Entries)))
	size := 0
	for _, e := range change.Entries {
		size += len(e.JSON)
		c.lag = max(c.lag, time.Since(time.UnixMicro(e.Position)))
	}
	c.state, c.most = change.State, max(c.most, size)
	if c.batches++; c.batches == 1 {
		c.first = c.lag
	}
	c.entries += len(change.Entries)
	return nil
}

// streaming is a transport to a registry whose stream has the texts that a reader returns.
type streaming struct{ body io.Reader }

func (s streaming) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {"text/event-stream"}, "Set-Cookie": {"SERVER_ID=first"}}
	return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(s.body), Request: r}, nil
}

// until is a reader that waits at its end until a context is done.
type until struct{ context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}

// message returns an entry as the stream of a gateway has it, with a bookmark behind it. size is about its length.
func message(n int, at time.Time, size int) string {
	stamp := at.UTC().Format("2006-01-02T15:04:05.000000-07:00")
	const form = "id: %s\ndata: {\"id\":%q,\"dateModified\":%q,\"x\":\"%s\"}\n\nid: %s\nevent: bookmark\ndata: {}\n\n"
	return fmt.Sprintf(form, stamp, idOf(n), stamp, strings.Repeat("x", size), stamp)
}

// steady is a reader of messages that come at 250 a second, whether they are read or not.
type steady struct {
	bytes.Buffer
	changes, sent int
	begun         time.Time
}

func (s *steady) Read(p []byte) (int, error) {
	due := func() time.Time { return s.begun.Add(time.Duration(s.sent+1) * time.Second / 250) }
	if s.Len() == 0 && s.sent < s.changes {
		time.Sleep(time.Until(due()))
	}
	for ; s.sent < s.changes && !due().After(time.Now()); s.sent++ {
		s.WriteString(message(s.sent, due(), 10))
	}
	return s.Buffer.Read(p)
}

// following stores the messages of a stream until the store has all of them.
func following(t *testing.T, to *counting, stream func(ctx context.Context) io.Reader, entries int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := client.New(client.Config{URL: "http://registry.example", Transport: streaming{stream(ctx)}})
	expect.OK(t, err)
	to.state = State{Complete: true, Position: client.Position{Offset: client.Timestamp(stampOf(1)), ServerID: "first"}}
	err = Follow(ctx, to, Source{Client: c, Address: "http://registry.example", Pause: time.Second}, func(Progress) {
		if to.entries == entries {
			cancel()
		}
	})
	expect.FatalIf(t, !errors.Is(err, context.Canceled) || to.entries != entries,
		"got %v after %d entries, want all %d stored", err, to.entries, entries)
}

// TestWaitingChangesAreStoredTogether lets 10,000 messages wait in a stream. They must take at most 20 batches, with a
// store of any speed, and no batch may be much larger than its bound.
// Promises: gathered
func TestWaitingChangesAreStoredTogether(t *testing.T) {
	const waiting = 10_000
	for _, size := range []int{1, 10 << 10} {
		for _, each := range []time.Duration{0, time.Second} {
			synctest.Test(t, func(t *testing.T) {
				first := time.Now().Add(-time.Minute)
				var messages []io.Reader
				for n := range waiting {
					messages = append(messages, strings.NewReader(message(n, first.Add(time.Duration(n)*time.Millisecond), size)))
				}
				to := &counting{each: each}
				following(t, to, func(ctx context.Context) io.Reader {
					return io.MultiReader(append(messages, until{ctx})...)
				}, waiting)
				if to.batches > 20 || to.most > mostGathered+8<<20 {
					t.Errorf("messages of %d bytes, %v a batch: got %d batches of up to %d bytes, want at most 20 of %d",
						size, each, to.batches, to.most, mostGathered)
				}
			})
		}
	}
}

// TestAFollowerKeepsUp lets 250 changes a second come, for 200 seconds, to a store that takes 9 ms for each batch. No
// change may be stored more than a second late, and the first one, after a quiet time, must not wait for others.
func TestAFollowerKeepsUp(t *testing.T) {
	const changes, each = 50_000, 9 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		to := &counting{each: each}
		following(t, to, func(ctx context.Context) io.Reader {
			return io.MultiReader(&steady{changes: changes, begun: time.Now()}, until{ctx})
		}, changes)
		if to.lag > time.Second || to.first > 2*each || to.batches > 200*5 {
			t.Errorf("got a lag of %v, first %v, and %d batches, want at most 1s, %v and %d", to.lag, to.first, to.batches,
				2*each, 200*5)
		}
	})
}
