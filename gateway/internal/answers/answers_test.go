package answers

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// form is the form of the answers in tests that need only one form.
var form = Form{Version: "2.5"}

func answer(text string) *Answer { return &Answer{Form: form, Body: []byte(text)} }

// put keeps an answer in the memory. It acts like the second of two reads, because the memory keeps no answer of a
// first read.
func put(t *testing.T, m *Cache, id string, a *Answer) {
	t.Helper()
	m.recent.again(id, m.now())
	r := m.Begin(id)
	expect.FatalIf(t, r == nil, "got no reading of %s, want one at the second request", id)
	r.End(a)
}

func found(m *Cache, id string, f Form) string {
	if a := m.Find(id, f); a != nil {
		return string(a.Body)
	}
	return ""
}

func TestKeepsWhatIsAskedForTwiceInAMinute(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	m := New(1<<20, func() time.Time { return now })
	for i, want := range []bool{false, true, true} {
		r := m.Begin("a")
		expect.Equal(t, r != nil, want, "request %d: kept", i+1)
		if r != nil {
			r.End(nil)
		}
	}
	now = now.Add(3 * time.Minute)
	expect.ErrorIf(t, m.Begin("a") != nil, "three minutes later: got kept, want not")
	expect.Equal(t, len(m.busy), 0, "assets busy")
}

func TestKeepsEachForm(t *testing.T) {
	m := New(1<<20, time.Now)
	forms := []Form{{"2.4", false}, {"2.5", false}, {"2.5", true}}
	for _, f := range forms {
		put(t, m, "a", &Answer{Form: f, Body: fmt.Append(nil, f)})
	}
	for _, f := range forms {
		expect.Equal(t, found(m, "a", f), fmt.Sprint(f), "")
	}
	expect.Equal(t, found(m, "a", Form{"2.4", true}), "", "a form that nobody has read")
	m.Change([]string{"a"})()
	for _, f := range forms {
		expect.Equal(t, found(m, "a", f), "", "%v after a change", f)
	}
}

func TestKeepsAtMostItsBytes(t *testing.T) {
	const most = 1 << 20
	m := New(most, time.Now)
	for i := range 1000 {
		put(t, m, strconv.Itoa(i), answer(strings.Repeat("x", 10_000)))
	}
	m.kept.CleanUp()
	if got := m.kept.WeightedSize(); got > most || got < most/2 {
		t.Errorf("got %d bytes, want at most %d and at least half of it", got, most)
	}
	put(t, m, "large", answer(strings.Repeat("x", MaxBody+1)))
	if got := found(m, "large", form); got != "" {
		t.Errorf("got an answer of %d bytes, want none above %d", len(got), MaxBody)
	}
}

// rig is a memory in front of one asset. Each of the last three fields, if true, switches off one guard.
type rig struct {
	m      *Cache
	stored int // the stored value of the asset
	stale  bool

	late, unspoiled, unblocked bool
}

// reader returns the steps of a read: begin, read, end.
func (r *rig) reader() []func() {
	var reading *Reading
	var read int
	return []func(){
		func() {
			if reading = r.m.Begin("a"); reading == nil && r.unblocked {
				a := r.m.activity("a")
				a.readings++
				reading = &Reading{memory: r.m, id: "a", changes: a.last}
			}
		},
		func() { read = r.stored },
		func() {
			if reading == nil {
				return
			}
			if r.unspoiled {
				reading.changes = r.m.busy["a"].last
			}
			reading.End(answer(strconv.Itoa(read)))
		},
	}
}

// writer returns the steps of a change: announce, write, done.
func (r *rig) writer() []func() {
	var done func()
	announce := func() { done = r.m.Change([]string{"a"}) }
	write := func() { r.stored++ }
	if r.late {
		return []func(){write, announce, func() { done() }}
	}
	return []func(){announce, write, func() { done() }}
}

// look notes whether the memory has a stale answer now.
func (r *rig) look() {
	if got := found(r.m, "a", form); got != "" && got != strconv.Itoa(r.stored) {
		r.stale = true
	}
}

