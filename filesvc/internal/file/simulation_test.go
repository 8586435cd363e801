package file

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// world runs actors, one step at a time, in a random order that depends on the seed. Hours may pass between any
// two steps, and the clock may be set.
type world struct {
	*bench
	passed  time.Duration // time since the start by a clock that nobody sets
	random  *rand.Rand
	actors  int
	waiting chan chan struct{} // each actor that waits sends the channel for its turn
	ended   chan struct{}      // each actor that has ended sends a value
	turns   []chan struct{}    // the channels of the actors that wait

	feed    []string // for each committed document, the id of its file
	acked   []string // ids of files whose upload was acknowledged
	faults  []string
	error   time.Duration // how far the clock is ahead
	counts  int64         // counts of the collector between which a day has passed
	reading int           // bound of the pause within a reading of the feed
	readers int           // number of times that the follower will still read the feed
}

func newWorld(seed uint64) *world {
	w := &world{
		bench: newBench(), random: rand.New(rand.NewPCG(seed, 1)),
		waiting: make(chan chan struct{}), ended: make(chan struct{}),
		counts: []int64{2, 4, 7}[seed%3], reading: []int{1, 16, 40, 120}[seed/3%4],
	}
	w.memory.step = func(string) error { w.wait(); return nil }
	w.bytes = slow{w.memory, w}
	return w
}

// slow is a store of bytes whose answer to Put may take long.
type slow struct {
	*memory
	world *world
}

func (s slow) Put(ctx context.Context, name string, from io.Reader) error {
	err := s.memory.Put(ctx, name, from)
	if err == nil {
		s.world.pause(60)
	}
	return err
}

// wait returns when it is the actor's turn.
func (w *world) wait() {
	turn := make(chan struct{})
	w.waiting <- turn
	<-turn
}

// start starts an actor, which waits for its first turn.
func (w *world) start(actor func()) {
	w.actors++
	go func() {
		w.wait()
		actor()
		w.ended <- struct{}{}
	}()
	w.settle()
}

// settle waits until the running actor waits for its next turn, or has ended.
func (w *world) settle() {
	select {
	case turn := <-w.waiting:
		w.turns = append(w.turns, turn)
	case <-w.ended:
		w.actors--
	}
}

func (w *world) run() {
	for w.actors > 0 {
		if w.random.IntN(4) == 0 {
			w.pass(time.Duration(w.random.Int64N(int64(9 * time.Hour))))
		}
		i := w.random.IntN(len(w.turns))
		turn := w.turns[i]
		w.turns = slices.Delete(w.turns, i, i+1)
		close(turn)
		w.settle()
	}
}

// clockErrors are the errors of the clock. Mostly it is right.
var clockErrors = []time.Duration{
	0, 0, 0, 0, -10 * year, -keep, -time.Minute, time.Minute, keep, 10 * year,
}

const year = 365 * keep

// pass lets time pass, and sometimes sets the clock.
func (w *world) pass(d time.Duration) {
	w.passed += d
	if w.random.IntN(8) == 0 {
		w.error = clockErrors[w.random.IntN(len(clockErrors))]
	}
	w.clock = start.Add(w.passed + w.error)
}

// pause lets other actors run for a random number of turns, which is less than the given number.
func (w *world) pause(steps int) {
	for range w.random.IntN(steps) {
		w.wait()
	}
}

// document claims a file, and commits a document that names it. If nearly a day has passed since the claim, it
// commits nothing.
func (w *world) document(f File) {
	w.pause(40)
	begun := w.passed
	if _, err := w.Claim(context.Background(), f.ID, Claim{MD5: f.MD5, Signed: true}); err != nil {
		return
	}
	w.pause(6)
	if w.passed-begun < keep-fresh {
		w.feed = append(w.feed, f.ID)
	}
}

func (w *world) upload(f File) {
	w.pause(8)
	if _, err := w.Upload(context.Background(), broker, f.ID, upload("content")); err == nil {
		w.acked = append(w.acked, f.ID)
	}
}

// follow reads the feed to its end, w.readers times.
func (w *world) follow() {
	for ; w.readers > 0; w.readers-- {
		reader := Follower{Service: w.Service, Feed: w, Awaited: w.memory, Documents: w}
		if err := reader.Read(context.Background()); err != nil {
			w.faults = append(w.faults, err.Error())
		}
		w.pause(3)
	}
}

// After implements Feed. Other actors may run before and after it reads.
func (w *world) After(_ context.Context, position int64) (named []Named, next int64, err error) {
	w.wait()
	next = min(position+1, int64(len(w.feed)))
	for _, id := range slices.Clone(w.feed[position:next]) {
		named = append(named, Named{Naming{id, "asset"}, true, false})
	}
	w.pause(w.reading)
	w.wait()
	return named, next, nil
}

// Complete implements Documents. The documents of a world need no completion.
func (w *world) Complete(context.Context, string, File) error { return nil }

// collect runs the collector of a process of its own. It counts days or parts of days instead of hours.
func (w *world) collect() {
	own := NewService(w.files, w.readings, w.bytes, w.limits, w.now)
	own.hour, own.day = keep/time.Duration(w.counts-1), w.counts
	for range 12 {
		w.pause(4)
		if _, err := own.Collect(context.Background(), func() time.Duration { return w.passed }); err != nil {
			w.faults = append(w.faults, err.Error())
		}
	}
}

