package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/follow"
	"asset-registry/shared/testing/expect"
)

// world is a registry whose feed grows, behind asset services that are late, break off, leave gaps and send
// large entries. Each guard is a thing that the answers promise. A test switches one guard off, and expects
// that followers then lose something.
type world struct {
	leftOut string // the guard that is switched off; "": none

	mu      sync.Mutex
	random  *rand.Rand
	history []change // all changes, in the order of positions
	changed chan struct{}
	ended   bool
	faults  int // number of faults so far
}

// mostFaults is the largest number of faults that a world makes; few runs have even 400. After the last fault, the
// world works without faults. So a hub that is not stuck reaches the end.
const mostFaults = 500

type change struct {
	position int64
	asset    int
}

// isWanted reports whether a selection shows an asset. Every tenth asset is a test asset.
func isWanted(s Selection, asset int) bool { return s.Mode != "test" || asset%10 == 0 }

func newWorld(seed uint64) *world {
	return &world{random: rand.New(rand.NewPCG(seed, seed)), changed: make(chan struct{})}
}

func (w *world) chance(one int) bool { return w.random.IntN(one) == 0 }

// fails decides whether an asset service fails now. On average, it returns true once in the given number of calls.
func (w *world) fails(random *rand.Rand, one int) bool {
	if w.faults == mostFaults || random.IntN(one) > 0 {
		return false
	}
	w.faults++
	return true
}

// grow makes changes. Most of them create new assets.
func (w *world) grow(changes int) {
	for i := range changes {
		w.mu.Lock()
		position := int64(100)
		if len(w.history) > 0 {
			position = w.history[len(w.history)-1].position + 1 + int64(w.random.IntN(3))
		}
		asset := i
		if w.chance(3) {
			asset = w.random.IntN(i + 1)
		}
		w.history = append(w.history, change{position, asset})
		close(w.changed)
		w.changed = make(chan struct{})
		pause := time.Duration(w.random.IntN(200)) * time.Microsecond
		w.mu.Unlock()
		time.Sleep(pause)
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
}

// The method `last` returns the newest position. If the argument `late` is true, the result may be an older
// position, which a late asset service still has.
func (w *world) last(late bool) int64 {
	n := len(w.history)
	if late && !w.ended && w.chance(2) {
		n -= w.random.IntN(min(40, n+1))
	}
	if n == 0 {
		return 0
	}
	return w.history[n-1].position
}

// standing returns the newest change of each asset between two positions, in the order of positions. It leaves out a
// change at the first position, and includes a change at the second one.
func (w *world) standing(s Selection, after, upto int64) (all []change) {
	newer := map[int]bool{}
	for _, c := range slices.Backward(w.history) {
		if c.position <= after {
			break
		}
		if c.position > upto || newer[c.asset] {
			continue
		}
		newer[c.asset] = true
		if isWanted(s, c.asset) {
			all = append(all, c)
		}
	}
	slices.Reverse(all)
	return all
}

// data returns the JSON of an asset. Every fiftieth asset is too large for a ring.
func data(c change) []byte {
	size := c.position % 40
	if c.asset%50 == 0 {
		size = follow.MaxData + 1
	}
	return fmt.Appendf(nil, `{"asset":%d,"at":%d,"title":"%s"}`, c.asset, c.position, strings.Repeat("x", int(size)))
}

func (w *world) Page(_ context.Context, s Selection, offset string, limit int) (io.ReadCloser, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails(w.random, 20) {
		return nil, errors.New("the asset service is down")
	}
	after := positionOf(offset)
	upto := w.last(true)
	entries := w.standing(s, after, upto)
	body := follow.AppendBookmark(nil, after, offsetText(after))
	ends := []int{0, len(body)} // ends of the messages in body
	if limit = min(limit, 1+w.random.IntN(9)); len(entries) > limit {
		entries = entries[:limit]
		upto = entries[limit-1].position
	}
	for _, c := range entries {
		body = follow.AppendEntry(body, c.position, offsetText(c.position), data(c))
		ends = append(ends, len(body))
	}
	if w.leftOut == "a page tells how far it is complete" {
		upto = w.last(false)
	}
	body = follow.AppendBookmark(body, upto, offsetText(upto))
	if w.fails(w.random, 20) {
		body = body[:ends[w.random.IntN(2)*w.random.IntN(len(ends))]] // cut the body before a message, often the first
	}
	return io.NopCloser(bytes.NewReader(body)), nil
}

func offsetText(position int64) string {
	if position == 0 {
		return "1970-01-01T00:00:00.000000Z"
	}
	return offsetOf(position)
}

func positionOf(offset string) int64 {
	if offset == "" {
		return 0
	}
	at, err := time.Parse(time.RFC3339Nano, offset)
	if err != nil {
		panic(err)
	}
	return at.UnixMicro()
}

func (w *world) Live(ctx context.Context, s Selection) (io.ReadCloser, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails(w.random, 5) {
		return nil, errors.New("the asset service is down")
	}
	r, pipe := io.Pipe()
	from, random := w.last(true), rand.New(rand.NewPCG(w.random.Uint64(), 1))
	go func() { pipe.CloseWithError(w.live(ctx, pipe, s, from, random)) }()
	return r, nil
}

// live sends the changes after the given position, until it breaks off.
func (w *world) live(ctx context.Context, to io.Writer, s Selection, at int64, random *rand.Rand) error {
	text := follow.AppendBookmark(nil, at, offsetText(at))
	if w.leftOut == "a live feed begins where it says" {
		at += 200
	}
	for {
		if _, err := to.Write(text); err != nil {
			return err
		}
		w.mu.Lock()
		killed, changed, upto, ended := w.fails(random, 60), w.changed, w.last(false), w.ended
		entries := w.standing(s, at, upto)
		w.mu.Unlock()
		if killed {
			return errors.New("the asset service was killed")
		}
		text = nil
		if len(entries) > 2 && !ended && random.IntN(20) == 0 { // leave a gap, as if the follower were too slow
			at = entries[len(entries)-1].position
			if w.leftOut != "a live feed tells its gaps" {
				text = follow.AppendGap(text, at, offsetText(at))
			}
			continue
		}
		for _, c := range entries {
			if d := data(c); len(d) > follow.MaxData {
				text = follow.AppendGap(text, c.position, offsetText(c.position))
			} else {
				text = follow.AppendEntry(text, c.position, offsetText(c.position), d)
			}
		}
		text, at = follow.AppendBookmark(text, upto, offsetText(upto)), upto
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond)
		}
	}
}

