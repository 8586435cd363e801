package feed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// within is how long a test waits for a message or for the end of a stream.
const within = 30 * time.Second

// tail is a stream that a test reads to its end.
type tail struct {
	way      way
	text     bytes.Buffer // complete after a value was sent to the channel `err`
	messages chan message
	err      chan error
}

// openTail follows the feed from an offset in the given way, at one gateway.
func openTail(t *testing.T, edge *service, w way, offset string) *tail {
	t.Helper()
	h := &history{services: &services{edges: urls([]*service{edge})}}
	l := newLive(h, 0, taste{mode: "_all_"})
	l.from, l.passed = offset, []passing{{to: offset}}
	ctx, cancel := context.WithCancel(t.Context())
	resp := expect.Get(l.client.Do(l.request(ctx, w)))(t)
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close() // an error does not matter: the body was read to its end, or the test has failed
	})
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got %d, want 200", resp.StatusCode)
	}
	f := &tail{way: w, messages: make(chan message, 1000), err: make(chan error, 1)}
	go func() {
		f.err <- readStream(io.TeeReader(resp.Body, &f.text), w, func() {}, func(m message) bool {
			f.messages <- m
			return true
		})
	}()
	return f
}

// expect waits for the next message. It must be the entry at the wanted place.
func (f *tail) expect(t *testing.T, want place) {
	t.Helper()
	select {
	case m := <-f.messages:
		if got := (place{m.ID, m.DateModified}); got != want {
			t.Errorf("%s: got %v, want %v", f.way, m, want)
		}
	case <-time.After(within):
		t.Fatalf("%s: got no message, want %v", f.way, want)
	}
}

// finalRetry matches the message that ends an event stream.
var finalRetry = regexp.MustCompile(`\n\nretry: ([0-9]+)\n\n$`)

// expectEnd waits for the end of the stream, which must come between two messages. The last message of an event
// stream must say after how many milliseconds the client should reconnect.
func (f *tail) expectEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-f.err:
		if err != io.EOF {
			t.Errorf("%s: got %v, want the end of a whole answer", f.way, err)
		}
	case <-time.After(within):
		t.Fatalf("%s: got no end, want it", f.way)
	}
	if f.way != events {
		return
	}
	found := finalRetry.FindStringSubmatch(f.text.String())
	if found == nil {
		t.Fatalf("got the events %q, want retry: at their end", f.text.String())
	}
	if after, err := strconv.Atoi(found[1]); err != nil || after < 1000 || after > 5000 {
		t.Errorf("got retry: %s, want 1000 to 5000", found[1])
	}
}

// publishOne publishes an asset and returns its place in the feed.
func publishOne(t *testing.T, h *history) place {
	t.Helper()
	before := len(h.acks)
	for len(h.acks) == before && t.Context().Err() == nil {
		h.create(t.Context())
	}
	return h.acks[before].place
}

// TestAStoppedGatewayEndsItsStreams stops a gateway with SIGTERM. Its streams and long polls must end. Clients that
// continue at another gateway must miss nothing.
// Promises: stream-retry
func TestAStoppedGatewayEndsItsStreams(t *testing.T) {
	dir := t.TempDir()
	fleet := &fleet{bin: build(t), store: "file:" + filepath.Join(dir, "assets.db"), dir: dir}
	fleet.start(t, 1)
	h := newHistory(&services{bases: urls(fleet.services), signer: signer(t), client: client()}, load{})
	start := publishOne(t, h)
	first, second := fleet.edges[0], fleet.edges[1]
	both := []*tail{openTail(t, first, events, start.modified), openTail(t, first, lines, start.modified)}
	last := publishOne(t, h)
	for _, f := range both {
		f.expect(t, last)
	}
	polled := make(chan string, 1)
	go func() { polled <- poll(t.Context(), first, last.modified) }()
	time.Sleep(time.Second) // usually the poll waits by then; if not, the stop ends it as well
	stopped := make(chan error, 1)
	go func() { stopped <- first.process.Stop() }()
	for _, f := range both {
		f.expectEnd(t)
	}
	expect.Equal(t, <-polled, "200 OK", "long poll")
	next := publishOne(t, h)
	if err := <-stopped; err != nil {
		t.Errorf("got %v from the stopped gateway, want exit code 0", err)
	}
	for _, w := range []way{events, lines} {
		openTail(t, second, w, last.modified).expect(t, next)
	}
}

// poll sends a long poll, and returns the status or the error as text.
func poll(ctx context.Context, edge *service, offset string) string {
	h := &history{services: &services{edges: urls([]*service{edge})}}
	l := newLive(h, 0, taste{mode: "_all_"})
	l.from = offset
	req := l.request(ctx, pages)
	query := req.URL.Query()
	query.Set("wait", "60")
	req.URL.RawQuery = query.Encode()
	resp, err := l.client.Do(req)
	if err != nil {
		return fmt.Sprint(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Sprint(err)
	}
	return resp.Status
}

// TestStreamsOutliveAssetServices stops one of two asset services under load, and later kills the other one. The
// streams through the gateways must continue.
// Promises: ways
func TestStreamsOutliveAssetServices(t *testing.T) {
	_, fleet := newFleet(t)
	fleet.start(t, 2)
	services := &services{bases: urls(fleet.services), edges: urls(fleet.edges), signer: signer(t), client: client()}
	h := newHistory(services, load{writers: 8, changes: 200, assets: 50, live: []taste{
		{[]way{events}, "_all_", "", 0}, {[]way{lines}, "_all_", "*", 0}, {[]way{events}, "", "description", 0},
		{[]way{lines}, "", "", 0},
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	faulty, endFaults := context.WithCancel(ctx)
	defer endFaults()
	broken := make(chan error, 1)
	rounds := 0
	go func() {
		err := fleet.endInTurn(faulty, &rounds)
		if err != nil {
			cancel() // without services, the load would never end
		}
		broken <- err
	}()
	r := h.run(ctx, func() {
		endFaults()
		expect.Try(t, <-broken)
		time.Sleep(2*lease + time.Second) // wait until the batches of killed services are fenced
	})
	print("2", r, chaos{kills: rounds, stops: rounds})
	printLive(r)
	for _, example := range r.examples {
		t.Error(example)
	}
	for _, l := range h.lives {
		expect.Equal(t, l.connections, 1, "%v of mode %q: connections", l.ways, l.mode)
	}
	if rounds == 0 {
		t.Error("got no end of both asset services, want one")
	}
}

// endInTurn stops the first asset service and kills the second one, in turn, until ctx is done. It starts each
// service again, so all run when endInTurn returns. The counter `rounds` grows by 1 after each pair of a stop and a
// kill.
func (f *fleet) endInTurn(ctx context.Context, rounds *int) error {
	for ctx.Err() == nil {
		for i, s := range f.services {
			time.Sleep(2 * lease) // wait until the gateways know that the restarted service is back
			end := s.process.Stop
			if i > 0 {
				end = s.process.Kill
			}
			if err := f.restart(ctx, s, end); err != nil {
				return fmt.Errorf("asset service %d: %w", i, err)
			}
		}
		*rounds++
	}
	return nil
}
