package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/boltstore"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

func openStore(tb testing.TB) *boltstore.Store {
	tb.Helper()
	s := expect.Get(boltstore.Open(filepath.Join(tb.TempDir(), "assets.db"), boltstore.Options{Now: time.Now}))(tb)
	tb.Cleanup(func() { s.Close() })
	return s
}

// show appends an asset as a JSON object with its id, position and body.
func show(dst []byte, e registry.Entry) ([]byte, error) {
	return fmt.Appendf(dst, `{"id":%q,"position":%d,"body":%s}`, e.ID, e.Position, e.Body), nil
}

// keeper returns a keeper of the snapshots in dir. It never pauses.
func keeper(tb testing.TB, store Store, dir string) *Keeper {
	tb.Helper()
	k := expect.Get(New(store, Options{Dir: dir, Show: show, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(tb.Output(), nil))}))(tb)
	k.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return k
}

func create(tb testing.TB, s *boltstore.Store, r registry.Record) registry.Record {
	tb.Helper()
	position := expect.Get(s.Create(tb.Context(), r))(tb)
	r.Position, r.Revision = position, 1
	return r
}

// TestTheBytesOfASegmentNeverChange makes a segment of fixed assets, and compares its hash with a constant. Clients
// use the hash to recognise a segment that they already have.
// Promises: segments
func TestTheBytesOfASegmentNeverChange(t *testing.T) {
	now := time.UnixMicro(1790000000000000)
	s := expect.Get(boltstore.Open(filepath.Join(t.TempDir(), "assets.db"), boltstore.Options{
		Now: func() time.Time { now = now.Add(time.Millisecond); return now },
	}))(t)
	defer s.Close()
	for i := range 100 {
		create(t, s, registry.Record{ID: fmt.Sprintf("%032x", i), Listed: true, Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	m := mustMake(t, keeper(t, s, t.TempDir()))
	want := []Segment{{From: strings.Repeat("0", 32), To: strings.Repeat("f", 32), Assets: 100,
		SHA256: "52fb296fe806a55b097271ded8c7ff83eccfab7e73f9ee578031b2c0fe6e71a4"}}
	for i := range m.Segments {
		m.Segments[i].Bytes, m.Segments[i].Plain = 0, 0
	}
	expect.NoDiff(t, cmp.Diff(want, m.Segments), "the segments differ")
}

func body(size int) []byte { return []byte(`{"x":"` + strings.Repeat("x", size) + `"}`) }

func mustMake(tb testing.TB, k *Keeper) Manifest {
	tb.Helper()
	return expect.Get(k.Make(tb.Context()))(tb)
}

// lines returns the lines of a snapshot. It compares the files with the manifest.
func lines(tb testing.TB, k *Keeper, m Manifest) (all []string) {
	tb.Helper()
	decoder := expect.Get(zstd.NewReader(nil))(tb)
	defer decoder.Close()
	from := strings.Repeat("0", 32)
	for i, s := range m.Segments {
		f, err := k.Segment(s.SHA256)
		expect.Must(tb, err, "segment %d", i)
		data, err := io.ReadAll(f)
		expect.OK(tb, errors.Join(err, f.Close()))
		plain := expect.Get(decoder.DecodeAll(data, nil))(tb)
		sum := sha256.Sum256(data)
		text := strings.SplitAfter(string(plain), "\n")
		text = text[:len(text)-1] // without the empty text after the last line break
		got := Segment{From: from, To: s.To, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data)),
			Plain: int64(len(plain)), Assets: len(text)}
		if diff := cmp.Diff(got, s); diff != "" {
			tb.Errorf("segment %d: the manifest differs from the file (-file +manifest):\n%s", i, diff)
		}
		for _, l := range text {
			if id := l[len(`{"id":"`):][:32]; id < s.From || id > s.To {
				tb.Errorf("segment %d: got asset %s, want ids from %s to %s", i, id, s.From, s.To)
			}
		}
		all = append(all, text...)
		from = registry.NextID(s.To)
	}
	expect.ErrorIf(tb, from != "", "got segments up to %q, want all ids", from)
	if !slices.IsSorted(all) || m.Assets != len(all) {
		tb.Errorf("got %d lines, sorted: %t; want %d, sorted", len(all), slices.IsSorted(all), m.Assets)
	}
	return all
}

// Promises: snapshot, manifest, ranges
func TestASnapshotHasAllListedAssetsInTheOrderOfIDs(t *testing.T) {
	s := openStore(t)
	k := keeper(t, s, t.TempDir())
	expect.ErrOf(t, ErrNone, "without a snapshot")(k.Newest())
	if got := lines(t, k, mustMake(t, k)); len(got) != 0 {
		t.Errorf("an empty store: got %v, want no lines", got)
	}
	var want []string
	var last int64
	for i := range 700 {
		r := create(t, s, registry.Record{ID: storetest.NewID(), Listed: i%3 > 0, Test: i%5 == 0, Body: body(i)})
		last = r.Position
		if r.Listed {
			line, _ := show(nil, registry.Entry{ID: r.ID, Position: r.Position, Body: r.Body})
			want = append(want, string(line)+"\n")
		}
	}
	slices.Sort(want)
	m := mustMake(t, k)
	expect.NoDiff(t, cmp.Diff(want, lines(t, k, m)), "the lines differ")
	newest, err := k.Newest()
	if diff := cmp.Diff(m, newest); err != nil || diff != "" {
		t.Errorf("the newest snapshot: got %v; it differs (-want +got):\n%s", err, diff)
	}
	expect.Equal(t, m.Position, last, "position")
}

// segmentsOf cuts a store into segments of at most the given number of bytes. It returns the range and the
// number of assets of each segment.
func segmentsOf(t *testing.T, s Store, most int) (got []string, sizes []int) {
	t.Helper()
	never := &pace{pause: func(context.Context, time.Duration) error { return nil }}
	w := &walker{store: s, show: show, most: most, pace: never}
	expect.OK(t, w.cut(t.Context(), span{}, func(s span, text []byte, assets int) error {
		from, to := s.ids()
		got = append(got, from+"-"+to)
		sizes = append(sizes, assets)
		if assets != bytes.Count(text, []byte("\n")) || len(text) > most && assets > 1 {
			t.Errorf("%s: got %d assets and %d bytes, want as many lines and at most %d bytes", from, assets, len(text), most)
		}
		return nil
	}))
	return got, sizes
}

// Promises: ranges, segment-size
func TestRangesAreCutWhereAssetsHaveTooManyBytes(t *testing.T) {
	expect.ErrorIf(t, spanBytes != 4<<20, "got segments of up to %d bytes, want 4 MiB", spanBytes)
	s := openStore(t)
	for _, id := range []string{"00", "01", "40", "41", "42", "f0"} {
		create(t, s, registry.Record{ID: id + strings.Repeat("0", 30), Listed: true, Body: body(900)})
	}
	zeros, fs := strings.Repeat("0", 31), strings.Repeat("f", 31)
	for _, c := range []struct {
		name  string
		most  int
		want  []string
		sizes []int
	}{
		{"everything fits", 10_000, []string{"0" + zeros + "-f" + fs}, []int{6}},
		{"half of it fits", 5_000, []string{"0" + zeros + "-7" + fs, "8" + zeros + "-f" + fs}, []int{5, 1}},
		{"three fit", 3_000, []string{"0" + zeros + "-3" + fs, "4" + zeros + "-7" + fs, "8" + zeros + "-f" + fs}, []int{2, 3, 1}},
	} {
		got, sizes := segmentsOf(t, s, c.most)
		if diff := cmp.Diff(c.want, got) + cmp.Diff(c.sizes, sizes); diff != "" {
			t.Errorf("%s: the ranges differ (-want +got):\n%s", c.name, diff)
		}
	}
	if _, sizes := segmentsOf(t, s, 1); slices.Max(sizes) != 1 {
		t.Errorf("nothing fits: got ranges with %v assets, want at most 1 each", sizes)
	}
}

func TestGrowthOnlyCutsRanges(t *testing.T) {
	s := openStore(t)
	var before []string
	for range 8 {
		for range 100 {
			create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(randtest.IntN(100))})
		}
		now, _ := segmentsOf(t, s, 5_000)
		for _, r := range before {
			from, to, _ := strings.Cut(r, "-")
			inside := slices.ContainsFunc(now, func(n string) bool { return strings.HasPrefix(n, from) }) &&
				slices.ContainsFunc(now, func(n string) bool { return strings.HasSuffix(n, to) })
			expect.ErrorIf(t, !inside, "got no ranges that begin and end with %s, want the same one or its parts", r)
		}
		before = now
	}
	expect.ErrorIf(t, len(before) < 8, "got %d ranges, want at least 8", len(before))
}