// client reads a stream and records what it has received.
type client struct {
	selection Selection
	format    Format
	random    *rand.Rand
	seen      map[change]bool
	at        int64 // everything up to this position was received
	faults    []string
	buffer    []byte
	limit     int // number of bytes until the connection breaks
	mu        sync.Mutex
}

func (c *client) Header() http.Header              { return http.Header{} }
func (c *client) WriteHeader(int)                  {}
func (c *client) FlushError() error                { return nil }
func (c *client) SetWriteDeadline(time.Time) error { return nil }
func (c *client) SetReadDeadline(time.Time) error  { return nil }

func (c *client) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit -= len(p); c.limit < 0 {
		return 0, errors.New("the client has left")
	}
	c.buffer = append(c.buffer, p...)
	end := c.format.entryEnd()
	for {
		message, rest, whole := bytes.Cut(c.buffer, []byte(end))
		if !whole {
			return len(p), nil
		}
		c.take(string(message))
		c.buffer = rest
	}
}

// take records a message: an event or a line.
func (c *client) take(message string) {
	var entry change
	switch {
	case message == "" || message == ":" || strings.HasPrefix(message, "retry: "):
		return
	case strings.Contains(message, "bookmark"):
		_, offset, _ := strings.Cut(message, `{"offset":"`)
		offset, _, _ = strings.Cut(offset, `"`)
		if position := positionOf(offset); position < c.at {
			c.fault("a bookmark goes back from %d to %d", c.at, position)
		} else {
			c.at = position
		}
		return
	}
	head, rest, _ := strings.Cut(message, `{"asset":`)
	if _, err := fmt.Sscanf(rest, `%d,"at":%d`, &entry.asset, &entry.position); err != nil {
		c.fault("%.80q is no entry", message)
		return
	}
	if want := c.format.entryHead(offsetOf(entry.position)); head != want {
		c.fault("got %q before entry %d, want %q", head, entry.position, want)
	}
	if entry.position <= c.at {
		c.fault("%d comes after %d", entry.position, c.at)
	}
	c.at = max(c.at, entry.position)
	c.seen[entry] = true
}

func (c *client) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// run serves one connection of a client.
type run func(ctx context.Context, f *Follower, c *client) error

func follower(ctx context.Context, f *Follower, c *client) error { return openAndRun(ctx, f, c) }

// startsLive runs a follower with a defect: it takes entries from the ring before its pages have caught up.
func startsLive(ctx context.Context, f *Follower, c *client) error {
	first := f.Hub.ring.Read(1<<60, 1).Upto
	body, err := f.Source.Page(ctx, f.Hub.selection, f.Offset, pageLimit)
	if err != nil {
		return err
	}
	f.w, f.control = c, http.NewResponseController(c)
	if _, err := f.copyPage(page{body, func() {}}); err != nil {
		return err
	}
	f.pass(first, offsetOf(first))
	return f.follow(ctx)
}

// forgetsItsOffset runs a follower with a defect. If its first page breaks off before the page says where it begins,
// the follower continues from the start of the feed.
func forgetsItsOffset(ctx context.Context, f *Follower, c *client) error {
	f.begun = true
	return openAndRun(ctx, f, c)
}

