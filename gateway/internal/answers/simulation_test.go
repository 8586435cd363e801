package answers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/lease"
)

// world is a store with several writers, and gateways that answer from memory, on a network
// that is late and breaks. Writers stall, die and come back. A test leaves a part of the
// protocol out and expects a stale answer. The names of the parts are those of
// deploy/test/model/README.md.
type world struct {
	leftOut string

	mu       sync.Mutex
	random   *rand.Rand
	assets   [assetsOfWorld]int // the version of each
	members  map[string]int     // registered writers, and their renewals
	first    []string           // the members at the start of the simulation
	open     map[string]*opened // the batches on the clock
	writers  []*writer
	fencings int

	read, recalled int // readings, and those from memory
	stale          []string
}

const (
	assetsOfWorld = 3
	worldLasts    = 60 * time.Second
	fenceAfter    = 3 * time.Second
)

// opened is a batch on the clock.
type opened struct {
	since  time.Time
	fenced bool // its write can no longer land
}

func (w *world) chance(one int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(one) == 0
}

// sometime returns a random time up to most, mostly a short one.
func (w *world) sometime(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.random.IntN(5) > 0 {
		most /= 50
	}
	return time.Duration(w.random.Int64N(int64(most) + 1))
}

// upTo returns a random time up to most.
func (w *world) upTo(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.random.Int64N(int64(most)))
}

// group is the lease.Group of a writer.
type group struct {
	*world
	name string
}

func (g group) Join(ctx context.Context) error {
	time.Sleep(g.sometime(100 * time.Millisecond))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[g.name] = 1
	return ctx.Err()
}

func (g group) Renew(ctx context.Context) ([]string, error) {
	time.Sleep(g.sometime(400 * time.Millisecond))
	if g.chance(15) {
		time.Sleep(g.upTo(12 * time.Second)) // the writer is cut off
		return nil, errors.New("no answer")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leftOut == "RENEW_BY_READ" && g.random.IntN(2) == 0 && slices.Contains(g.first, g.name) {
		return g.first, nil // of a deposed primary
	}
	if g.members[g.name] == 0 {
		return nil, lease.ErrNotMember
	}
	g.members[g.name]++
	members := slices.Sorted(maps.Keys(g.members))
	wait := time.Duration(g.random.Int64N(int64(600 * time.Millisecond)))
	g.mu.Unlock()
	time.Sleep(wait) // the answer is late
	g.mu.Lock()
	return members, ctx.Err()
}

func (g group) Leave(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[g.name] == nil {
		delete(g.members, g.name)
	}
	return nil
}

// writer is an asset service.
type writer struct {
	*world
	name    string
	grantor *lease.Grantor
}

func (w *world) newWriter(n int) *writer {
	wr := &writer{world: w, name: fmt.Sprintf("writer %d", n)}
	wr.grantor = lease.NewGrantor(lease.Options{
		Name: wr.name, Group: group{w, wr.name}, Timeout: 2 * time.Second, Failed: func(error) {},
	})
	wr.grantor.Start()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writers = append(w.writers, wr)
	return wr
}

// run makes batches until ctx ends, as feed.Writer does.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(w.sometime(3 * time.Second))
		w.mu.Lock()
		asset := w.random.IntN(assetsOfWorld)
		w.mu.Unlock()
		ids := []string{strconv.Itoa(asset)}
		batch := w.grantor.Announce(ids)
		b := w.put(ctx)
		if b == nil {
			return
		}
		if w.leftOut != "NO_CONFIRM" && batch.Wait(ctx) != nil {
			return
		}
		if w.leftOut == "DONE_EARLY" {
			batch.Done()
		}
		w.write(b, asset)
		if w.leftOut != "DONE_EARLY" {
			batch.Done()
		}
		w.take(b)
	}
}

