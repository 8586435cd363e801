// Package storetest checks that a store keeps the contract of registry.Store. Run checks each sentence of the
// contract. CheckFeed checks the properties F1 to F5 under load. Both use only the methods of the store.
package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/assetsvc/internal/registry"
)

// Opener opens the store with the given name, and creates it if it does not exist. At the end of the test the store
// is closed, if the test has not closed it before.
type Opener func(t *testing.T, name string, now func() time.Time) registry.Store

// start is the time at which the clock of a test starts.
var start = time.Date(2025, 11, 20, 12, 0, 0, 123456000, time.UTC)

// Run checks the contract of registry.Store, with two exceptions: CheckFeed checks the feed under load, and a
// store that can return ErrVoid must test that itself.
func Run(t *testing.T, open Opener) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"Create stores revision 1", testCreate},
		{"Create refuses an id that is taken", testCreateTwice},
		{"only one Replace of a revision succeeds", testReplace},
		{"an id without an asset is not found", testNotFound},
		{"positions follow the clock and never step back", testPositions},
		{"no time of the store's clock is after a later position", testNow},
		{"a page has the listed assets in order", testPage},
		{"a change moves an asset to the end of the feed", testMove},
		{"an asset enters the feed when it is listed", testListing},
		{"a mode selects real assets, test assets or all in order", testModes},
		{"an asset moves between real and test assets", testMovesOfMode},
		{"the list of a broker has his assets in order", testOwners},
		{"each walk along the list of a broker has all of his assets", testOwnWalks},
		{"a removed draft is gone, and its id stays taken", testRemoved},
		{"a reference stands for one id", testReferences},
		{"a body belongs to the position of its entry", testBodies},
		{"a page ends before its bodies are too large", testLargeBodies},
		{"a change is read and encoded once, however many follow", testLive},
		{"Get refuses a body above the limit", testLarge},
		{"Look shows a body only to its function", testLook},
		{"numbers count the assets of a day", testNumbers},
		{"acknowledged writes survive a restart", testReopen},
		{"calls with an ended context fail", testCancelled},
		{"the store and its callers share no memory", testNothingShared},
		{"the record keeps each change", testRecord},
		{"Reseal replaces only the token record", testReseal},
		{"a closed store refuses calls", testClose},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// NewID returns a random id.
func NewID() string {
	id := make([]byte, 16)
	rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

func asset(id string, listed bool) registry.Record {
	return registry.Record{ID: id, Listed: listed, Sealed: "sealed-" + id, Body: []byte(`{"id":"` + id + `"}`)}
}

func mustCreate(t *testing.T, s registry.Store, r registry.Record) registry.Record {
	t.Helper()
	position, err := s.Create(t.Context(), r)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	r.Position, r.Revision = position, 1
	return r
}

func mustReplace(t *testing.T, s registry.Store, r registry.Record) registry.Record {
	t.Helper()
	position, err := s.Replace(t.Context(), r)
	if err != nil {
		t.Fatalf("replace: %v", err)
	}
	r.Position, r.Revision = position, r.Revision+1
	return r
}

func mustPage(t *testing.T, s registry.Store, q registry.Query) []registry.Entry {
	t.Helper()
	page, err := s.Page(t.Context(), q)
	if err != nil {
		t.Fatalf("page: %v", err)
	}
	return page.Entries
}

// wholeBytes compares two slices of bytes in one call, which is far quicker than byte by byte. It does not apply
// if both slices are empty; EquateEmpty compares those.
var wholeBytes = cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))

// anyEntered ignores where an asset entered its list: a store tells it only until the horizon has passed it, which
// happens at any time.
var anyEntered = cmpopts.IgnoreFields(registry.Record{}, "Entered")

func checkStored(t *testing.T, s registry.Store, want registry.Record) {
	t.Helper()
	got, err := s.Get(t.Context(), want.ID, registry.AnySize)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), wholeBytes, anyEntered); diff != "" {
		t.Errorf("the asset differs (-want +got):\n%s", diff)
	}
}

// checkEntries compares ids and positions, but not bodies.
func checkEntries(t *testing.T, got []registry.Entry, want ...registry.Record) {
	t.Helper()
	entries := make([]registry.Entry, len(want))
	for i, r := range want {
		entries[i] = registry.Entry{ID: r.ID, Position: r.Position, Test: r.Test}
	}
	positions := cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(registry.Entry{}, "Body")}
	if diff := cmp.Diff(entries, got, positions); diff != "" {
		t.Errorf("the page differs (-want +got):\n%s", diff)
	}
}

