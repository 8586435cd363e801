package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/follow"
	"asset-registry/shared/testing/expect"
)

// source is a feed to which tests add changes.
type source struct {
	mu      sync.Mutex
	entries []registry.Entry
	upto    int64
	reads   []registry.Query
	bodies  int // number of entries that were read with a body
	down    bool
}

func (s *source) List(_ context.Context, q registry.Query) (registry.FeedPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, q)
	if s.down {
		return registry.FeedPage{}, errors.New("the store is down")
	}
	page := registry.FeedPage{Upto: s.upto}
	for _, e := range s.entries {
		if e.Position > q.Offset {
			if q.Bodies == 0 {
				e.Body = nil
			} else {
				s.bodies++
			}
			page.Entries = append(page.Entries, e)
		}
	}
	return page, nil
}

func (s *source) grow(upto int64, entries ...registry.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upto, s.entries = upto, append(s.entries, entries...)
}

func entryAt(position int64, test bool, body string) registry.Entry {
	return registry.Entry{ID: fmt.Sprint("a", position), Position: position, Test: test, Body: []byte(body)}
}

// encoder encodes an entry as its position and body, and counts how often it is called.
type encoder struct{ calls atomic.Int64 }

func (c *encoder) encode(dst []byte, e registry.Entry) ([]byte, error) {
	c.calls.Add(1)
	if strings.Contains(string(e.Body), "damaged") {
		return nil, errors.New("it is damaged")
	}
	return fmt.Appendf(dst, `{"body":%q}`, e.Body), nil
}

func newWatcher(s *source) *Watcher {
	return New(s, func(p int64) string { return strconv.FormatInt(p, 10) }, 1, slog.New(slog.DiscardHandler))
}

// join follows a selection, and waits until its ring has started.
func join(t *testing.T, w *Watcher, s Selection, c *encoder) (*follow.Ring, func()) {
	t.Helper()
	ring, leave, err := w.Join(s, c.encode)
	expect.OK(t, err)
	time.Sleep(time.Second)
	return ring, leave
}

// read returns the entries of a ring after a position.
func read(ring *follow.Ring, after int64) (lines []string, covered bool) {
	v := ring.Read(after, 1<<20)
	defer v.Release()
	for _, e := range v.Entries {
		lines = append(lines, strings.TrimSuffix(string(e.Data), "\n"))
	}
	return lines, v.Covered
}

func checkLines(t *testing.T, name string, ring *follow.Ring, after int64, want ...string) {
	t.Helper()
	got, covered := read(ring, after)
	if diff := cmp.Diff(want, got); diff != "" || !covered {
		t.Errorf("%s: got covered %v; the lines differ (-want +got):\n%s", name, covered, diff)
	}
}

// inBubble runs a test in virtual time (testing/synctest).
func inBubble(t *testing.T, test func(*testing.T, *source, *Watcher)) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		w := newWatcher(s)
		defer w.Close()
		test(t, s, w)
	})
}

// TestEntriesHaveTheTermsOfFilters reads a ring that webhooks with filters follow. An entry must have its terms,
// unless the asset is deleted.
func TestEntriesHaveTheTermsOfFilters(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, w *Watcher) {
		ring, leave := join(t, w, Selection{Terms: true}, &encoder{})
		defer leave()
		s.grow(20, entryAt(10, false, `{"status":"active","owner":"b1"}`), entryAt(12, false, "no JSON"),
			entryAt(14, false, `{"status":"deleted","owner":"b1"}`))
		time.Sleep(time.Second)
		v := ring.Read(12, 1<<20)
		defer v.Release()
		if _, covered := read(ring, 0); covered {
			t.Error("got a ring that covers an entry which is no JSON, want that followers ask for it")
		}
		if len(v.Entries) != 1 || len(v.Entries[0].Terms) > 0 || !v.Covered {
			t.Errorf("got %d entries, want the deleted asset without terms", len(v.Entries))
		}
		s.grow(40, entryAt(30, false, `{"status":"active","owner":"b1"}`))
		time.Sleep(time.Second)
		last := ring.Read(20, 1<<20)
		defer last.Release()
		if len(last.Entries) != 1 || !slices.Equal(last.Entries[0].Terms, []string{"owner=b1", "status=active"}) {
			t.Errorf("got %+v, want an entry with the terms of its owner and status", last.Entries)
		}
		if string(last.Entries[0].Data) != "30 30 {\"body\":\"\"}\n" {
			t.Errorf("got the line %q, want no body, because the selection has no fields", last.Entries[0].Data)
		}
	})
}