// put puts a batch on the clock, once the writer is registered.
func (w *writer) put(ctx context.Context) *opened {
	for ctx.Err() == nil {
		time.Sleep(w.sometime(200 * time.Millisecond))
		w.mu.Lock()
		if w.members[w.name] > 0 || w.leftOut == "OPEN_UNREGISTERED" {
			b := &opened{since: time.Now()}
			w.open[w.name] = b
			w.mu.Unlock()
			return b
		}
		w.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// write lands, perhaps late, unless the batch was fenced before.
func (w *writer) write(b *opened, asset int) {
	time.Sleep(w.sometime(5 * time.Second))
	w.mu.Lock()
	defer w.mu.Unlock()
	if !b.fenced {
		w.assets[asset]++
	}
}

// take takes a batch off the clock.
func (w *writer) take(b *opened) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[w.name] == b {
		delete(w.open, w.name)
	}
}

// watch fences batches that stay open, and removes writers that do not renew.
func (w *world) watch(ctx context.Context) {
	type sighting struct {
		renewal int
		since   time.Time
	}
	seen := map[string]sighting{}
	for ctx.Err() == nil {
		time.Sleep(200 * time.Millisecond)
		w.mu.Lock()
		for name, b := range w.open {
			if time.Since(b.since) > fenceAfter {
				b.fenced = true
				delete(w.open, name)
				w.fencings++
			}
		}
		for name, renewal := range w.members {
			if seen[name].renewal != renewal {
				seen[name] = sighting{renewal, time.Now()}
			}
			if time.Since(seen[name].since) > lease.Length && (w.open[name] == nil || w.leftOut == "REMOVE_UNFENCED") {
				delete(w.members, name)
				delete(seen, name)
			}
		}
		w.mu.Unlock()
	}
}

// link joins a gateway with a writer, with delays, until it breaks. It changes messages of
// the writer if a part is left out.
func (w *world) link(ctx context.Context, h *lease.Holder, to *writer) {
	for ctx.Err() == nil {
		here, gatewayEnd := net.Pipe()
		there, writerEnd := net.Pipe()
		var all sync.WaitGroup
		end := func() { here.Close(); there.Close() }
		cut := time.AfterFunc(2*time.Second+w.sometime(60*time.Second), end)
		all.Go(func() { defer end(); w.pass(there, here, nil) })
		all.Go(func() { defer end(); w.pass(here, there, w.changed(there)) })
		all.Go(func() { defer end(); _ = to.grantor.Serve(writerEnd, bufio.NewReader(writerEnd)) })
		all.Go(func() { defer end(); _ = h.Follow(ctx, gatewayEnd, bufio.NewReader(gatewayEnd)) })
		stop := context.AfterFunc(ctx, end)
		all.Wait()
		stop()
		cut.Stop()
		if w.chance(3) {
			time.Sleep(w.upTo(6 * time.Second))
		}
	}
}

// pass passes lines on, some of them late.
func (w *world) pass(to io.Writer, from io.Reader, change func(line map[string]any)) {
	lines := bufio.NewReader(from)
	queue := make(chan []byte, 64)
	var late sync.WaitGroup
	defer late.Wait()
	defer close(queue)
	late.Go(func() {
		for line := range queue {
			time.Sleep(w.sometime(1500 * time.Millisecond))
			if _, err := to.Write(line); err != nil {
				return
			}
		}
	})
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if change != nil {
			var fields map[string]any
			if json.Unmarshal(line, &fields) != nil {
				return
			}
			change(fields)
			line, _ = json.Marshal(fields)
			line = append(line, '\n')
		}
		select {
		case queue <- bytes.Clone(line):
		default:
			return
		}
	}
}

// changed returns what a part that is left out does to the messages of a writer. Back is
// the writer's end.
func (w *world) changed(back io.Writer) func(map[string]any) {
	return func(line map[string]any) {
		switch {
		case w.leftOut == "CONFIRM_ANY" && line["kind"] == "announce":
			fmt.Fprintf(back, "{\"kind\":\"confirm\",\"batch\":%v}\n", line["batch"])
		case w.leftOut == "NO_MARGIN" && line["kind"] == "grant":
			line["left"] = line["left"].(float64) + 1000
		case w.leftOut == "OLD_RENEWAL" && line["kind"] == "grant":
			line["left"] = float64(lease.Length.Milliseconds())
		case w.leftOut == "GRANT_SILENT":
			delete(line, "ids")
			if line["kind"] == "announce" {
				line["ids"] = []string{}
			}
		case w.leftOut == "SOME_LEASES" && line["kind"] == "grant":
			line["members"] = []any{line["writer"]}
		}
	}
}

// gateway is a memory with its holder.
type gateway struct {
	*world
	memory *Memory
	holder *lease.Holder
}

// keeper is the memory as the holder sees it, with parts left out.
type keeper struct{ *gateway }

func (k keeper) Change(ids []string) (done func()) {
	if k.leftOut == "KEEP_CHANGING" {
		k.memory.Change(ids)()
		return func() {}
	}
	if k.leftOut == "KEEP_UNDERWAY" {
		for _, id := range ids {
			k.memory.kept.Invalidate(id)
		}
		return func() {}
	}
	return k.memory.Change(ids)
}

func (k keeper) Forget() {
	if k.leftOut != "NO_CLEAR" {
		k.memory.Forget()
		return
	}
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	k.memory.forgotten++
}

func (w *world) newGateway() *gateway {
	g := &gateway{world: w, memory: New(1<<20, time.Now)}
	g.holder = lease.NewHolder(keeper{g})
	g.memory.Use(g.holder.Valid)
	if w.leftOut == "KEEP_EARLY" {
		g.memory.Use(nil)
	}
	return g
}

