// Package storetest has the tests that every store of files must pass: one suite for the metadata, and one for
// the bytes.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/filesvc/internal/file"
)

// Metadata is a store of metadata.
type Metadata interface {
	file.Files
	file.Readings
	file.Awaited
}

// at is a time in the precision of the stores.
var at = time.Date(2026, 11, 26, 9, 0, 0, 123e6, time.UTC)

// id returns the id of the file with the number n.
func id(n int) string { return fmt.Sprintf("%032x", n) }

func waiting(n int, broker string) file.File {
	return file.File{
		ID: id(n), Broker: broker, KeyID: "k1", MD5: strings.Repeat("a", 32),
		State: file.Registered, Touched: at, Revision: 1,
	}
}

// stored returns the file f as it is after an upload.
func stored(f file.File, bytes int64) file.File {
	f.State, f.SHA256, f.Size, f.Blob = file.Stored, strings.Repeat("b", 64), bytes, f.ID+"-0123456789abcdef"
	f.Seen = 9
	f.Declared, f.Detected, f.Title = "text/plain", "text/plain; charset=utf-8", "акт \"1\".txt"
	f.Named, f.Swept = true, 3
	f.Picture, f.Small, f.Large = file.Made, f.ID+"-1123456789abcdef", f.ID+"-2123456789abcdef"
	f.Ended, f.Again = 2, at.Add(time.Hour)
	f.Revision++
	return f
}

// RunMetadata tests a store of metadata. The function `open` returns an empty store. The function `reopen` returns
// a store with the data of the store that `open` returned last.
func RunMetadata(t *testing.T, open, reopen func(t *testing.T) Metadata) {
	s := open(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, Metadata)
	}{
		{"a new store has nothing", testEmpty},
		{"a file is as it was stored", testFile},
		{"a change names the revision before", testGuards},
		{"of changes at once one succeeds", testAtOnce},
		{"pages have the files in order", testPages},
		{"brokers have what their files are", testUsage},
		{"readings grow", testReadings},
		{"hours are counted once", testHours},
		{"no clock deletes a file", testClocks},
		{"removed bytes are known", testRemoved},
		{"namings are awaited until they are settled", testAwaited},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
	t.Run("data outlive the process", func(t *testing.T) {
		want := waiting(900, "lasting")
		must(t, s.Create(t.Context(), want))
		s = reopen(t)
		got, err := s.Get(t.Context(), want.ID)
		must(t, err)
		equal(t, got, want)
		r, err := s.Reading(t.Context())
		must(t, err)
		equal(t, r.Position, int64(7))
	})
}

func testEmpty(t *testing.T, s Metadata) {
	ctx := t.Context()
	_, err := s.Get(ctx, id(1))
	is(t, err, file.ErrNotFound)
	is(t, s.Replace(ctx, stored(waiting(1, "x"), 1)), file.ErrStale)
	is(t, s.Delete(ctx, waiting(1, "x")), file.ErrStale)
	files, err := s.Page(ctx, "", 10)
	must(t, err)
	equal(t, len(files), 0)
	r, err := s.Reading(ctx)
	must(t, err)
	equal(t, r, file.Reading{})
}

func testFile(t *testing.T, s Metadata) {
	ctx, f := t.Context(), waiting(1, "first")
	must(t, s.Create(ctx, f))
	got, err := s.Get(ctx, f.ID)
	must(t, err)
	equal(t, got, f)
	f = stored(f, 5<<30)
	must(t, s.Replace(ctx, f))
	got, err = s.Get(ctx, f.ID)
	must(t, err)
	equal(t, got, f)
	must(t, s.Delete(ctx, f))
	_, err = s.Get(ctx, f.ID)
	is(t, err, file.ErrNotFound)
}