// interleave calls the function `visit` with each possible order of the steps of several actors. Actor i takes
// steps[i] steps. An order lists the actors, one for each step.
func interleave(steps []int, visit func(order []int)) {
	var order []int
	var next func()
	next = func() {
		last := true
		for i := range steps {
			if steps[i] == 0 {
				continue
			}
			last = false
			steps[i]--
			order = append(order, i)
			next()
			order = order[:len(order)-1]
			steps[i]++
		}
		if last {
			visit(order)
		}
	}
	next()
}

// TestNoOrderOfStepsMakesAnAnswerStale tries all orders of the steps of two reads and two batches of the same
// writer. It looks for a stale answer after each step.
func TestNoOrderOfStepsMakesAnAnswerStale(t *testing.T) {
	tests := []struct {
		name  string
		guard rig
		stale bool
	}{
		{"all guards", rig{}, false},
		{"announced after the write", rig{late: true}, true},
		{"readings are not spoiled", rig{unspoiled: true}, true},
		{"readings begin during a batch", rig{unblocked: true}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			orders, stale := 0, 0
			m := New(1<<20, time.Now)
			m.recent.again("a", m.now())
			interleave([]int{6, 3, 3}, func(order []int) {
				r := test.guard
				r.m = m
				actors := [][]func(){append(r.writer(), r.writer()...), r.reader(), r.reader()}
				for _, i := range order {
					actors[i][0]()
					actors[i] = actors[i][1:]
					r.look()
				}
				orders++
				if r.stale {
					stale++
				}
				if len(m.busy) != 0 {
					t.Fatalf("order %v: got %d assets busy at the end, want none", order, len(m.busy))
				}
				m.kept.InvalidateAll()
			})
			if got := stale > 0; got != test.stale {
				t.Errorf("got stale answers in %d of %d orders, want some: %t", stale, orders, test.stale)
			}
		})
	}
}

// TestReadersNeverSeeWhatWasReplaced runs writers and readers at the same time. A reader notes the last
// acknowledged change before it asks, and must get this change or a newer one.
func TestReadersNeverSeeWhatWasReplaced(t *testing.T) {
	const assets, changes = 8, 5_000
	m := New(1<<20, time.Now)
	var stored, acknowledged [assets]atomic.Int64
	var writing atomic.Bool
	writing.Store(true)
	var writers, readers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range changes {
				i := randtest.IntN(assets)
				done := m.Change([]string{strconv.Itoa(i)})
				runtime.Gosched()
				position := stored[i].Add(1)
				done()
				raise(&acknowledged[i], position)
				for range randtest.IntN(20) {
					runtime.Gosched()
				}
			}
		})
	}
	for range 4 {
		readers.Go(func() {
			for writing.Load() {
				i := randtest.IntN(assets)
				want := acknowledged[i].Load()
				if got := read(m, strconv.Itoa(i), &stored[i]); got < want {
					t.Errorf("asset %d: got %d, want at least %d", i, got, want)
				}
				runtime.Gosched()
			}
		})
	}
	writers.Wait()
	writing.Store(false)
	readers.Wait()
	t.Logf("found %d, missed %d, dropped %d, refused %d",
		m.found.Load(), m.missed.Load(), m.dropped.Load(), m.refused.Load())
	if m.found.Load() == 0 || m.dropped.Load() == 0 || m.refused.Load() == 0 {
		t.Error("want answers from memory, answers that are dropped, and answers that are refused")
	}
}

// read returns an asset from memory, or from the store if the memory does not have it.
func read(m *Cache, id string, stored *atomic.Int64) (position int64) {
	if a := m.Find(id, form); a != nil {
		position, _ = strconv.ParseInt(string(a.Body), 10, 64)
		return position
	}
	r := m.Begin(id)
	position = stored.Load()
	runtime.Gosched()
	if r != nil {
		r.End(answer(strconv.FormatInt(position, 10)))
	}
	return position
}

// raise stores the given value in a, unless a already has a higher value.
func raise(a *atomic.Int64, value int64) {
	for old := a.Load(); old < value && !a.CompareAndSwap(old, value); old = a.Load() {
	}
}