func hashes(m Manifest) (all []string) {
	for _, s := range m.Segments {
		all = append(all, s.SHA256)
	}
	return all
}

func TestUnchangedRangesKeepTheirFiles(t *testing.T) {
	s := openStore(t)
	var one registry.Record
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 64 {
		r := registry.Record{ID: fmt.Sprintf("%02x", i*4) + storetest.NewID()[2:], Listed: true, Body: body(400_000)}
		for j := range r.Body[6:400_000] {
			r.Body[6+j] = "0123456789abcdef"[random.IntN(16)]
		}
		one = create(t, s, r)
	}
	dir := t.TempDir()
	k := keeper(t, s, dir)
	first := mustMake(t, k)
	second := mustMake(t, keeper(t, s, t.TempDir()))
	if diff := cmp.Diff(hashes(first), hashes(second)); diff != "" {
		t.Errorf("the segments in another directory differ (-first +second):\n%s", diff)
	}
	expect.Get(s.Replace(t.Context(), one))(t)
	third := mustMake(t, k)
	changed := 0
	for i, h := range hashes(third) {
		if h != first.Segments[i].SHA256 {
			changed++
		}
	}
	if len(first.Segments) < 4 || len(third.Segments) != len(first.Segments) || changed != 1 {
		t.Errorf("got %d and %d segments, %d of them changed; want as many, at least 4, and 1 changed",
			len(first.Segments), len(third.Segments), changed)
	}
	if third.Begun <= first.Begun || third.Position <= first.Position {
		t.Errorf("got %d at %d after %d at %d, want both to rise", third.Begun, third.Position, first.Begun, first.Position)
	}
}

