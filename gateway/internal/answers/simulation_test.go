package answers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// world is one process: a store with writers, readers that ask for assets in two forms, and a memory that is too
// small for all answers. Everything takes random times, so changes, reads, evictions and pauses of minutes occur
// in any order. A test switches one guard off and expects that a promise is broken.
type world struct {
	leftOut string
	memory  *Cache

	mu       sync.Mutex
	random   *rand.Rand
	versions [assetsOfWorld]int       // version of each asset
	begun    [assetsOfWorld]int       // how many changes of each asset have begun
	asked    [assetsOfWorld]time.Time // when each asset was last read from the store
	kept     map[string]int           // by asset and form of the answer: w.begun when the answer was kept
	loose    [assetsOfWorld]bool      // a change of the asset has ended, while another change continues

	read, recalled, expired, evicted int
	broken                           []string // texts about broken promises
}

const (
	assetsOfWorld = 8
	hotAssets     = 6 // assets that are asked for often; each of the others is asked for every few minutes
	worldLasts    = 15 * time.Minute
	bytesOfWorld  = 6 * overhead // less than the answers of all assets take
	longestMemory = 2 * time.Minute
)

var formsOfWorld = []Form{{Version: "2.5"}, {Version: "2.5", Full: true}}

func nameOf(asset int) string { return fmt.Sprint("asset ", asset) }

func (w *world) choose(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// pause waits for a random time, usually a short one. The argument `most` is the longest time.
func (w *world) pause(most time.Duration) {
	w.mu.Lock()
	if w.random.IntN(5) > 0 {
		most /= 50
	}
	d := time.Duration(w.random.Int64N(int64(most) + 1))
	w.mu.Unlock()
	time.Sleep(d)
}

// breaks notes a broken promise. The caller holds mu.
func (w *world) breaks(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// write changes one or two assets, as a batch of the store does. One batch in four fails.
func (w *world) write() {
	assets := []int{w.choose(assetsOfWorld)}
	if other := w.choose(2 * assetsOfWorld); other < assetsOfWorld && other != assets[0] {
		assets = append(assets, other)
	}
	fails := w.choose(4) == 0
	var done func()
	if w.leftOut != "LATE" {
		done = w.change(assets)
	}
	if w.leftOut == "DONE_EARLY" {
		done()
	}
	w.pause(3 * time.Second)
	if !fails {
		w.mu.Lock()
		for _, asset := range assets {
			w.versions[asset]++
		}
		w.mu.Unlock()
	}
	w.pause(time.Second)
	if w.leftOut == "LATE" {
		done = w.change(assets)
	}
	if w.leftOut != "DONE_EARLY" {
		done()
	}
}

// change does the same as Cache.Change, but without the guard in w.leftOut.
func (w *world) change(assets []int) (done func()) {
	m := w.memory
	var ids []string
	before := map[string][]*Answer{}
	w.mu.Lock()
	for _, asset := range assets {
		w.begun[asset]++
		id := nameOf(asset)
		ids = append(ids, id)
		before[id], _ = m.kept.GetIfPresent(id)
	}
	w.mu.Unlock()
	end := m.Change(ids)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		switch w.leftOut {
		case "NO_DROP":
			m.kept.Set(id, before[id])
		case "DROP_ONE_FORM":
			if len(before[id]) > 1 {
				m.kept.Set(id, before[id][1:])
			}
		case "KEEP_UNDERWAY":
			m.busy[id].last--
		}
	}
	return func() {
		w.mu.Lock()
		m.mu.Lock()
		for i, id := range ids {
			switch a := m.busy[id]; w.leftOut {
			case "ONE_BATCH":
				w.loose[assets[i]] = a.changes > 1
			case "TIDY_EARLY":
				a.last = 0
			}
		}
		m.mu.Unlock()
		w.mu.Unlock()
		end()
	}
}

// look asks for an asset in a form. An answer from memory must be in this form, and must show each change that
// was written before.
func (w *world) look(asset int, f Form) {
	w.mu.Lock()
	w.read++
	written := w.versions[asset]
	w.mu.Unlock()
	if a := w.find(nameOf(asset), f); a != nil {
		w.check(asset, f, written, a)
		return
	}
	w.noteEviction(asset, f)
	r := w.begin(asset)
	w.pause(time.Second)
	w.mu.Lock()
	body := fmt.Sprintf("%d %d %t", asset, w.versions[asset], f.Full)
	w.mu.Unlock()
	w.pause(4 * time.Second)
	switch {
	case r == nil:
	case w.choose(10) == 0:
		r.End(nil) // as if the client had left
	default:
		r.End(&Answer{Form: f, Body: []byte(body)})
		w.noteKept(asset, f)
	}
}

func (w *world) check(asset int, f Form, written int, a *Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recalled++
	var ofAsset, version int
	var full bool
	if _, err := fmt.Sscan(string(a.Body), &ofAsset, &version, &full); err != nil {
		w.breaks("got the answer %q, want an asset, a version and a form", a.Body)
	}
	if ofAsset != asset || full != f.Full {
		w.breaks("got asset %d, full: %t; want asset %d, full: %t", ofAsset, full, asset, f.Full)
	}
	if version < written {
		w.breaks("asset %d: got version %d from memory, want at least %d", asset, version, written)
	}
}

// find does the same as Cache.Find, but without the guard in w.leftOut.
func (w *world) find(id string, f Form) *Answer {
	if w.leftOut == "ANY_FORM" {
		if of, _ := w.memory.kept.GetIfPresent(id); len(of) > 0 {
			return of[0]
		}
	}
	return w.memory.Find(id, f)
}

// begin does the same as Cache.Begin, but leaves out the guard that w.leftOut names. One guard is the rule that an
// answer is kept only if somebody else asked for the asset shortly before.
func (w *world) begin(asset int) *Reading {
	m, id, now := w.memory, nameOf(asset), time.Now()
	if w.leftOut == "KEEP_ONCE" {
		m.recent.again(id, now)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := m.Begin(id)
	since := now.Sub(w.asked[asset])
	w.asked[asset] = now
	if r == nil && (w.leftOut == "KEEP_CHANGING" || w.loose[asset]) {
		m.mu.Lock()
		defer m.mu.Unlock()
		a := m.activity(id)
		a.readings++
		return &Reading{memory: m, id: id, changes: a.last}
	}
	if since > longestMemory {
		w.expired++
		if r != nil {
			w.breaks("asset %d: got an answer to keep %v after the request before, want none", asset, since)
		}
	}
	return r
}

// noteKept checks whether the memory has the answer. If so, it notes how many changes of the asset have begun.
func (w *world) noteKept(asset int, f Form) {
	has := w.memory.Find(nameOf(asset), f) != nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if has {
		w.kept[fmt.Sprint(asset, f)] = w.begun[asset]
	}
}

// noteEviction counts an answer that is gone although its asset has not changed.
func (w *world) noteEviction(asset int, f Form) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(asset, f)
	if begun, was := w.kept[key]; was && begun == w.begun[asset] {
		w.evicted++
	}
	delete(w.kept, key)
}

// repeat calls f again and again until ctx ends. The argument `most` is the longest pause between two calls.
func (w *world) repeat(ctx context.Context, most time.Duration, f func()) {
	for ctx.Err() == nil {
		f()
		w.pause(most)
	}
}

// simulate runs a world and returns it.
func simulate(seed uint64, leftOut string) *world {
	w := &world{leftOut: leftOut, random: rand.New(rand.NewPCG(seed, seed)), kept: map[string]int{}}
	most := int64(bytesOfWorld)
	if leftOut == "UNBOUNDED" {
		most = 1 << 30
	}
	w.memory = New(most, time.Now)
	ctx, cancel := context.WithTimeout(context.Background(), worldLasts)
	defer cancel()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { w.repeat(ctx, 20*time.Second, w.write) })
	}
	for range 6 {
		all.Go(func() {
			w.repeat(ctx, 2*time.Second, func() {
				asset := min(w.choose(hotAssets), w.choose(hotAssets)) // some assets are asked for more often
				w.look(asset, formsOfWorld[w.choose(len(formsOfWorld))])
			})
		})
	}
	for asset := hotAssets; asset < assetsOfWorld; asset++ {
		all.Go(func() {
			for ctx.Err() == nil {
				w.look(asset, formsOfWorld[0])
				time.Sleep(time.Minute + time.Duration(w.choose(3))*time.Minute)
			}
		})
	}
	all.Go(func() {
		w.repeat(ctx, time.Second, func() {
			w.memory.kept.CleanUp()
			if got := w.memory.kept.WeightedSize(); got > bytesOfWorld {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.breaks("got answers of %d bytes, want at most %d", got, bytesOfWorld)
			}
		})
	})
	all.Wait()
	if got := len(w.memory.busy); got != 0 {
		w.breaks("got %d assets busy at the end, want none", got)
	}
	return w
}