func testCreate(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	for _, r := range []registry.Record{
		asset(NewID(), false),
		{ID: NewID(), Listed: true, Test: true, Sealed: "", Body: []byte(`{}`)},
		{ID: NewID(), State: "draft", Sealed: "x", Body: []byte(`{}`)},
		{ID: NewID(), Listed: true, Test: true, State: "deleted", Sealed: "x", Origin: "x", Body: []byte(`{}`)},
		{ID: NewID(), Listed: true, Body: []byte(`{"title":"Нежитлове приміщення 𐍈","quantity":123456789012345678.5}`)},
		{ID: NewID(), Listed: true, Sealed: "x", Origin: "where it came from", Body: []byte(`{}`)},
		{ID: NewID(), Position: 1, Revision: 7, Listed: true, Body: []byte(`{"ignored":["Position","Revision"]}`)},
		{ID: NewID(), Origin: "x"},
		{ID: NewID(), Body: slices.Repeat([]byte("0123456789abcdef"), 1<<16)},
	} {
		checkStored(t, s, mustCreate(t, s, r))
	}
}

func testCreateTwice(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	first := mustCreate(t, s, asset(NewID(), true))
	again := first
	again.Body = []byte(`{"other":1}`)
	if _, err := s.Create(t.Context(), again); !errors.Is(err, registry.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	checkStored(t, s, first)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 10}), first)
}

func testReplace(t *testing.T, open Opener) {
	s := open(t, "a", time.Now)
	r := mustCreate(t, s, asset(NewID(), true))
	const racers = 8
	var wg sync.WaitGroup
	errs := make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			mine := r
			mine.Body = fmt.Appendf(nil, `{"racer":%d}`, i)
			_, errs[i] = s.Replace(t.Context(), mine)
		})
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			t.Errorf("racers %d and %d: got nil for both, want ErrStale for one", won, i)
		case !errors.Is(err, registry.ErrStale):
			t.Errorf("racer %d: got %v, want ErrStale", i, err)
		}
	}
	got, err := s.Get(t.Context(), r.ID, registry.AnySize)
	if err != nil || won < 0 {
		t.Fatalf("got winner %d and error %v, want one winner and nil", won, err)
	}
	if string(got.Body) != fmt.Sprintf(`{"racer":%d}`, won) || got.Revision != 2 || got.Position <= r.Position {
		t.Errorf("got %+v, want revision 2 by racer %d", got, won)
	}
}

func testNotFound(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	for _, id := range []string{
		NewID(), "", "x", NewID() + "00", "ABCDEF00112233445566778899AABBCC", "../../../../../etc/passwd",
	} {
		if _, err := s.Get(t.Context(), id, registry.AnySize); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("get %q: got %v, want ErrNotFound", id, err)
		}
		_, err := s.Replace(t.Context(), registry.Record{ID: id, Revision: 1})
		if !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("replace %q: got %v, want ErrNotFound", id, err)
		}
	}
}

// Promises: datemodified
func testPositions(t *testing.T, open Opener) {
	now := start
	var clock atomic.Pointer[time.Time] // atomic, because a store may also read the clock in the background
	clock.Store(&now)
	s := open(t, "a", func() time.Time { return *clock.Load() })
	var last int64
	for i, step := range []time.Duration{
		0, 0, time.Second, -time.Hour, 0, time.Microsecond, 2 * time.Hour, -2 * time.Hour,
	} {
		now := clock.Load().Add(step)
		clock.Store(&now)
		r := mustCreate(t, s, asset(NewID(), i%2 == 0))
		if want := max(now.UnixMicro(), last+1); r.Position != want {
			t.Errorf("step %d: got position %d, want %d", i, r.Position, want)
		}
		last = r.Position
	}
}

// testNow reads the store's clock before each write, while the machine's clock takes small steps back. The
// position of the write must not be below the time that was read.
func testNow(t *testing.T, open Opener) {
	var reads atomic.Int64
	s := open(t, "a", func() time.Time { // every third time is half a second too early
		n := reads.Add(1)
		return start.Add(time.Duration(n)*time.Millisecond - time.Duration(n%3/2)*time.Second/2)
	})
	clock, ok := s.(interface{ Now() time.Time })
	if !ok {
		t.Fatalf("got a %T without a clock, want one", s)
	}
	for i := range 20 {
		before := clock.Now()
		r := mustCreate(t, s, asset(NewID(), true))
		if r.Position < before.UnixMicro() {
			t.Errorf("creation %d: got position %d, want at least the clock's time before it, %d", i, r.Position,
				before.UnixMicro())
		}
	}
}