// names returns the names of all files below a directory, except the lock.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	expect.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return all
}

// wantFiles returns the names of the files that belong to the given snapshots.
func wantFiles(snapshots ...Manifest) (all []string) {
	for _, m := range snapshots {
		all = append(all, fmt.Sprintf("manifests/%020d.json", m.Begun))
		for _, h := range hashes(m) {
			all = append(all, "segments/"+h+".ndjson.zst")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTheNewestSnapshotsAreKept(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	k := keeper(t, s, dir)
	var all []Manifest
	for range 5 {
		create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
		all = append(all, mustMake(t, k))
		expect.NoDiff(t, cmp.Diff(wantFiles(all[max(0, len(all)-2):]...), names(t, dir)),
			"after %d snapshots the files differ", len(all))
	}
}

func TestLeftoversAreRemovedAndDamageIsRepaired(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
	first := mustMake(t, keeper(t, s, dir))
	segment := filepath.Join(dir, "segments", first.Segments[0].SHA256+".ndjson.zst")
	for _, name := range []string{
		"manifests/00000000000000000001.json.new123", "manifests/99999999999999999999.json",
		"segments/" + strings.Repeat("a", 64) + ".ndjson.zst", "segments/x.new7", segment[len(dir)+1:],
	} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("damaged"), 0o600))
	}
	k := keeper(t, s, dir)
	second := mustMake(t, k)
	lines(t, k, second)
	expect.NoDiff(t, cmp.Diff(wantFiles(first, second), names(t, dir)), "the files differ")
}

func TestASnapshotOfOtherDataIsRemoved(t *testing.T) {
	dir := t.TempDir()
	newer := openStore(t)
	create(t, newer, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
	mustMake(t, keeper(t, newer, dir))
	k := keeper(t, openStore(t), dir) // a store that is older than the snapshot, like a restored backup
	expect.OK(t, k.discard(t.Context()))
	if _, err := k.Newest(); !errors.Is(err, ErrNone) || len(names(t, dir)) != 0 {
		t.Errorf("got %v and the files %v, want ErrNone and none", err, names(t, dir))
	}
}

// Promises: hidden-snapshot
func TestASnapshotWithOtherFieldsIsNotShown(t *testing.T) {
	dir, store := t.TempDir(), openStore(t)
	create(t, store, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
	mustMake(t, keeper(t, store, dir))
	k := keeper(t, store, dir)
	k.o.Hidden = []asset.Group{asset.Contacts}
	if m, err := k.Newest(); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, %v before fields are hidden, want ErrNone", m, err)
	}
	made := mustMake(t, k)
	if m, err := k.Newest(); err != nil || m.Begun != made.Begun {
		t.Errorf("got %v, %v, want the snapshot %v", m, err, made)
	}
	expect.NoDiff(t, cmp.Diff(wantFiles(made), names(t, dir)), "files")
}

// failing is a store whose Range fails after a number of pages.
type failing struct {
	Store
	pages int
}

func (f *failing) Range(ctx context.Context, q registry.RangeQuery) (registry.RangePage, error) {
	if f.pages--; f.pages < 0 {
		return registry.RangePage{}, errors.New("the store is away")
	}
	return f.Store.Range(ctx, q)
}

func TestAFailureKeepsTheOldSnapshot(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	for range 600 {
		create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(30_000)})
	}
	first := mustMake(t, keeper(t, s, dir))
	for pages := range 18 { // making a snapshot reads 19 pages
		k := keeper(t, &failing{s, pages}, dir)
		if _, err := k.Make(t.Context()); err == nil {
			t.Fatalf("after %d pages: got no error, want one", pages)
		}
		expect.NoDiff(t, cmp.Diff(wantFiles(first), names(t, dir)), "after %d pages the files differ", pages)
	}
	lines(t, keeper(t, s, dir), first)
}