func testGuards(t *testing.T, s Metadata) {
	ctx, f := t.Context(), waiting(2, "guards")
	must(t, s.Create(ctx, f))
	is(t, s.Create(ctx, f), file.ErrExists)
	next := stored(f, 1)
	must(t, s.Replace(ctx, next))
	is(t, s.Replace(ctx, next), file.ErrStale)
	is(t, s.Delete(ctx, f), file.ErrStale)
	got, err := s.Get(ctx, f.ID)
	must(t, err)
	equal(t, got, next)
	must(t, s.Delete(ctx, next))
}

func testAtOnce(t *testing.T, s Metadata) {
	ctx, f := t.Context(), waiting(3, "at once")
	must(t, s.Create(ctx, f))
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			next := f
			next.Title, next.Revision = fmt.Sprint(i), 2
			results[i] = s.Replace(ctx, next)
		})
	}
	wg.Wait()
	winner := ""
	for i, err := range results {
		switch {
		case err == nil && winner == "":
			winner = fmt.Sprint(i)
		case !errors.Is(err, file.ErrStale):
			t.Errorf("got %v, want one success and then %v", err, file.ErrStale)
		}
	}
	got, err := s.Get(ctx, f.ID)
	must(t, err)
	equal(t, got.Title, winner)
	must(t, s.Delete(ctx, got))
}

func testPages(t *testing.T, s Metadata) {
	ctx := t.Context()
	for _, n := range []int{13, 11, 15, 12, 14} {
		must(t, s.Create(ctx, waiting(n, "pages")))
	}
	for _, c := range []struct {
		after string
		limit int
		want  string
	}{
		{"", 2, "11 12"}, {id(12), 2, "13 14"}, {id(14), 2, "15"}, {id(15), 2, ""}, {id(10), 9, "11 12 13 14 15"},
	} {
		files, err := s.Page(ctx, c.after, c.limit)
		must(t, err)
		equal(t, numbers(t, files), c.want)
	}
	other := waiting(16, "pages 2")
	must(t, s.Create(ctx, other))
	for _, c := range []struct {
		broker, after string
		limit         int
		want          string
	}{
		{"pages", "", 2, "11 12"}, {"pages", id(12), 2, "13 14"}, {"pages", id(14), 9, "15"}, {"pages", id(15), 2, ""},
		{"pages 2", "", 2, "16"}, {"page", "", 2, ""}, {"", "", 2, ""}, {"pages", id(10), 9, "11 12 13 14 15"},
	} {
		files, err := s.Own(ctx, c.broker, c.after, c.limit)
		must(t, err)
		equal(t, numbers(t, files), c.want)
	}
	must(t, s.Delete(ctx, other))
	for n := 11; n <= 15; n++ {
		must(t, s.Delete(ctx, waiting(n, "pages")))
	}
	files, err := s.Own(ctx, "pages", "", 10)
	must(t, err)
	equal(t, len(files), 0)
}

// numbers returns the numbers of which the function id has made the ids of files.
func numbers(t *testing.T, files []file.File) string {
	t.Helper()
	var all []string
	for _, f := range files {
		var n int
		_, err := fmt.Sscanf(f.ID, "%x", &n)
		must(t, err)
		all = append(all, fmt.Sprint(n))
	}
	return strings.Join(all, " ")
}

func testUsage(t *testing.T, s Metadata) {
	ctx := t.Context()
	has := func(broker string, want file.Usage) {
		t.Helper()
		got, err := s.Usage(ctx, broker)
		must(t, err)
		equal(t, got, want)
	}
	has("usage", file.Usage{})
	a, b, other := waiting(21, "usage"), waiting(22, "usage"), waiting(23, "usage of another")
	for _, f := range []file.File{a, b, other} {
		must(t, s.Create(ctx, f))
	}
	has("usage", file.Usage{Waiting: 2})
	a = stored(a, 3<<30)
	must(t, s.Replace(ctx, a))
	has("usage", file.Usage{Waiting: 1, Bytes: 3 << 30})
	is(t, s.Replace(ctx, a), file.ErrStale)
	is(t, s.Create(ctx, b), file.ErrExists)
	has("usage", file.Usage{Waiting: 1, Bytes: 3 << 30})
	must(t, s.Delete(ctx, b))
	must(t, s.Delete(ctx, a))
	has("usage", file.Usage{})
	has("usage of another", file.Usage{Waiting: 1})
	must(t, s.Delete(ctx, other))
	must(t, s.Recount(ctx))
	has("usage", file.Usage{})
	has("usage of another", file.Usage{})
}