func testPage(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	if got := mustPage(t, s, registry.Query{Limit: 10}); len(got) != 0 {
		t.Errorf("an empty store: got page %v, want no entries", got)
	}
	var all []registry.Record
	for range 10 {
		all = append(all, mustCreate(t, s, asset(NewID(), true)))
	}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	first, last := all[0].Position, all[9].Position
	for _, c := range []struct {
		name string
		q    registry.Query
		want []registry.Record
	}{
		{"from the oldest", registry.Query{Limit: 4}, all[:4]},
		{"a limit above the number of assets", registry.Query{Limit: 1000}, all},
		{"after the offset of an asset", registry.Query{Offset: all[3].Position, Limit: 4}, all[4:8]},
		{"after an offset that no asset has", registry.Query{Offset: first - 1, Limit: 2}, all[:2]},
		{"after the newest", registry.Query{Offset: last, Limit: 4}, nil},
		{"after an offset in the far future", registry.Query{Offset: 1 << 60, Limit: 4}, nil},
		{"from the newest", registry.Query{Limit: 4, Descending: true}, backwards[:4]},
		{"before an offset", registry.Query{Offset: all[4].Position, Limit: 3, Descending: true}, backwards[6:9]},
		{"before the oldest", registry.Query{Offset: first, Limit: 4, Descending: true}, nil},
		{"before an offset in the far future", registry.Query{Offset: 1 << 60, Limit: 3, Descending: true},
			backwards[:3]},
		{"before an offset in the far past", registry.Query{Offset: 1, Limit: 3, Descending: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { checkEntries(t, mustPage(t, s, c.q), c.want...) })
	}
}

func testMove(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	a, b := mustCreate(t, s, asset(NewID(), true)), mustCreate(t, s, asset(NewID(), true))
	a.Origin = "moved"
	a = mustReplace(t, s, a)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 10}), b, a)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 10, Offset: b.Position}), a)
	checkStored(t, s, a)
}

func testListing(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	draft, other := mustCreate(t, s, asset(NewID(), false)), mustCreate(t, s, asset(NewID(), true))
	draft = mustReplace(t, s, draft)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 10, Mode: registry.All}), other)
	draft.Listed = true
	draft = mustReplace(t, s, draft)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 10}), other, draft)
	checkStored(t, s, draft)
}

func testModes(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	var all, real, tests []registry.Record
	for i := range 12 {
		r := asset(NewID(), true)
		r.Test = i%3 == 0
		r = mustCreate(t, s, r)
		all = append(all, r)
		if r.Test {
			tests = append(tests, r)
		} else {
			real = append(real, r)
		}
	}
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 100, Mode: registry.Real}), real...)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 100, Mode: registry.Test}), tests...)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 100, Mode: registry.All}), all...)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 5, Offset: all[4].Position, Mode: registry.All}), all[5:10]...)
	slices.Reverse(all)
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 7, Descending: true, Mode: registry.All}), all[:7]...)
}

// testMovesOfMode makes a real asset a test asset, and then a real one again. Each feed must have the asset only
// while it belongs there.
func testMovesOfMode(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	check := func(mode registry.Mode, want ...registry.Record) {
		t.Helper()
		checkEntries(t, mustPage(t, s, registry.Query{Limit: 10, Mode: mode}), want...)
		slices.Reverse(want)
		checkEntries(t, mustPage(t, s, registry.Query{Limit: 10, Mode: mode, Descending: true}), want...)
	}
	moves, real := mustCreate(t, s, asset(NewID(), true)), mustCreate(t, s, asset(NewID(), true))
	test := asset(NewID(), true)
	test.Test = true
	test = mustCreate(t, s, test)
	for range 2 {
		moves.Test = true
		moves = mustReplace(t, s, moves)
		check(registry.Real, real)
		check(registry.Test, test, moves)
		check(registry.All, real, test, moves)
		moves.Test = false
		moves = mustReplace(t, s, moves)
		check(registry.Real, real, moves)
		check(registry.Test, test)
		check(registry.All, real, test, moves)
	}
	moves.Listed = false
	moves = mustReplace(t, s, moves)
	check(registry.Real, real)
	check(registry.All, real, test)
	checkStored(t, s, moves)
}

func testBodies(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	a := mustCreate(t, s, asset(NewID(), true))
	a.Body = []byte(`{"title":"new"}`)
	a = mustReplace(t, s, a)
	for _, c := range []struct {
		name   string
		bodies int
		want   []byte
	}{
		{"with bodies", registry.AnySize, a.Body},
		{"without bodies", 0, nil},
	} {
		want := []registry.Entry{{ID: a.ID, Position: a.Position, Body: c.want}}
		if diff := cmp.Diff(want, mustPage(t, s, registry.Query{Limit: 10, Bodies: c.bodies})); diff != "" {
			t.Errorf("%s: the page differs (-want +got):\n%s", c.name, diff)
		}
	}
}