// Promises: one-maker
func TestOneMakerAtATime(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	first, second := keeper(t, s, dir), keeper(t, s, dir)
	create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
	first.pause = func(ctx context.Context, _ time.Duration) error {
		expect.ErrOf(t, ErrBusy, "")(second.Make(ctx))
		expect.Err(t, second.discard(ctx), ErrBusy, "discard")
		return ctx.Err()
	}
	m := mustMake(t, first)
	got, err := second.Newest()
	if diff := cmp.Diff(m, got); err != nil || diff != "" {
		t.Errorf("another keeper's newest snapshot: got %v; it differs (-want +got):\n%s", err, diff)
	}
	lines(t, second, got)
}

func TestASegmentIsNamedByItsHashOnly(t *testing.T) {
	k := keeper(t, openStore(t), t.TempDir())
	m := mustMake(t, k)
	good := m.Segments[0].SHA256
	for _, name := range []string{"", "..", "../manifests", strings.ToUpper(good), good[1:], good + "0", strings.Repeat("/", 64),
		strings.Repeat("0", 64)} {
		expect.ErrOf(t, ErrNone, "%q", name)(k.Segment(name))
	}
}

// TestNothingIsMissed makes snapshots while assets are written. No snapshot may miss a change
// (storetest.CheckSnapshot).
// Promises: snapshot-whole
func TestNothingIsMissed(t *testing.T) {
	s := openStore(t)
	k := keeper(t, s, t.TempDir())
	load := storetest.Load{Seed: randtest.Uint64(), Writers: 8, Changes: 200, Assets: 2000}
	for _, v := range storetest.CheckSnapshot(t, s, load, 15, copier(t, k)) {
		t.Error(v)
	}
}

// copier returns a function that makes a snapshot and reads it.
func copier(t *testing.T, k *Keeper) func(context.Context) (storetest.Copy, error) {
	return func(ctx context.Context) (storetest.Copy, error) {
		m, err := k.Make(ctx)
		if err != nil {
			return storetest.Copy{}, err
		}
		c := storetest.Copy{Position: m.Position, Assets: map[string]int64{}}
		for _, l := range lines(t, k, m) {
			var id string
			var position int64
			if _, err := fmt.Sscanf(l, `{"id":%q,"position":%d,`, &id, &position); err != nil {
				return c, err
			}
			c.Assets[id] = position
		}
		return c, nil
	}
}

// lateStore is a store that does not report its horizon. So the snapshot gets no position from it. The test reads the
// horizon later, when the snapshot is made.
type lateStore struct{ Store }

func (lateStore) Page(context.Context, registry.Query) (registry.FeedPage, error) {
	return registry.FeedPage{}, nil
}

// TestTheCheckCatchesALatePosition makes wrong snapshots: the position of each is read after the assets, not
// before. So a snapshot can lack a change. In at least one of five runs, CheckSnapshot must report this.
func TestTheCheckCatchesALatePosition(t *testing.T) {
	s := openStore(t)
	snapshot := copier(t, keeper(t, lateStore{s}, t.TempDir()))
	late := func(ctx context.Context) (storetest.Copy, error) {
		c, err := snapshot(ctx)
		if err != nil {
			return c, err
		}
		c.Position, err = storetest.Horizon(ctx, s)
		return c, err
	}
	load := storetest.Load{Seed: randtest.Uint64(), Writers: 8, Changes: 200, Assets: 2000}
	for range 5 {
		if v := storetest.CheckSnapshot(t, s, load, 15, late); len(v) > 0 && strings.HasPrefix(v[0], "S1: ") {
			return
		}
	}
	t.Error("got no violation of S1 in 5 runs, want one")
}

