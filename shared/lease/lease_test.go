package lease

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a Keeper that notes what it is told.
type memory struct {
	mu     sync.Mutex
	marked map[string]int
	forgot int
}

func (m *memory) Change(ids []string) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.marked[id]++
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, id := range ids {
			m.marked[id]--
		}
	}
}

func (m *memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgot++
}

// marks returns the assets that are marked, in order.
func (m *memory) marks() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for id, n := range m.marked {
		if n > 0 {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (m *memory) forgotten() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.forgot
}

// peer is the other end of a connection, as a test plays it.
type peer struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

// connect returns a peer of serve.
func connect(t *testing.T, serve func(net.Conn, *bufio.Reader) error) *peer {
	here, there := net.Pipe()
	go func() { _ = serve(there, bufio.NewReader(there)) }()
	return &peer{t, here, bufio.NewReader(here)}
}

// say sends a message and waits until all is done that it causes.
func (p *peer) say(m message) {
	p.t.Helper()
	p.write(m)
	synctest.Wait()
}

func (p *peer) write(m message) {
	p.t.Helper()
	line, err := json.Marshal(m)
	if err == nil {
		_, err = p.conn.Write(append(line, '\n'))
	}
	if err != nil {
		p.t.Errorf("say %q: %v", m.Kind, err)
	}
}

// hears returns the next message, which must be of a kind.
func (p *peer) hears(want kind) (m message) {
	p.t.Helper()
	if err := p.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err != nil || m.Kind != want {
		p.t.Fatalf("got %+v, %v; want %q", m, err, want)
	}
	synctest.Wait()
	return m
}

// grants answers the next ask of a gateway.
func (p *peer) grants(writer string, left time.Duration, members []string, ids ...string) {
	p.t.Helper()
	p.hears(ask)
	p.say(message{Kind: grant, Writer: writer, Members: members, Left: left.Milliseconds(), IDs: ids})
}

// follow returns Holder.Follow for connect.
func follow(h *Holder) func(net.Conn, *bufio.Reader) error {
	return func(conn net.Conn, r *bufio.Reader) error { return h.Follow(context.Background(), conn, r) }
}

func newMemory() *memory { return &memory{marked: map[string]int{}} }

// wantValid compares whether the memory may be used.
func wantValid(t *testing.T, when string, h *Holder, want bool) {
	t.Helper()
	if got := h.Valid(); got != want {
		t.Errorf("%s: got valid %t, want %t", when, got, want)
	}
}

func wantMarks(t *testing.T, when string, m *memory, want string) {
	t.Helper()
	if got := m.marks(); got != want {
		t.Errorf("%s: got marked assets %q, want %q", when, got, want)
	}
}

func TestAMemoryIsUsedWithTheLeasesOfAllWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		h := NewHolder(m)
		a, b := connect(t, follow(h)), connect(t, follow(h))
		wantValid(t, "without leases", h, false)
		a.grants("a", Length, []string{"a"})
		wantValid(t, "with the only lease", h, true)
		a.grants("a", Length, []string{"a", "b"})
		wantValid(t, "when a new writer is named", h, false)
		if got := m.forgotten(); got != 1 {
			t.Errorf("got the memory forgotten %d times when a new writer is named, want once", got)
		}
		b.grants("b", Length, []string{"a", "b"})
		wantValid(t, "with both leases", h, true)
		b.conn.Close()
		synctest.Wait()
		wantValid(t, "without one of both", h, false)
		if got := m.forgotten(); got != 2 {
			t.Errorf("got the memory forgotten %d times after a lease was lost, want 2", got)
		}
		a.grants("a", Length, []string{"a"})
		wantValid(t, "when the other writer was removed", h, true)
		a.conn.Close()
	})
}

func TestALeaseEndsEarlierAtTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		h := NewHolder(m)
		a := connect(t, follow(h))
		a.hears(ask)
		time.Sleep(300 * time.Millisecond) // the time counts from the ask
		a.say(message{Kind: grant, Writer: "a", Members: []string{"a"}, Left: 1000, IDs: []string{"x"}})
		time.Sleep(time.Second - Margin - 300*time.Millisecond - time.Millisecond)
		wantValid(t, "before its end", h, true)
		wantMarks(t, "before its end", m, "x")
		time.Sleep(time.Millisecond)
		wantValid(t, "at its end", h, false)
		a.grants("a", Length, []string{"a"})
		wantValid(t, "with the next lease", h, true)
		wantMarks(t, "with the next lease", m, "")
		if got := m.forgotten(); got != 1 {
			t.Errorf("got the memory forgotten %d times after a lease has lapsed, want once", got)
		}
		a.hears(ask)
		time.Sleep(time.Second)
		a.say(message{Kind: grant, Writer: "a", Members: []string{"a"}, Left: 1000})
		time.Sleep(Length)
		wantValid(t, "with a lease that has lapsed on the way", h, false)
		a.conn.Close()
	})
}

func TestMarksBelongToOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		h := NewHolder(m)
		a, b := connect(t, follow(h)), connect(t, follow(h))
		both := []string{"a", "b"}
		a.say(message{Kind: announce, Batch: 1, IDs: []string{"x"}})
		a.hears(ask)
		if got := a.hears(confirm); got.Batch != 1 {
			t.Errorf("got a confirmation of batch %d, want 1", got.Batch)
		}
		wantMarks(t, "an announcement without a lease", m, "")
		a.say(message{Kind: grant, Writer: "a", Members: both, Left: 2000, Batch: 1, IDs: []string{"x"}})
		wantMarks(t, "a lease with a batch in flight", m, "x")
		b.grants("b", Length, both)
		b.say(message{Kind: announce, Batch: 7, IDs: []string{"x", "y"}})
		b.hears(confirm)
		wantMarks(t, "another writer's batch", m, "x y")
		b.say(message{Kind: done, Batch: 7})
		wantMarks(t, "when the other writer is done", m, "x")
		b.say(message{Kind: announce, Batch: 8, IDs: []string{"y"}})
		b.hears(confirm)
		a.conn.Close()
		synctest.Wait()
		wantMarks(t, "when one writer is lost", m, "y")
		b.say(message{Kind: done, Batch: 8})
		wantMarks(t, "when all are done", m, "")
		b.conn.Close()
	})
}

