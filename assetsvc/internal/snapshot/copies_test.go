package snapshot

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/export"
	"asset-registry/shared/testing/expect"
)

// copying returns a keeper that makes whole copies.
func copying(tb testing.TB, store Store, dir string) *Keeper {
	tb.Helper()
	k := keeper(tb, store, dir)
	k.o.Copies = true
	k.o.Show = func(dst []byte, e registry.Entry) ([]byte, error) { return append(dst, e.Body...), nil }
	return k
}

// listAsset stores a listed asset with additional fields.
func listAsset(tb testing.TB, s interface {
	Create(context.Context, registry.Record) (int64, error)
}, fields string) string {
	tb.Helper()
	id := storetest.NewID()
	text := fmt.Sprintf(`{"id":%q,"status":"active"%s}`, id, fields)
	expect.Get(s.Create(tb.Context(), registry.Record{ID: id, Listed: true, Body: []byte(text)}))(tb)
	return text
}

// copiesOf returns the newest whole copies: their manifest, and their contents by name. It compares the files
// with the manifest.
func copiesOf(tb testing.TB, k *Keeper) (m Manifest, files map[string]string) {
	tb.Helper()
	m = expect.Get(k.NewestCopies())(tb)
	files = map[string]string{}
	for _, c := range m.Copies {
		f, err := k.Copy(c.SHA256, c.Name)
		expect.Must(tb, err, "%s", c.Name)
		text, err := io.ReadAll(f)
		expect.OK(tb, errors.Join(err, f.Close()))
		sum := sha256.Sum256(text)
		if hex.EncodeToString(sum[:]) != c.SHA256 || int64(len(text)) != c.Bytes {
			tb.Errorf("%s: got %d bytes with the sum %x, want what the manifest says: %+v", c.Name, len(text), sum, c)
		}
		files[c.Name] = string(text)
	}
	return m, files
}

// Promises: whole-rows, whole-complete
func TestWholeCopiesHaveWhatASearchFinds(t *testing.T) {
	s := openStore(t)
	k := copying(t, s, t.TempDir())
	expect.ErrOf(t, ErrNone, "without copies")(k.NewestCopies())
	var want []string
	for i := range 300 {
		want = append(want, listAsset(t, s, fmt.Sprintf(`,"title":"%d %s","items":[{"id":"1"},{"id":"2"}]`, i, strings.Repeat("я", 20_000))))
	}
	listAsset(t, s, `,"mode":"test"`)
	slices.Sort(want)
	made := mustMake(t, k)
	m, files := copiesOf(t, k)
	if m.Begun != made.Begun || m.Position != made.Position || len(m.Segments) > 0 || len(made.Segments) < 2 {
		t.Errorf("got copies of %d at %d, want copies of %d at %d, which has several segments",
			m.Begun, m.Position, made.Begun, made.Position)
	}
	rows := map[string]int{}
	for _, c := range m.Copies {
		rows[c.Name] = c.Rows
	}
	wantRows := map[string]int{"assets.csv": 300, "items.csv": 600, "documents.csv": 0, "assets.jsonl.gz": 300, "assets.geojson": 0}
	expect.NoDiff(t, cmp.Diff(wantRows, rows), "rows")
	r := expect.Get(gzip.NewReader(strings.NewReader(files["assets.jsonl.gz"])))(t)
	got := expect.Get(io.ReadAll(r))(t)
	if string(got) != strings.Join(want, "\n")+"\n" {
		t.Errorf("got other lines than the %d assets in the order of their ids", len(want))
	}
}

// copyNames counts the manifests and the files of whole copies in a directory.
func copyNames(t *testing.T, dir string) (manifests, files int) {
	t.Helper()
	for _, name := range names(t, filepath.Join(dir, "copies")) {
		if strings.HasSuffix(name, manifestEnd) {
			manifests++
		} else {
			files++
		}
	}
	return manifests, files
}

// Promises: whole-kept
func TestTheNewestWholeCopiesAreKept(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	k := copying(t, s, dir)
	for n := range 4 {
		listAsset(t, s, `,"items":[{"location":{"latitude":1,"longitude":2}}],"documents":[{}]`)
		mustMake(t, k)
		want := min(n+1, defaultKeep)
		if manifests, files := copyNames(t, dir); manifests != want || files != want*len(export.Whole) {
			t.Errorf("after %d snapshots: got %d manifests and %d files, want %d and %d", n+1, manifests, files, want, want*5)
		}
	}
	expect.OK(t, os.WriteFile(filepath.Join(k.copies(), "assets.csv.new1"), nil, 0o600))
	hiding := copying(t, s, dir)
	hiding.o.Hidden = []asset.Group{asset.Contacts}
	expect.ErrOf(t, ErrNone, "copies with a hidden field")(hiding.NewestCopies())
	mustMake(t, hiding)
	if manifests, files := copyNames(t, dir); manifests != 1 || files != len(export.Whole) {
		t.Errorf("after others are hidden: got %d manifests and %d files, want 1 and 5", manifests, files)
	}
	hiding.o.Copies = false
	mustMake(t, hiding)
	if manifests, files := copyNames(t, dir); manifests+files != 0 {
		t.Errorf("without whole copies: got %d manifests and %d files, want none", manifests, files)
	}
}