func TestEachSelectionSeesItsEntries(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, w *Watcher) {
		s.grow(5, entryAt(5, false, "old"))
		all := &encoder{}
		realRing, leave1 := join(t, w, Selection{Fields: "*"}, all)
		testRing, leave2 := join(t, w, Selection{Mode: registry.Test, Fields: "*"}, all)
		bothRing, leave3 := join(t, w, Selection{Mode: registry.All}, all)
		s.grow(20, entryAt(10, false, "x"), entryAt(12, true, "y"))
		time.Sleep(time.Second)
		checkLines(t, "real assets", realRing, 5, `10 10 {"body":"x"}`)
		checkLines(t, "test assets", testRing, 5, `12 12 {"body":"y"}`)
		checkLines(t, "both, without fields", bothRing, 5, `10 10 {"body":""}`, `12 12 {"body":""}`)
		if upto, _ := testRing.Upto(); upto != 20 {
			t.Errorf("got a ring up to %d, want 20", upto)
		}
		leave1()
		leave2()
		leave3()
	})
}

// TestAChangeIsReadAndEncodedOnce has 50 followers of two selections. Each change must be read once, and encoded
// once for each selection.
func TestAChangeIsReadAndEncodedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, w *Watcher) {
		encoders := []*encoder{{}, {}}
		for i := range 50 {
			ring, leave := join(t, w, Selection{Fields: []string{"*", "title"}[i%2]}, encoders[i%2])
			defer leave()
			if _, started := ring.Upto(); !started {
				t.Fatalf("follower %d: got a ring that has not started", i)
			}
		}
		const changes = 100
		for i := range int64(changes) {
			s.grow(i+1, entryAt(i+1, false, "x"))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		s.mu.Lock()
		got := []int{s.bodies, int(encoders[0].calls.Load()), int(encoders[1].calls.Load())}
		s.mu.Unlock()
		expect.NoDiff(t, cmp.Diff([]int{changes, changes, changes}, got),
			"the reads of bodies and the encodings of each selection differ")
	})
}

func TestNothingIsReadWhileNobodyFollows(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, w *Watcher) {
		time.Sleep(time.Minute)
		s.mu.Lock()
		before := len(s.reads)
		s.mu.Unlock()
		expect.ErrorIf(t, before > 0, "before anybody follows: got %d reads, want 0", before)
		_, leave := join(t, w, Selection{}, &encoder{})
		leave()
		leave() // a second call must do nothing
		time.Sleep(time.Second)
		s.mu.Lock()
		before = len(s.reads)
		s.mu.Unlock()
		time.Sleep(time.Minute)
		s.mu.Lock()
		after := len(s.reads)
		s.mu.Unlock()
		expect.ErrorIf(t, after != before, "after the last has left: got %d more reads, want 0", after-before)
		s.grow(7)
		ring, leave := join(t, w, Selection{}, &encoder{})
		defer leave()
		if upto, started := ring.Upto(); upto != 7 || !started {
			t.Errorf("a new follower: got a ring up to %d, started %v; want 7, true", upto, started)
		}
	})
}

func TestAnEntryThatCannotBeSentIsLeftOut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, w *Watcher) {
		ring, leave := join(t, w, Selection{Fields: "*"}, &encoder{})
		defer leave()
		s.grow(9, entryAt(1, false, "x"), entryAt(2, false, strings.Repeat("x", follow.MaxData)), entryAt(3, false, "y"),
			entryAt(4, false, "damaged"), entryAt(5, false, "z"))
		time.Sleep(time.Second)
		for after, want := range []bool{false, false, false, false, true} {
			if _, covered := read(ring, int64(after)); covered != want {
				t.Errorf("after %d: got covered %v, want %v", after, covered, want)
			}
		}
		checkLines(t, "after what was left out", ring, 4, `5 5 {"body":"z"}`)
	})
}

func TestAFailedReadIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, s *source, w *Watcher) {
		ring, leave := join(t, w, Selection{}, &encoder{})
		defer leave()
		s.mu.Lock()
		s.down = true
		s.mu.Unlock()
		s.grow(3, entryAt(3, false, ""))
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.down = false
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		checkLines(t, "after the store is back", ring, 0, `3 3 {"body":""}`)
	})
}

func TestSelectionsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *source, w *Watcher) {
		var leaves []func()
		for i := range selections {
			_, leave, err := w.Join(Selection{Fields: fmt.Sprint(i)}, (&encoder{}).encode)
			expect.Must(t, err, "selection %d", i)
			leaves = append(leaves, leave)
		}
		if _, _, err := w.Join(Selection{Fields: "more"}, nil); !errors.Is(err, ErrTooMany) {
			t.Errorf("one more: got %v, want ErrTooMany", err)
		}
		if _, leave, err := w.Join(Selection{Fields: "1"}, nil); err != nil {
			t.Errorf("one that is followed already: got %v, want no error", err)
		} else {
			leave()
		}
		leaves[0]()
		if _, leave, err := w.Join(Selection{Fields: "more"}, (&encoder{}).encode); err != nil {
			t.Errorf("after one has left: got %v, want no error", err)
		} else {
			leave()
		}
		for _, leave := range leaves {
			leave()
		}
	})
}