func TestTheConnectionEndsWhen(t *testing.T) {
	for name, text := range map[string]string{
		"a lease was not asked for": `{"kind":"grant"}` + "\n" + `{"kind":"grant"}`,
		"a message is no JSON":      "grant",
		"a kind is unknown":         `{"kind":"other"}`,
		"a message is too long":     `{"kind":"` + strings.Repeat("x", maxLine) + `"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			a := connect(t, follow(NewHolder(newMemory())))
			a.hears(ask)
			_, _ = io.WriteString(a.conn, text+"\n")
			for _, err := a.lines.ReadByte(); ; _, err = a.lines.ReadByte() {
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatalf("%s: got %v, want the end", name, err)
				}
			}
		})
	}
}

// group is a Group whose answers the test chooses.
type group struct {
	mu      sync.Mutex
	joins   int
	members []string
	err     error
	left    bool
}

func (g *group) Join(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joins++
	if errors.Is(g.err, ErrNotMember) {
		g.err = nil
	}
	return nil
}

func (g *group) Renew(context.Context) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members, g.err
}

func (g *group) Leave(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = true
	return nil
}

func (g *group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// grantors runs a test with a grantor that has waited.
func grantors(t *testing.T, test func(t *testing.T, g *Grantor, of *group)) {
	synctest.Test(t, func(t *testing.T) {
		of := &group{members: []string{"a", "b"}}
		g := NewGrantor(Options{Name: "a", Group: of, Timeout: time.Second, Failed: func(error) {}})
		g.Start()
		time.Sleep(Length + Margin + time.Millisecond)
		test(t, g, of)
		if err := g.Close(); err != nil {
			t.Errorf("close: got %v, want none", err)
		}
	})
}

// waits returns how long a batch waits.
func waits(t *testing.T, b *Batch) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := b.Wait(t.Context()); err != nil {
		t.Errorf("wait: got %v, want none", err)
	}
	return time.Since(begun)
}

func TestABatchWaitsForEachGatewayWithALease(t *testing.T) {
	grantors(t, func(t *testing.T, g *Grantor, _ *group) {
		idle, quick, silent := connect(t, g.Serve), connect(t, g.Serve), connect(t, g.Serve)
		quick.say(message{Kind: ask})
		quick.hears(grant)
		b := g.Announce([]string{"x"})
		if got := quick.hears(announce); !slices.Equal(got.IDs, []string{"x"}) {
			t.Errorf("got the announced assets %v, want x", got.IDs)
		}
		quick.say(message{Kind: confirm, Batch: b.number + 1})
		quick.say(message{Kind: ask}) // is answered once the batch is confirmed
		go func() {
			time.Sleep(200 * time.Millisecond)
			quick.write(message{Kind: confirm, Batch: b.number})
		}()
		if got := waits(t, b); got != 200*time.Millisecond {
			t.Errorf("got a wait of %v, want that for the confirmation", got)
		}
		if got := quick.hears(grant); got.Batch != b.number || !slices.Equal(got.IDs, []string{"x"}) {
			t.Errorf("got a lease with batch %d and %v, want the batch in flight", got.Batch, got.IDs)
		}
		silent.say(message{Kind: ask})
		left := time.Duration(silent.hears(grant).Left) * time.Millisecond
		b.Done()
		quick.hears(done)
		silent.hears(done)

		b = g.Announce([]string{"y"})
		quick.hears(announce)
		quick.say(message{Kind: confirm, Batch: b.number})
		if got := waits(t, b); got < left-time.Millisecond || got > left+time.Millisecond {
			t.Errorf("got a wait of %v for a silent gateway, want its lease of %v", got, left)
		}
		b.Done()
		b = g.Announce([]string{"z"})
		if got := waits(t, b); got != 0 {
			t.Errorf("got a wait of %v without leases, want none", got)
		}
		b.Done()
		for _, p := range []*peer{idle, quick, silent} {
			p.conn.Close()
		}
	})
}

func TestALostConnectionCountsUntilItsLeaseEnds(t *testing.T) {
	grantors(t, func(t *testing.T, g *Grantor, of *group) {
		p := connect(t, g.Serve)
		p.say(message{Kind: ask})
		left := time.Duration(p.hears(grant).Left) * time.Millisecond
		p.conn.Close()
		synctest.Wait()
		if got := waits(t, g.Announce([]string{"x"})); got < left || got > left+time.Millisecond {
			t.Errorf("got a wait of %v, want the lease of %v", got, left)
		}
		g.batch.Done()
		if g.waited != 1 || g.confirmed != 0 {
			t.Errorf("got %d batches that waited and %d confirmed, want one that waited", g.waited, g.confirmed)
		}
		if n := len(g.holders); n != 0 {
			t.Errorf("got %d connections after the lease, want none", n)
		}
	})
}

func TestAGatewayThatStopsGivesItsLeaseBack(t *testing.T) {
	grantors(t, func(t *testing.T, g *Grantor, of *group) {
		of.mu.Lock()
		of.members = []string{"a"}
		of.mu.Unlock()
		time.Sleep(Every)
		h := NewHolder(newMemory())
		here, there := net.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = g.Serve(there, bufio.NewReader(there)) }()
		followed := make(chan error)
		go func() { followed <- h.Follow(ctx, here, bufio.NewReader(here)) }()
		synctest.Wait()
		wantValid(t, "with a lease", h, true)
		stop()
		if err := <-followed; err == nil {
			t.Error("got no error at the end, want one")
		}
		wantValid(t, "after the end", h, false)
		synctest.Wait()
		if got := waits(t, g.Announce([]string{"x"})); got != 0 {
			t.Errorf("got a wait of %v for a gateway that has stopped, want none", got)
		}
	})
}

func TestALeaseEndsWithItsRenewal(t *testing.T) {
	grantors(t, func(t *testing.T, g *Grantor, of *group) {
		p := connect(t, g.Serve)
		of.fail(errors.New("the store is down"))
		time.Sleep(Length / 2)
		p.say(message{Kind: ask})
		if got := p.hears(grant); got.Left > (Length / 2).Milliseconds() {
			t.Errorf("got a lease of %d ms after half of the renewal's time, want at most the other half", got.Left)
		}
		time.Sleep(Length)
		p.say(message{Kind: ask})
		p.hears(none)
		p.conn.Close()
	})
}

func TestANewWriterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &group{members: []string{"a"}}
		g := NewGrantor(Options{Name: "a", Group: of, Timeout: time.Second, Failed: func(error) {}})
		if got := waits(t, g.Announce(nil)); got != 0 || g.Ready() != nil {
			t.Errorf("got a wait of %v before the start, want none", got)
		}
		g.Start()
		if got := waits(t, g.Announce(nil)); got != Length+Margin {
			t.Errorf("got a wait of %v, want %v", got, Length+Margin)
		}
		of.fail(ErrNotMember)
		time.Sleep(2 * Every)
		if g.Ready() == nil {
			t.Error("got a writer that was removed and is ready, want one that waits")
		}
		if got := waits(t, g.Announce(nil)); got < Length+Margin-2*Every || of.joins != 2 {
			t.Errorf("got a wait of %v and %d joins after a removal, want a new one", got, of.joins)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		of.fail(ErrNotMember)
		time.Sleep(2 * Every)
		if err := g.Announce(nil).Wait(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}
		if err := g.Close(); err != nil || !of.left {
			t.Errorf("close: got %v and left %t, want that it leaves", err, of.left)
		}
	})
}

func TestCloseWaitsForTheLeases(t *testing.T) {
	grantors(t, func(t *testing.T, g *Grantor, of *group) {
		p := connect(t, g.Serve)
		p.say(message{Kind: ask})
		left := time.Duration(p.hears(grant).Left) * time.Millisecond
		begun := time.Now()
		if err := g.Close(); err != nil {
			t.Errorf("got %v, want none", err)
		}
		if took := time.Since(begun); took < left {
			t.Errorf("got the end after %v, want it after the lease of %v", took, left)
		}
		p.conn.Close()
	})
}

func TestTooManyConnectionsAreRefused(t *testing.T) {
	grantors(t, func(t *testing.T, g *Grantor, _ *group) {
		for range maxHolders {
			p := connect(t, g.Serve)
			t.Cleanup(func() { p.conn.Close() })
		}
		synctest.Wait()
		here, there := net.Pipe()
		if err := g.Serve(there, bufio.NewReader(there)); !errors.Is(err, errFull) {
			t.Errorf("got %v, want %v", err, errFull)
		}
		here.Close()
	})
}

// FuzzMessages sends any bytes to both sides. Neither may hang or panic.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"kind":"grant","writer":"a","members":["a"],"left":1000}` + "\n"))
	f.Add([]byte(`{"kind":"announce","batch":1,"ids":["x"]}` + "\n" + `{"kind":"done"}` + "\n"))
	f.Add([]byte(`{"kind":"ask"}` + "\n" + `{"kind":"confirm","batch":18446744073709551615}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMemory()
		h := NewHolder(m)
		g := NewGrantor(Options{Name: "a", Group: Alone("a"), Timeout: time.Second, Failed: func(error) {}})
		for _, serve := range []func(net.Conn, *bufio.Reader) error{follow(h), g.Serve} {
			if err := serve(discard{}, bufio.NewReader(bytes.NewReader(data))); err == nil {
				t.Error("got no error at the end of the connection, want one")
			}
		}
		if got := m.marks(); got != "" {
			t.Errorf("got marks %q after the end of the connection, want none", got)
		}
		if h.Valid() {
			t.Error("got a memory that may be used without a connection")
		}
	})
}

// discard is a connection that takes all that is sent.
type discard struct{ net.Conn }

func (discard) Write(p []byte) (int, error)      { return len(p), nil }
func (discard) Close() error                     { return nil }
func (discard) SetReadDeadline(time.Time) error  { return nil }
func (discard) SetWriteDeadline(time.Time) error { return nil }

func BenchmarkValid(b *testing.B) {
	for _, writers := range []int{1, 4} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			h := NewHolder(newMemory())
			ends := slices.Repeat([]time.Time{time.Now().Add(time.Hour)}, writers)
			h.ends.Store(&ends)
			b.ReportAllocs()
			for b.Loop() {
				if !h.Valid() {
					b.Fatal("got an invalid memory, want a valid one")
				}
			}
		})
	}
}

func TestASilentConnectionEnds(t *testing.T) {
	grantors(t, func(t *testing.T, g *Grantor, _ *group) {
		for name, p := range map[string]*peer{
			"of a gateway": connect(t, g.Serve), "of a writer": connect(t, follow(NewHolder(newMemory()))),
		} {
			begun := time.Now()
			if _, err := io.Copy(io.Discard, p.conn); err != nil {
				t.Errorf("%s: got %v, want the end", name, err)
			}
			if took := time.Since(begun); took > silence {
				t.Errorf("%s: got the end after %v, want it within %v", name, took, silence)
			}
		}
	})
}