// follow connects again and again until ctx ends.
func (c *client) follow(ctx context.Context, w *world, hubs *Hubs, run run) {
	for ctx.Err() == nil {
		hub, leave, err := hubs.Join(c.selection)
		if err != nil {
			c.fault("join: %v", err)
			return
		}
		c.mu.Lock()
		c.buffer, c.limit = nil, 200+c.random.IntN(100_000)
		if c.random.IntN(3) == 0 {
			c.limit = 1 << 30
		}
		f := &Follower{Source: w, Hub: hub, Format: c.format, Offset: offsetOf(c.at), Heartbeat: 5 * time.Millisecond,
			Enter: func() bool { return true }, Leave: func() {}}
		c.mu.Unlock()
		_ = run(ctx, f, c) // the error of a broken connection does not matter
		leave()
	}
}

// simulate lets a world grow while clients follow it. It returns what the clients missed or got wrong.
func simulate(t *testing.T, seed uint64, leftOut string, run run) (faults []string, deliveries int) {
	// Goroutines that take turns need only one processor, and cost half as much with only one.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := newWorld(seed)
	w.leftOut = leftOut
	hubs := NewHubs(w, Options{Memory: 41 * 4096, Chosen: 32, Log: slog.New(slog.DiscardHandler)})
	defer hubs.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients []*client
	var running sync.WaitGroup
	for i := range 24 {
		c := &client{random: rand.New(rand.NewPCG(seed, uint64(i))), seen: map[change]bool{}, format: Events}
		if i%2 == 1 {
			c.selection.Mode = "test"
		}
		if i%8 > 5 {
			c.format = Lines
		}
		clients = append(clients, c)
		running.Go(func() {
			time.Sleep(time.Duration(i) * 10 * time.Millisecond)
			c.follow(ctx, w, hubs, run)
		})
	}
	w.grow(1500)
	waitFor(w, clients)
	cancel()
	running.Wait()
	end := w.last(false)
	for i, c := range clients {
		deliveries += len(c.seen)
		if c.at < end {
			faults = append(faults, fmt.Sprintf("client %d stands at %d, before the end %d", i, c.at, end))
		}
		for _, fault := range c.faults {
			faults = append(faults, fmt.Sprintf("client %d: %s", i, fault))
		}
		for _, want := range w.standing(c.selection, 0, end) {
			if !c.seen[want] {
				faults = append(faults, fmt.Sprintf("client %d of mode %q has not got asset %d at %d",
					i, c.selection.Mode, want.asset, want.position))
			}
		}
	}
	return faults, deliveries
}

// waitFor waits until each client has reached the end. It gives up if nothing comes and nothing fails for 10 s. A
// correct program never waits that long: after a fault, a hub waits for at most 1.5 times retryMost.
func waitFor(w *world, clients []*client) {
	for still, before := 0, 0; still < 1000; {
		w.mu.Lock()
		end, sum, all := w.last(false), w.faults, true
		w.mu.Unlock()
		for _, c := range clients {
			c.mu.Lock()
			sum += len(c.seen) + int(c.at)
			all = all && c.at >= end
			c.mu.Unlock()
		}
		if all {
			return
		}
		if still++; sum != before {
			still, before = 0, sum
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Promises: ways, stream
func TestSimulation(t *testing.T) {
	for seed := range uint64(2) {
		var faults []string
		var deliveries int
		synctest.Test(t, func(t *testing.T) { faults, deliveries = simulate(t, seed, "", follower) })
		if len(faults) > 0 {
			t.Errorf("seed %d: got %d faults of %d deliveries, want none; the first: %s",
				seed, len(faults), deliveries, faults[0])
		}
		expect.ErrorIf(t, deliveries < 10_000, "seed %d: got %d deliveries, want at least 10,000", seed, deliveries)
	}
}

// TestSimulationCatches switches off each guard in turn. The simulation must notice this; otherwise its success
// would prove nothing.
func TestSimulationCatches(t *testing.T) {
	for _, c := range []struct {
		name, leftOut string
		run           run
	}{
		{"a follower that starts live before it has caught up", "", startsLive},
		{"a follower that forgets its offset", "", forgetsItsOffset},
		{"", "a page tells how far it is complete", follower},
		{"", "a live feed begins where it says", follower},
		{"", "a live feed tells its gaps", follower},
	} {
		t.Run(c.name+c.leftOut, func(t *testing.T) {
			for seed := range uint64(40) {
				var faults []string
				synctest.Test(t, func(t *testing.T) { faults, _ = simulate(t, seed, c.leftOut, c.run) })
				if len(faults) > 0 {
					t.Logf("seed %d: %d faults; the first: %s", seed, len(faults), faults[0])
					return
				}
			}
			t.Error("got no faults in 40 runs, want some")
		})
	}
}
