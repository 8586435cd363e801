package replica

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"asset-registry.example/client"
	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
)

func open(t *testing.T, dir string) *Replica {
	t.Helper()
	r, err := Open(dir)
	expect.OK(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func catchUp(t *testing.T, r *Replica, f *fake) error {
	t.Helper()
	return CatchUp(t.Context(), r, f.source(t), func(Progress) {})
}

func mustCatchUp(t *testing.T, r *Replica, f *fake) {
	t.Helper()
	expect.OK(t, catchUp(t, r, f))
	equal(t, r, f)
}

// equal fails the test unless the copy and the registry have the same assets.
func equal(t *testing.T, r *Replica, f *fake) {
	t.Helper()
	expect.ErrOf(t, nil, "")(r.Check())
	var got strings.Builder
	expect.OK(t, r.Walk(func(e Entry) error {
		got.WriteString(string(e.JSON) + "\n")
		return nil
	}))
	if diff := cmp.Diff(f.export(), got.String()); diff != "" {
		t.Errorf("the copy differs (-registry +copy):\n%s", diff)
	}
}

func TestACopyWithoutSnapshotsIsMadeOfTheFeed(t *testing.T) {
	f := newFake(t)
	r := open(t, t.TempDir())
	mustCatchUp(t, r, f)
	for i := range 10 {
		f.publish(i, 100+i)
	}
	mustCatchUp(t, r, f)
	f.publish(3, 200)
	mustCatchUp(t, r, f)
	want := State{Origin: f.URL, Position: client.Position{Offset: client.Timestamp(stampOf(200)), ServerID: "first"},
		Complete: true}
	expect.NoDiff(t, cmp.Diff(want, r.State()), "the state")
}

func TestFollowStoresChanges(t *testing.T) {
	f := newFake(t)
	r := open(t, t.TempDir())
	f.publish(1, 100)
	mustCatchUp(t, r, f)
	f.publish(2, 101)
	ctx, cancel := context.WithCancel(t.Context())
	err := Follow(ctx, r, f.source(t), func(done Progress) {
		if done.Assets == 1 {
			cancel()
		}
	})
	expect.Err(t, err, context.Canceled, "")
	equal(t, r, f)
}

func TestARunGoesOnWithTheFilesThatAreMissing(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	for i := range 20 {
		f.publish(i, 100+i)
	}
	paths := f.snapshot(t, "one")
	broken := f.files[paths[12]]
	f.files[paths[12]] = broken[:len(broken)-1]
	r := open(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // shorter than the pause before the next attempt
	defer cancel()
	expect.Fails(t, CatchUp(ctx, r, f.source(t), func(Progress) {}), "a truncated file")
	expect.OK(t, r.Close())
	f.pathsRead()
	f.mu.Lock() // a request of the first run may still be in progress, and add a path
	f.files[paths[12]] = broken
	f.mu.Unlock()
	f.publish(1, 300)
	r = open(t, dir)
	if s := r.State(); !s.Loading || s.Complete || s.Position.Offset != "" {
		t.Errorf("got %+v, want a copy that is loading", s)
	}
	mustCatchUp(t, r, f)
	got := f.pathsRead()
	slices.Sort(got)
	expect.NoDiff(t, cmp.Diff(slices.Sorted(slices.Values(paths[12:])), slices.Compact(got)),
		"the files that were read differ")
}

func TestASnapshotThatIsReplacedMeanwhile(t *testing.T) {
	f := newFake(t)
	for i := range 20 {
		f.publish(i, 100+i)
	}
	first := f.snapshot(t, "one")
	replaced := false
	f.reading = func(path string) { // called from several goroutines
		f.mu.Lock()
		now := path == first[10] && !replaced
		replaced = replaced || now
		f.mu.Unlock()
		if now {
			f.publish(2, 200)
			f.publish(10, 201)
			f.publish(99, 202)
			f.snapshot(t, "two")
		}
	}
	r := open(t, t.TempDir())
	mustCatchUp(t, r, f)
	counts := map[string]int{}
	for _, path := range f.pathsRead() {
		counts[path]++
	}
	for i, path := range first[:10] {
		expect.Equal(t, counts[path], 1, "file %d: reads", i)
	}
}

func TestOtherDataAreNotStored(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, r *Replica, f *fake)
	}{
		{"after the end of the feed", func(t *testing.T, r *Replica, f *fake) { mustCatchUp(t, r, f) }},
		{"of an empty copy", func(t *testing.T, r *Replica, f *fake) {
			f.assets, f.manifest = map[string]int{}, ""
			mustCatchUp(t, r, f)
			f.publish(1, 100)
		}},
		{"while a snapshot is read", func(t *testing.T, r *Replica, f *fake) {
			expect.OK(t, r.Apply(Change{State: State{Loading: true, Position: client.Position{ServerID: "first"}}}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, r := newFake(t), open(t, t.TempDir())
			f.publish(1, 100)
			f.snapshot(t, "one")
			c.prepare(t, r, f)
			before := r.State()
			f.data = "second"
			expect.Err(t, catchUp(t, r, f), ErrOtherData, "")
			if diff := cmp.Diff(before, r.State()); diff != "" {
				t.Errorf("the state changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAFullDiskStopsARunThatGoesOnLater(t *testing.T) {
	f, dir := newFake(t), disktest.New(t, 4)
	f.padding = strings.Repeat("x", 100_000)
	for i := range 30 {
		f.publish(i, 100+i)
	}
	f.snapshot(t, "one")
	r := open(t, dir)
	free := disktest.Fill(t, dir)
	err := catchUp(t, r, f)
	expect.ErrorIf(t, !errors.Is(err, ErrNotStored) || !errors.Is(err, syscall.ENOSPC),
		"got %v, want %v: %v", err, ErrNotStored, syscall.ENOSPC)
	expect.OK(t, r.Close())
	free()
	for i := 15; i < 30; i++ {
		delete(f.assets, idOf(i)) // the remaining assets fit on the disk
	}
	f.snapshot(t, "two")
	mustCatchUp(t, open(t, dir), f)
}

func TestAnEntryIsNotReplacedByAnEarlierOne(t *testing.T) {
	r := open(t, t.TempDir())
	for _, text := range []string{"200", "100", "300"} {
		second := map[string]int{"100": 100, "200": 200, "300": 300}[text]
		e, err := parseEntry([]byte(`{"id":"` + idOf(1) + `","dateModified":"` + stampOf(second) + `"}`))
		expect.OK(t, err)
		expect.OK(t, r.Apply(Change{Entries: []Entry{e}}))
		got, _, err := r.Get(idOf(1))
		if want := int64(max(second, 200)) * 1e6; err != nil || got.Position != want {
			t.Errorf("after %s: got %d, %v; want %d", text, got.Position, err, want)
		}
	}
	expect.Value(t, 1, "")(r.Check())
}

// Promises: copy-entries
func TestEntriesThatAreNotOfAFeedAreRefused(t *testing.T) {
	at := stampOf(100)
	for _, c := range []struct{ name, text string }{
		{"no JSON", `{`},
		{"no id", `{"dateModified":"` + at + `"}`},
		{"an id in capitals", `{"id":"` + strings.Repeat("A", 32) + `","dateModified":"` + at + `"}`},
		{"no time", `{"id":"` + idOf(1) + `"}`},
		{"two times", `{"dateModified":"` + at + `","id":"` + idOf(1) + `","dateModified":"` + at + `"}`},
		{"it is cut off", `{"id":"` + idOf(1) + `","dateModified":"` + at + `","title":"x"`},
		{"an id with an escape", `{"id":"\u0030` + idOf(1)[1:] + `0","dateModified":"` + at + `"}`},
		{"a time before the epoch", `{"id":"` + idOf(1) + `","dateModified":"1900-01-01T00:00:00+00:00"}`},
		{"no object", `[]`},
		{"nothing", ``},
		{"two values", entryWith(`"x":1`) + entryWith(`"x":1`)},
		{"text after it", entryWith(`"x":1`) + `x`},
		{"a text that ends in the middle", entryWith(`"x":"y}`)},
		{"a comma too much", entryWith(`"x":1,`)},
		{"a name twice", entryWith(`"x":1,"x":2`)},
		{"a name twice, once with an escape", entryWith(`"title":1,"\u0074itle":2`)},
		{"a name twice inside", entryWith(`"items":[{"a":{"b":1,"b":2}}]`)},
		{"two modes", entryWith(`"mode":"test","mode":"x"`)},
		{"two ids", entryWith(`"id":"` + idOf(2) + `"`)},
		{"two ids, one with an escape", entryWith(`"\u0069d":"` + idOf(2) + `"`)},
		{"an id of another name", `{"\u0069d":"` + idOf(1) + `","dateModified":"` + at + `"}`},
		{"a time with an escape", `{"id":"` + idOf(1) + `","dateModified":"\u0031` + at[1:] + `"}`},
		{"another order", `{"dateModified":"` + at + `","id":"` + idOf(1) + `"}`},
		{"a blank", `{"id": "` + idOf(1) + `","dateModified":"` + at + `"}`},
		{"two lines", entryWith("\"x\":\n1")},
		{"a text that is not UTF-8", entryWith("\"x\":\"\xff\"")},
		{"half of a surrogate pair", entryWith(`"x":"\ud800"`)},
		{"a number that is none", entryWith(`"x":01`)},
		{"a depth without end", entryWith(`"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000))},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrOf(t, ErrEntry, "")(parseEntry([]byte(c.text)))
		})
	}
}

// entryWith returns an entry that also has the given members.
func entryWith(members string) string {
	return `{"id":"` + idOf(1) + `","dateModified":"` + stampOf(100) + `",` + members + `}`
}

func TestAModeCountsHoweverItIsWritten(t *testing.T) {
	for members, want := range map[string]bool{
		`"mode":"test"`: true, `"\u006dode":"test"`: true, `"mod\u0065":"t\u0065st"`: true, `"x":{"mode":"test"}`: false,
		`"x":"\"mode\":\"test\""`: false, `"Mode":"test"`: false, `"mode":null`: false,
	} {
		got, err := parseEntry([]byte(entryWith(members)))
		expect.ErrorIf(t, err != nil || got.Test != want, "%s: got %t, %v; want %t", members, got.Test, err, want)
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(entryWith(`"mode":"test","x":[1,{"a":"\u00e9"}]`)))
	f.Add([]byte(entryWith(`"x":1,"x":2`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := parseEntry(text)
		if err != nil {
			return
		}
		expect.ErrorIf(t, !jsontext.Value(text).IsValid(), "got the entry %+v, want an error for %q", e, text)
		if key, err := keyOf(e.ID); err != nil || e.Position <= 0 || len(key) != idBytes {
			t.Errorf("got the entry %+v, %v; want one with an id and a position", e, err)
		}
	})
}

// TestCheckFindsAWrongCopy violates K1 in each possible way. Check must return an error.
func TestCheckFindsAWrongCopy(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(assets, feed *bbolt.Bucket) error
	}{
		{"an asset without an entry", func(_, feed *bbolt.Bucket) error { return feed.Delete(positionKey(100e6)) }},
		{"an entry without an asset", func(_, feed *bbolt.Bucket) error {
			return feed.Put(positionKey(5), make([]byte, idBytes))
		}},
		{"an entry of another asset", func(_, feed *bbolt.Bucket) error {
			return feed.Put(positionKey(100e6), make([]byte, idBytes))
		}},
		{"an asset without a position", func(assets, _ *bbolt.Bucket) error {
			key, _ := assets.Cursor().First()
			return assets.Put(key, nil)
		}},
		{"the text of another asset", func(assets, _ *bbolt.Bucket) error {
			c := assets.Cursor()
			key, _ := c.First()
			_, other := c.Next()
			return assets.Put(key, other)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, r := newFake(t), open(t, t.TempDir())
			f.publish(1, 100)
			f.publish(2, 101)
			mustCatchUp(t, r, f)
			expect.OK(t, r.file.Update(func(tx *bbolt.Tx) error {
				return c.spoil(tx.Bucket(assetsBucket), tx.Bucket(feedBucket))
			}))
			expect.ErrOf(t, ErrUnsound, "")(r.Check())
		})
	}
}

func TestASampleHasDifferentAssets(t *testing.T) {
	f, r := newFake(t), open(t, t.TempDir())
	for i := range 10 {
		f.publish(i, 100+i)
	}
	mustCatchUp(t, r, f)
	for _, c := range []struct{ count, want int }{{3, 3}, {10, 10}, {100, 10}} {
		ids, err := r.Sample(c.count)
		slices.Sort(ids)
		if got := len(slices.Compact(ids)); err != nil || got != c.want {
			t.Errorf("a sample of %d: got %d assets, %v; want %d", c.count, got, err, c.want)
		}
	}
}

// TestACatchUpEndsWhileTheFeedGrows changes an asset before each page, so that no page is empty. CatchUp must end. The
// copy must then have all assets as the registry had them when CatchUp began, or newer ones.
func TestACatchUpEndsWhileTheFeedGrows(t *testing.T) {
	f, r := newFake(t), open(t, t.TempDir())
	for n := range 10 {
		f.publish(n, 100+n)
	}
	pages := 0
	f.paging = func() {
		if pages++; pages > 100 {
			t.Error("got over 100 pages, want an end")
			f.paging = nil
			return
		}
		for n := 100; n < 110; n++ {
			f.assets[idOf(n)] = 1000 + 10*pages + n
		}
	}
	expect.OK(t, CatchUp(t.Context(), r, f.source(t), func(Progress) {}))
	if state := r.State(); !state.Complete {
		t.Errorf("got the state %+v, want a complete copy", state)
	}
	for n := range 10 {
		if _, ok, err := r.Get(idOf(n)); !ok || err != nil {
			t.Errorf("asset %d: got %v, %v; want it in the copy", n, ok, err)
		}
	}
}