func testReadings(t *testing.T, s Metadata) {
	ctx := t.Context()
	for _, c := range []struct{ set, want file.Reading }{
		{file.Reading{Position: 5}, file.Reading{Position: 5}},
		{file.Reading{Position: 4, Complete: at}, file.Reading{Position: 5, Complete: at}},
		{file.Reading{Position: 6, Complete: at.Add(10 * 365 * 24 * time.Hour), Began: 3},
			file.Reading{Position: 6, Complete: at.Add(10 * 365 * 24 * time.Hour), Began: 3}},
		{file.Reading{Position: 7, Complete: at.Add(-time.Hour), Began: 2},
			file.Reading{Position: 7, Complete: at.Add(-time.Hour), Began: 2}},
	} {
		must(t, s.SetReading(ctx, c.set))
		got, err := s.Reading(ctx)
		must(t, err)
		equal(t, got, c.want)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Reading(ended); err == nil {
		t.Error("got a reading after the end of the context, want an error")
	}
}

// testHours counts an hour in several processes at once.
func testHours(t *testing.T, s Metadata) {
	ctx := t.Context()
	for _, c := range []struct{ still, want int64 }{{0, 1}, {0, 1}, {1, 2}, {1, 2}, {7, 2}} {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := s.PassHour(ctx, c.still); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := s.Reading(ctx)
		must(t, err)
		equal(t, got.Hours, c.want)
	}
	must(t, s.SetReading(ctx, file.Reading{Position: 7, Complete: at, Began: 1, Hours: 50}))
	got, err := s.Reading(ctx)
	must(t, err)
	equal(t, got, file.Reading{Position: 7, Complete: at, Began: 1, Hours: 2})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (+), want (-):\n%s", diff)
	}
}

func testAwaited(t *testing.T, s Metadata) {
	ctx := t.Context()
	want := []file.Naming{{File: id(1), Asset: id(7)}, {File: id(1), Asset: id(8)}, {File: id(2), Asset: id(3)}}
	for _, n := range []file.Naming{want[2], want[0], want[1], want[0]} {
		must(t, s.Await(ctx, n))
	}
	got, err := s.Awaiting(ctx, file.Naming{}, 10)
	must(t, err)
	equal(t, got, want)
	got, err = s.Awaiting(ctx, want[0], 1)
	must(t, err)
	equal(t, got, want[1:2])
	must(t, s.Settle(ctx, want[1]))
	must(t, s.Settle(ctx, want[1]))
	got, err = s.Awaiting(ctx, want[0], 10)
	must(t, err)
	equal(t, got, want[2:])
}

func testRemoved(t *testing.T, s Metadata) {
	ctx, f := t.Context(), stored(waiting(50, "removed"), 7)
	f.SHA256 = strings.Repeat("c", 64)
	must(t, s.Create(ctx, f))
	is := func(want bool) {
		t.Helper()
		got, err := s.IsRemoved(ctx, f.SHA256)
		must(t, err)
		equal(t, got, want)
	}
	is(false)
	f.State, f.RemovedBy, f.Reason = file.Removed, "k9", "a court has ordered it"
	f.Revision++
	must(t, s.Replace(ctx, f))
	is(true)
	got, err := s.Get(ctx, f.ID)
	must(t, err)
	equal(t, got, f)
	u, err := s.Usage(ctx, "removed")
	must(t, err)
	equal(t, u, file.Usage{})
}