// TestAnUnchangedCopyKeepsItsFile compares inodes. The file must not be replaced, because that would cut off
// downloads of the file.
func TestAnUnchangedCopyKeepsItsFile(t *testing.T) {
	s := openStore(t)
	k := copying(t, s, t.TempDir())
	listAsset(t, s, "")
	mustMake(t, k)
	m, _ := copiesOf(t, k)
	file := k.copy(m.Copies[0].SHA256, m.Copies[0].Name)
	before := expect.Get(os.Stat(file))(t)
	mustMake(t, k)
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("got another file (%v), want the same one", err)
	}
	expect.OK(t, os.WriteFile(file, []byte("damaged"), 0o600))
	mustMake(t, k)
	copiesOf(t, k)
}

// Promises: whole-complete
func TestAFailureKeepsTheOldCopies(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	k := copying(t, s, dir)
	listAsset(t, s, "")
	mustMake(t, k)
	old, _ := copiesOf(t, k)
	listAsset(t, s, "")
	newest := makeWithoutCopies(t, k)
	never := k.pause
	k.pause = func(context.Context, time.Duration) error { return errors.New("the maker is stopped") }
	if err := k.makeMissingCopies(t.Context()); err == nil || !strings.Contains(err.Error(), "whole copies") {
		t.Fatalf("got %v, want an error of the whole copies", err)
	}
	if got, _ := copiesOf(t, k); got.Begun != old.Begun {
		t.Errorf("got the copies of %d, want the old ones, of %d", got.Begun, old.Begun)
	}
	if manifests, files := copyNames(t, dir); manifests != 1 || files != len(export.Whole) {
		t.Errorf("got %d manifests and %d files, want 1 and 5", manifests, files)
	}
	k.pause = never
	expect.OK(t, k.makeMissingCopies(t.Context()))
	if got, _ := copiesOf(t, k); got.Begun != newest.Begun {
		t.Errorf("after another try: got the copies of %d, want %d", got.Begun, newest.Begun)
	}
}

// makeWithoutCopies makes a snapshot, but not its whole copies.
func makeWithoutCopies(t *testing.T, k *Keeper) Manifest {
	t.Helper()
	unlock := expect.Get(k.lock())(t)
	defer unlock()
	return expect.Get(k.make(t.Context(), func(Segment) {}))(t)
}

// TestCopiesAndSnapshotFailApart lets the makers of the snapshot and of the copies fail during a rest. Each time
// the rest is a different one. The snapshot must be published each time. No unfinished file may stay, and missing
// copies must be made later.
// Promises: whole-complete
func TestCopiesAndSnapshotFailApart(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	k := copying(t, s, dir)
	for range 60 {
		listAsset(t, s, fmt.Sprintf(`,"title":%q`, strings.Repeat("я", 20_000)))
	}
	old := mustMake(t, k)
	failing := 1
	for ; ; failing++ {
		listAsset(t, s, "")
		var rests atomic.Int64
		k.pause = func(ctx context.Context, _ time.Duration) error {
			if rests.Add(1) == int64(failing) {
				return errors.New("the maker is stopped")
			}
			return ctx.Err()
		}
		_, errMake := k.Make(t.Context())
		newest, err := k.Newest()
		if err != nil || newest.Begun <= old.Begun {
			t.Fatalf("rest %d fails: got the snapshot %d after %d (%v), want a new one", failing, newest.Begun, old.Begun, err)
		}
		if k.lacksCopies() != (errMake != nil) {
			t.Errorf("rest %d fails: got %v, and copies are missing: %t", failing, errMake, k.lacksCopies())
		}
		if manifests, files := copyNames(t, dir); files > manifests*len(export.Whole) {
			t.Errorf("rest %d fails: got %d manifests and %d files, want no unfinished ones", failing, manifests, files)
		}
		expect.OK(t, k.makeMissingCopies(t.Context()))
		if got, _ := copiesOf(t, k); got.Begun != newest.Begun {
			t.Errorf("rest %d fails: got the copies of %d, want %d", failing, got.Begun, newest.Begun)
		}
		if errMake == nil {
			break
		}
		old = newest
	}
	expect.ErrorIf(t, failing < 5, "got %d rests, want several in the snapshot and in the copies", failing-1)
}

func TestADamagedSegmentMakesNoCopies(t *testing.T) {
	s := openStore(t)
	k := copying(t, s, t.TempDir())
	listAsset(t, s, "")
	m := makeWithoutCopies(t, k)
	expect.OK(t, os.WriteFile(k.segment(m.Segments[0].SHA256), []byte("damaged"), 0o600))
	if err := k.makeMissingCopies(t.Context()); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v, want an error that says what is damaged", err)
	}
	mustMake(t, k) // repairs the segment
	copiesOf(t, k)
}

func TestACopyIsNamedByItsHashOnly(t *testing.T) {
	s := openStore(t)
	k := copying(t, s, t.TempDir())
	mustMake(t, k)
	m, _ := copiesOf(t, k)
	good := m.Copies[0]
	for _, c := range []Copy{
		{Name: "items.csv", SHA256: good.SHA256}, {Name: good.Name}, {Name: "../lock", SHA256: good.SHA256},
		{Name: good.Name, SHA256: strings.ToUpper(good.SHA256)}, {Name: good.Name, SHA256: "../" + good.SHA256[3:]},
	} {
		expect.ErrOf(t, ErrNone, "%+v", c)(k.Copy(c.SHA256, c.Name))
	}
}