// Promises: page-size
func testLargeBodies(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	var all []registry.Record
	for _, size := range []int{10, 20, 30, 100, 1, 1, 40} {
		r := asset(NewID(), true)
		r.Body = slices.Repeat([]byte("x"), size)
		all = append(all, mustCreate(t, s, r))
	}
	for _, c := range []struct {
		name  string
		query registry.Query
		want  []registry.Record
	}{
		{"bodies of exactly the size limit", registry.Query{Limit: 10, Bodies: 60}, all[:3]},
		{"a size limit one byte lower", registry.Query{Limit: 10, Bodies: 59}, all[:2]},
		{"an entry limit below the size limit", registry.Query{Limit: 2, Bodies: 60}, all[:2]},
		{"a body above the size limit", registry.Query{Limit: 10, Bodies: 60, Offset: all[2].Position}, all[3:4]},
		{"small bodies after a large one", registry.Query{Limit: 10, Bodies: 60, Offset: all[3].Position}, all[4:]},
		{"newest first", registry.Query{Limit: 10, Bodies: 41, Descending: true}, []registry.Record{all[6], all[5]}},
		{"no size limit without bodies", registry.Query{Limit: 10}, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustPage(t, s, c.query)
			checkEntries(t, got, c.want...)
			for i, e := range got {
				if want := c.want[i].Body; c.query.Bodies > 0 && string(e.Body) != string(want) {
					t.Errorf("entry %d: got a body of %d bytes, want %d", i, len(e.Body), len(want))
				}
			}
			page, err := s.Page(t.Context(), c.query)
			want := c.want[len(c.want)-1].Position // position from which a client goes on
			if err != nil || !c.query.Descending && page.Upto != want {
				t.Errorf("got a page up to %d, %v; want it up to its last asset, %d", page.Upto, err, want)
			}
		})
	}
}

func testLarge(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	r := asset(NewID(), true)
	r.Body = []byte("0123456789")
	r = mustCreate(t, s, r)
	if _, err := s.Get(t.Context(), r.ID, 9); !errors.Is(err, registry.ErrLarge) {
		t.Errorf("10 bytes of at most 9: got %v, want ErrLarge", err)
	}
	if got, err := s.Get(t.Context(), r.ID, 10); err != nil || len(got.Body) != 10 {
		t.Errorf("10 bytes of at most 10: got %d bytes, %v; want 10 bytes", len(got.Body), err)
	}
	r.Body = []byte("01234567890123456789")
	r = mustReplace(t, s, r)
	if _, err := s.Get(t.Context(), r.ID, 19); !errors.Is(err, registry.ErrLarge) {
		t.Errorf("20 bytes of at most 19 after a change: got %v, want ErrLarge", err)
	}
	if _, err := s.Get(t.Context(), NewID(), 0); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("a missing asset of at most 0 bytes: got %v, want ErrNotFound", err)
	}
}

// testLook compares the results of Look with those of Get, for all kinds of limits.
func testLook(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	r := asset(NewID(), true)
	r.Origin, r.Body = "where it came from", []byte("0123456789")
	r = mustReplace(t, s, mustCreate(t, s, r))
	want, err := s.Get(t.Context(), r.ID, registry.AnySize)
	if err != nil {
		t.Fatal(err)
	}
	want.Body = nil
	failed := errors.New("the function failed")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		id   string
		most int
		see  error // result of the function
		want error
	}{
		{"within the limit", t.Context(), r.ID, 10, nil, nil},
		{"above the limit", t.Context(), r.ID, 9, nil, registry.ErrLarge},
		{"with a function that fails", t.Context(), r.ID, registry.AnySize, failed, failed},
		{"a missing asset", t.Context(), NewID(), registry.AnySize, nil, registry.ErrNotFound},
		{"no id", t.Context(), "x", registry.AnySize, nil, registry.ErrNotFound},
		{"too late", gone, r.ID, registry.AnySize, nil, context.Canceled},
	} {
		saw := ""
		got, err := s.Look(c.ctx, c.id, c.most, func(body []byte) error {
			saw += string(body)
			return c.see
		})
		sees := c.want == nil || c.see != nil
		if !errors.Is(err, c.want) || (saw == "0123456789") != sees || c.want == nil && !cmp.Equal(got, want, anyEntered) {
			t.Errorf("%s: got %+v, %v after the body %q; want %+v, %v", c.name, got, err, saw, want, c.want)
		}
		if errors.Is(c.want, registry.ErrLarge) || c.see != nil {
			c.want = nil
		}
		got, err = s.Look(c.ctx, c.id, c.most, nil)
		if !errors.Is(err, c.want) || c.want == nil && !cmp.Equal(got, want, anyEntered) {
			t.Errorf("%s, without a function: got %+v, %v; want %+v, %v", c.name, got, err, want, c.want)
		}
	}
}