// simulate runs a world, and returns the faults at the end. The function `spoil` may switch off a guard.
func simulate(seed uint64, spoil func(*world)) []string {
	w := newWorld(seed)
	free := w.memory.step
	w.memory.step = func(string) error { return nil }
	var files []File
	for range 2 {
		f, err := w.Register(context.Background(), broker, sum("content"))
		if err != nil {
			return []string{err.Error()}
		}
		files = append(files, f)
	}
	w.memory.step, w.readers = free, 8
	spoil(w)
	for _, f := range files {
		w.start(func() { w.document(f) })
		w.start(func() { w.upload(f) })
		w.start(func() { w.document(f) })
	}
	w.start(w.follow)
	w.start(w.collect)
	w.start(w.collect)
	w.run()
	w.memory.step = func(string) error { return nil }
	return append(w.faults, w.check()...)
}

// check returns what is wrong: a document names a file that was deleted, or a file has lost its bytes.
func (w *world) check() (wrong []string) {
	for _, id := range w.feed {
		if f := w.memory.files[id]; f.State != Registered && f.State != Stored {
			wrong = append(wrong, fmt.Sprintf("a document names a file in the state %q", f.State))
		}
	}
	for _, f := range w.memory.files {
		if f.State != Stored {
			continue
		}
		blob, err := w.Open(context.Background(), f)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		if text, err := io.ReadAll(blob); err != nil || string(text) != "content" {
			wrong = append(wrong, fmt.Sprintf("the file has %q, %v", text, err))
		}
	}
	for _, id := range w.acked {
		if f, known := w.memory.files[id]; known && f.State == Registered {
			wrong = append(wrong, "a file lost its bytes")
		}
	}
	return wrong
}

const seeds = 2000

func TestNoNamedFileIsCollected(t *testing.T) {
	for seed := range uint64(seeds) {
		if wrong := simulate(seed, func(*world) {}); len(wrong) > 0 {
			t.Fatalf("seed %d: got %s, want nothing wrong", seed, strings.Join(wrong, "; "))
		}
	}
}

// TestTheSimulationSeesEachGuard switches off one guard of the collection at a time. The simulation must notice
// it.
func TestTheSimulationSeesEachGuard(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*world)
	}{
		{"a named file may be collected", func(w *world) { w.files = forgetful{w.memory} }},
		{"a change does not name its revision", func(w *world) { w.files = unguarded{w.memory} }},
		{"the clock takes the place of the reading", func(w *world) { w.readings = onClock{w.memory, w} }},
		{"no hours are counted", func(w *world) { w.readings = uncounted{w.memory} }},
		{"a claim leaves the mark", func(w *world) { w.files = marked{w.memory} }},
		{"the end of a reading takes the place of its beginning", func(w *world) { w.readings = late{w.memory, w} }},
		{"the age is half a day or none", func(w *world) { w.readings = early{w.memory} }},
		{"the sweep does not tell the upload", func(w *world) { w.files = silent{w.memory} }},
	} {
		seen := false
		for seed := uint64(0); seed < 10*seeds && !seen; seed++ {
			seen = len(simulate(seed, c.spoil)) > 0
		}
		expect.ErrorIf(t, !seen, "%s: got nothing wrong, want a file that is gone", c.name)
	}
}

// forgetful lists all files as files that no document names.
type forgetful struct{ *memory }

func (s forgetful) Page(ctx context.Context, after string, limit int) ([]File, error) {
	files, err := s.memory.Page(ctx, after, limit)
	for i := range files {
		files[i].Named = false
	}
	return files, err
}

// unguarded stores a change of a file without a check of its revision.
type unguarded struct{ *memory }

func (s unguarded) Replace(_ context.Context, f File) error {
	defer s.mu.Unlock()
	if err := s.begin("replace"); err != nil {
		return err
	}
	if _, found := s.memory.files[f.ID]; !found {
		return ErrStale
	}
	s.memory.files[f.ID] = f
	return nil
}

// onClock claims that the feed was read to its end just now.
type onClock struct {
	*memory
	world *world
}

func (s onClock) Reading(ctx context.Context) (Reading, error) {
	r, err := s.memory.Reading(ctx)
	r.Complete, r.Began = s.world.clock, r.Hours
	return r, err
}

// uncounted returns a reading that began long after any file was seen, so only the stored times count.
type uncounted struct{ *memory }

func (s uncounted) Reading(ctx context.Context) (Reading, error) {
	r, err := s.memory.Reading(ctx)
	r.Began = r.Hours + 100
	return r, err
}

// marked keeps the mark and the time of a file that is claimed or uploaded.
type marked struct{ *memory }

func (s marked) Replace(ctx context.Context, f File) error {
	s.mu.Lock()
	if old := s.memory.files[f.ID]; f.Seen == 0 && old.Seen > 0 {
		f.Seen, f.Touched = old.Seen, old.Touched
	}
	s.mu.Unlock()
	return s.memory.Replace(ctx, f)
}

// late stores the time at which a reading ended, instead of its start.
type late struct {
	*memory
	world *world
}

func (s late) SetReading(ctx context.Context, r Reading) error {
	if !r.Complete.IsZero() {
		r.Complete, r.Began = s.world.clock, s.memory.reading.Hours
	}
	return s.memory.SetReading(ctx, r)
}

// early makes files collectable after at most half a day, instead of a day.
type early struct{ *memory }

func (s early) Reading(ctx context.Context) (Reading, error) {
	r, err := s.memory.Reading(ctx)
	r.Complete, r.Began = r.Complete.Add(keep-time.Hour), r.Began+2
	return r, err
}

// silent does not store the mark that the sweep has removed a blob of a file.
type silent struct{ *memory }

func (s silent) Replace(ctx context.Context, f File) error {
	s.mu.Lock()
	old := s.memory.files[f.ID]
	s.mu.Unlock()
	if old.Swept != f.Swept && old.Revision == f.Revision-1 {
		return nil
	}
	return s.memory.Replace(ctx, f)
}