// version returns the version of an asset.
func (w *world) version(asset int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.assets[asset]
}

// look reads an asset through a gateway. An answer from memory must have each change that
// has landed.
func (g *gateway) look(asset int) {
	id := strconv.Itoa(asset)
	landed := g.version(asset)
	g.mu.Lock()
	g.read++
	g.mu.Unlock()
	valid := g.holder.Valid()
	if a := g.memory.Find(id, form); a != nil && (valid || g.leftOut != "KEEP_EARLY") {
		got, _ := strconv.Atoi(string(a.Body))
		g.mu.Lock()
		defer g.mu.Unlock()
		g.recalled++
		if got < landed {
			g.stale = append(g.stale, fmt.Sprintf("asset %d: got version %d from memory, want %d", asset, got, landed))
		}
		return
	}
	r := g.memory.Begin(id)
	time.Sleep(g.sometime(2 * time.Second))
	version := g.version(asset)
	if g.leftOut == "OLD_READS" && g.chance(4) {
		version = landed - 1
	}
	time.Sleep(g.sometime(8 * time.Second))
	if r != nil {
		r.End(answer(strconv.Itoa(version)))
	}
}

// simulate runs a world and returns it.
func simulate(seed uint64, leftOut string) *world {
	w := &world{leftOut: leftOut, random: rand.New(rand.NewPCG(seed, seed)), members: map[string]int{},
		open: map[string]*opened{}}
	ctx, cancel := context.WithTimeout(context.Background(), worldLasts)
	defer cancel()
	var all sync.WaitGroup
	var gateways []*gateway
	for range 2 {
		gateways = append(gateways, w.newGateway())
	}
	begin := func(n int) {
		wr := w.newWriter(n)
		life, end := context.WithTimeout(ctx, 5*time.Second+w.sometime(600*time.Second))
		if n < 2 {
			life = ctx
		}
		all.Go(func() {
			defer end()
			wr.run(life)
			<-life.Done()
			if n%2 == 0 {
				_ = wr.grantor.Close()
			} // else it dies, and its messages may still be on the way
		})
		for _, g := range gateways {
			all.Go(func() { w.link(ctx, g.holder, wr) })
		}
	}
	begin(0)
	w.mu.Lock()
	w.first = []string{"writer 0"}
	w.mu.Unlock()
	all.Go(func() { w.watch(ctx) })
	all.Go(func() {
		for n := 1; n < 6 && ctx.Err() == nil; n++ {
			time.Sleep(w.sometime(20 * time.Second))
			begin(n)
		}
	})
	for _, g := range gateways {
		for i := range 6 {
			all.Go(func() {
				for ctx.Err() == nil {
					g.look(i % assetsOfWorld)
					time.Sleep(g.sometime(100 * time.Millisecond))
				}
			})
		}
	}
	all.Wait()
	for _, wr := range w.writers {
		_ = wr.grantor.Close()
	}
	return w
}

func TestSimulation(t *testing.T) {
	recalled := 0
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			w := simulate(seed, "")
			if len(w.stale) > 0 {
				t.Errorf("seed %d: got %d stale answers of %d, want none; the first: %s",
					seed, len(w.stale), w.recalled, w.stale[0])
			}
			recalled += w.recalled
			t.Logf("seed %d: %d readings, %d from memory, versions %v, %d batches fenced",
				seed, w.read, w.recalled, w.assets, w.fencings)
		})
	}
	if recalled < 100 {
		t.Errorf("got %d answers from memory, want at least 100", recalled)
	}
}

// TestSimulationCatches leaves a part out. A simulation that finds nothing then proves
// nothing.
func TestSimulationCatches(t *testing.T) {
	for _, part := range []string{
		"NO_CONFIRM", "DONE_EARLY", "OPEN_UNREGISTERED", "REMOVE_UNFENCED", "RENEW_BY_READ", "NO_MARGIN", "OLD_RENEWAL",
		"GRANT_SILENT", "SOME_LEASES", "KEEP_CHANGING", "KEEP_UNDERWAY", "NO_CLEAR", "KEEP_EARLY", "OLD_READS",
		"CONFIRM_ANY",
	} {
		t.Run(part, func(t *testing.T) {
			for seed := range uint64(400) {
				var w *world
				synctest.Test(t, func(*testing.T) { w = simulate(seed, part) })
				if len(w.stale) > 0 {
					t.Logf("seed %d: %d stale answers of %d; the first: %s", seed, len(w.stale), w.recalled, w.stale[0])
					return
				}
			}
			t.Error("got no stale answers in 400 runs, want some")
		})
	}
}