func TestSimulation(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			w := simulate(seed, "")
			if len(w.broken) > 0 {
				t.Errorf("seed %d: got %d broken promises, want none; the first: %s", seed, len(w.broken), w.broken[0])
			}
			m := w.memory
			t.Logf("seed %d: %d readings, %d from memory, %d answers dropped, %d refused, %d evicted, %d assets forgotten",
				seed, w.read, w.recalled, m.dropped.Load(), m.refused.Load(), w.evicted, w.expired)
			if w.recalled < 100 || m.dropped.Load() == 0 || m.refused.Load() == 0 || w.evicted == 0 || w.expired <= assetsOfWorld {
				t.Errorf("seed %d: a part of the memory had nothing to do", seed)
			}
		})
	}
}

// TestSimulationCatches switches off each guard in turn. The simulation must notice this; otherwise its success
// would prove nothing.
func TestSimulationCatches(t *testing.T) {
	for _, c := range []struct{ guard, without string }{
		{"LATE", "a change is announced after its write"},
		{"DONE_EARLY", "a change is done before its write"},
		{"NO_DROP", "a change drops nothing"},
		{"DROP_ONE_FORM", "a change drops one of two forms"},
		{"KEEP_UNDERWAY", "a reading that was under way at a change is kept"},
		{"KEEP_CHANGING", "a reading that begins during a change is kept"},
		{"ONE_BATCH", "the end of one change ends another one of the asset"},
		{"TIDY_EARLY", "the changes are forgotten while a reading is under way"},
		{"ANY_FORM", "an answer is found in another form"},
		{"KEEP_ONCE", "an asset that was asked for long ago is kept"},
		{"UNBOUNDED", "nothing is evicted"},
	} {
		t.Run(c.guard, func(t *testing.T) {
			for seed := range uint64(100) {
				var w *world
				synctest.Test(t, func(*testing.T) { w = simulate(seed, c.guard) })
				if len(w.broken) > 0 {
					t.Logf("seed %d: %d broken promises; the first: %s", seed, len(w.broken), w.broken[0])
					return
				}
			}
			t.Errorf("%s: got no broken promise in 100 runs, want some", c.without)
		})
	}
}