// TestRunMakesSnapshotsThatAreDue runs keepers whose clock the test sets. A keeper must make a snapshot only if
// one is due.
func TestRunMakesSnapshotsThatAreDue(t *testing.T) {
	for _, c := range []struct {
		name     string
		interval time.Duration
		before   bool          // a snapshot exists
		age      time.Duration // age of the snapshot, if one exists
		due      bool
	}{
		{"none is there", time.Hour, false, 0, true},
		{"a new one is there", time.Hour, true, 59 * time.Minute, false},
		{"an old one is there", time.Hour, true, 61 * time.Minute, true},
		{"one of a wrong clock is there", time.Hour, true, -61 * time.Minute, true},
		{"on demand only", 0, false, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := openStore(t), t.TempDir()
			k := keeper(t, s, dir)
			k.o.Interval = c.interval
			var first Manifest
			if c.before {
				first = mustMake(t, k)
			}
			k.o.Now = func() time.Time { return first.Time().Add(c.age) }
			if !c.before {
				k.o.Now = time.Now
			}
			leftover := filepath.Join(dir, "segments", "x.new1")
			expect.OK(t, os.WriteFile(leftover, nil, 0o600))
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { k.Run(ctx, func(err error) { t.Errorf("got the failure %v, want none", err) }) })
			for gone := false; !gone || c.due && !k.made(first.Begun); {
				_, err := os.Stat(leftover)
				gone = errors.Is(err, fs.ErrNotExist)
			}
			stop()
			running.Wait()
			if k.made(first.Begun) != c.due {
				t.Errorf("got a snapshot: %t, want %t", !c.due, c.due)
			}
		})
	}
}

// TestTheFirstAssetsDoNotWait makes a snapshot of an empty store. The next one is due once there is an asset, and no
// further one before the interval has passed.
func TestTheFirstAssetsDoNotWait(t *testing.T) {
	s := openStore(t)
	k := keeper(t, s, t.TempDir())
	k.o.Interval, k.o.Copies = time.Hour, true
	at := mustMake(t, k)
	for n, want := range []int{0, 1, 1} {
		if n > 0 {
			create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: []byte("{}")})
		}
		expect.OK(t, k.makeDue(t.Context()))
		newest := expect.Get(k.Newest())(t)
		if newest.Assets != want || (newest.Begun != at.Begun) != (n == 1) {
			t.Errorf("%d: got %d assets, made anew: %t", n, newest.Assets, newest.Begun != at.Begun)
		}
		at = newest
	}
}

// made reports whether the newest snapshot is another one than the given one.
func (k *Keeper) made(former int64) bool {
	newest, err := k.Newest()
	return err == nil && newest.Begun != former
}

// TestASnapshotOfAWrongClockIsReplaced makes snapshots and whole copies with a clock that is wrong once. Then the newest
// one must be the one that was made last, and none is due.
func TestASnapshotOfAWrongClockIsReplaced(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, ahead := range []time.Duration{-10 * year, -day, -time.Minute, time.Minute, day, 10 * year} {
		k := copying(t, openStore(t), t.TempDir())
		k.o.Interval = 6 * time.Hour
		now, steps := time.Now().Truncate(time.Microsecond), []time.Duration{0, ahead, 0, 0}
		for n, wrong := range steps {
			now = now.Add(k.o.Interval)
			k.o.Now = func() time.Time { return now.Add(wrong) }
			made := mustMake(t, k)
			newest, err := k.Newest()
			copies, err2 := k.NewestCopies()
			if err != nil || err2 != nil || newest.Begun != made.Begun || copies.Begun != made.Begun || k.isDue() {
				t.Errorf("a clock that was %v ahead, snapshot %d: got the newest %d and %d, %v, %v, due: %t; want %d and not due",
					ahead, n, newest.Begun, copies.Begun, err, err2, k.isDue(), made.Begun)
			}
			if off := newest.Time().Sub(k.o.Now()); off < 0 || off > k.o.Interval {
				t.Errorf("a clock that was %v ahead, snapshot %d: got a time %v ahead, want the clock's", ahead, n, off)
			}
		}
	}
}