// Promises: assetid, assetid-daily
func testNumbers(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	for _, c := range []struct {
		day  string
		want int
	}{{"2026-11-20", 1}, {"2026-11-20", 2}, {"2026-11-21", 1}, {"2026-11-20", 3}, {"2026-11-21", 2}} {
		if got, err := s.NextNumber(t.Context(), c.day); err != nil || got != c.want {
			t.Errorf("number of %s: got %d, %v; want %d", c.day, got, err, c.want)
		}
		mustCreate(t, s, asset(NewID(), false))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a", at(start))
	for _, c := range []struct {
		day  string
		used int
	}{{"2026-11-20", 3}, {"2026-11-21", 2}} {
		if got, err := s.NextNumber(t.Context(), c.day); err != nil || got <= c.used {
			t.Errorf("number of %s after a restart: got %d, %v; want more than %d", c.day, got, err, c.used)
		}
	}
	seen := sync.Map{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				n, err := s.NextNumber(t.Context(), "2026-11-22")
				if _, twice := seen.LoadOrStore(n, true); twice || err != nil {
					t.Errorf("got number %d (given before: %v), %v; want a new number", n, twice, err)
				}
			}
		})
	}
	wg.Wait()
}

func testReopen(t *testing.T, open Opener) {
	now := start
	s := open(t, "a", func() time.Time { return now })
	a, b := mustCreate(t, s, asset(NewID(), true)), mustCreate(t, s, asset(NewID(), false))
	a = mustReplace(t, s, a)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now = start.Add(-time.Hour)
	s = open(t, "a", func() time.Time { return now })
	checkStored(t, s, a)
	checkStored(t, s, b)
	c := mustCreate(t, s, asset(NewID(), true))
	if c.Position <= a.Position {
		t.Errorf("after a restart: got position %d, want more than %d", c.Position, a.Position)
	}
	checkEntries(t, mustPage(t, s, registry.Query{Limit: 10}), a, c)
}

func testCancelled(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	a := mustCreate(t, s, asset(NewID(), true))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	id := NewID()
	_, created := s.Create(gone, asset(id, true))
	_, found := s.Get(t.Context(), id, registry.AnySize)
	if (created == nil) != (found == nil) {
		t.Errorf("got %v from create and %v from get, want both nil or neither", created, found)
	}
	if _, err := s.Get(gone, a.ID, registry.AnySize); err == nil {
		t.Error("get: got nil, want an error")
	}
	if _, err := s.Log(gone, a.ID, registry.LogQuery{Limit: 1}); err == nil {
		t.Error("log: got nil, want an error")
	}
	if _, err := s.Changes(gone, registry.ChangesQuery{Limit: 1}); err == nil {
		t.Error("changes: got nil, want an error")
	}
	if _, err := s.Page(gone, registry.Query{Limit: 1}); err == nil {
		t.Error("page: got nil, want an error")
	}
	checkStored(t, s, mustReplace(t, s, a))
}

func testNothingShared(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	r := asset(NewID(), true)
	want := string(r.Body)
	mustCreate(t, s, r)
	copy(r.Body, "XXXX")
	got, err := s.Get(t.Context(), r.ID, registry.AnySize)
	if err != nil || string(got.Body) != want {
		t.Fatalf("got %s, %v; want %s", got.Body, err, want)
	}
	copy(got.Body, "YYYY")
	if got, err = s.Get(t.Context(), r.ID, registry.AnySize); err != nil || string(got.Body) != want {
		t.Errorf("got %s, %v; want %s", got.Body, err, want)
	}
}

func testClose(t *testing.T, open Opener) {
	s := open(t, "a", at(start))
	r := mustCreate(t, s, asset(NewID(), true))
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("ready: got %v, want nil", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: got %v, want nil", err)
		}
	}
	if _, err := s.Create(t.Context(), asset(NewID(), true)); err == nil {
		t.Error("create: got nil, want an error")
	}
	if _, err := s.Replace(t.Context(), r); err == nil {
		t.Error("replace: got nil, want an error")
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("ready after close: got nil, want an error")
	}
}