// TestASnapshotThatStaysDueIsNotMadeAtOnce has a clock that is always ahead, so that each new snapshot is due at once.
func TestASnapshotThatStaysDueIsNotMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := copying(t, openStore(t), t.TempDir())
		mustMake(t, k)
		k.o.Interval = time.Hour
		now, made := time.Now(), 0
		k.o.Now = func() time.Time { now = now.Add(k.o.Interval); return now }
		k.o.Log = slog.New(slog.NewTextHandler(writer(func(line string) {
			if strings.Contains(line, "a snapshot was made") {
				made++
			}
		}), nil))
		ctx, end := context.WithTimeout(t.Context(), 10*mostLook)
		defer end()
		k.Run(ctx, func(err error) { t.Error(err) })
		expect.ErrorIf(t, made < 9 || made > 11, "got %d snapshots in the time of 10 looks, want 10", made)
	})
}

// writer calls the function for each line of a log.
type writer func(line string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

func TestMakingTakesLittleMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // the bound is of what the maker needs, not of its garbage
	s := openStore(t)
	for i := range 300 {
		size := 300_000
		if i%50 == 0 {
			size = registry.MaxAsset - 100
		}
		create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(size)})
	}
	k := keeper(t, s, t.TempDir())
	k.o.Copies = true
	before := heap()
	var mu sync.Mutex // two makers rest
	var most uint64
	k.pause = func(ctx context.Context, _ time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		most = max(most, heap())
		return ctx.Err()
	}
	m := mustMake(t, k)
	const limit = 64 << 20
	if used := int64(most) - int64(before); used > limit || m.Plain < 100<<20 {
		t.Errorf("got %d MiB of memory for %d MiB of assets, want at most 64 MiB for more than 100", used>>20, m.Plain>>20)
	}
}

// Promises: maker-rests
func TestTheMakerRestsLongerWhileOthersWrite(t *testing.T) {
	s := openStore(t)
	var rested time.Duration
	p := &pace{store: s, pause: func(_ context.Context, d time.Duration) error {
		rested = d
		return nil
	}}
	for _, c := range []struct {
		name  string
		write bool
		want  time.Duration
	}{{"others write", true, 3 * time.Second}, {"nobody writes", false, time.Second}, {"others write again", true, 3 * time.Second}} {
		if c.write {
			create(t, s, registry.Record{ID: storetest.NewID(), Listed: true, Body: body(10)})
		}
		expect.OK(t, errors.Join(p.look(t.Context()), p.rest(t.Context(), time.Second)))
		expect.Equal(t, rested, c.want, "%s, a rest of, after a second", c.name)
	}
}

// paced is a store that reports the number of writes, and their total time, as the test sets them.
type paced struct {
	Store
	count int64
	took  time.Duration
}

func (s *paced) Writes() (int64, time.Duration) { return s.count, s.took }

// write adds a number of writes to the report. Each of these writes took the time in the argument `each`.
func (s *paced) write(count int64, each time.Duration) {
	s.count += count
	s.took += time.Duration(count) * each
}

// Promises: maker-rests
func TestTheMakerRestsAsLongAsWritesNeed(t *testing.T) {
	for _, c := range []struct {
		name             string
		working, resting time.Duration // time of a write while the maker works, and while it rests
		each             int64         // number of writes in each period of work, and in each rest
		want             time.Duration
	}{
		{"no write takes longer", 10, 10, 20, 3 * time.Second},
		{"writes take less time", 5, 10, 20, 3 * time.Second},
		{"a write takes half as long again", 15, 10, 20, 3 * time.Second},
		{"a write takes twice as long", 20, 10, 20, 4 * time.Second},
		{"a write takes four times as long", 40, 10, 20, 6500 * time.Millisecond},
		{"writes wait for the end of the work", 10000, 10, 20, 8990 * time.Millisecond},
		{"there are too few writes", 40, 10, 0, 3 * time.Second},
	} {
		s := &paced{count: 1}
		var rested time.Duration
		p := &pace{store: s, beside: true, pause: func(_ context.Context, d time.Duration) error {
			rested = d
			s.write(c.each, c.resting)
			return nil
		}}
		for range 50 {
			s.write(c.each, c.working)
			expect.OK(t, p.rest(t.Context(), time.Second))
		}
		if (rested - c.want).Abs() > 10*time.Millisecond {
			t.Errorf("%s: got a rest of %v after a second, want %v", c.name, rested, c.want)
		}
	}
}
