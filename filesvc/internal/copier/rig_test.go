package copier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/filesvc/internal/boltstore"
	"asset-registry/filesvc/internal/dirstore"
	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

func id(n int) string { return fmt.Sprintf("%032x", n) }

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// document returns a document that names file n, whose bytes are the given text.
func document(n int, text string) map[string]any {
	return map[string]any{"id": "d", "url": "https://registry.example/get/" + id(n), "sha256": sum(text), "size": len(text)}
}

// assets is a fake copy of the upstream's assets.
type assets struct {
	mu    sync.Mutex
	last  int64
	at    map[string]int64
	texts map[string]string
}

// put changes asset n, so that it has exactly these documents.
func (a *assets) put(n int, documents ...any) {
	text, _ := json.Marshal(map[string]any{"id": id(n), "items": []any{map[string]any{"documents": documents}}})
	a.putText(n, string(text))
}

func (a *assets) putText(n int, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	a.at[id(n)], a.texts[id(n)] = a.last, text
}

func (a *assets) Changes(after int64, visit func(int64, string, []byte) bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(a.at), func(x, y string) int { return cmp.Compare(a.at[x], a.at[y]) }) {
		if a.at[id] > after && !visit(a.at[id], id, []byte(a.texts[id])) {
			return nil
		}
	}
	return nil
}

func (a *assets) Text(id string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []byte(a.texts[id]), nil
}

// rig is a copier and its fake upstream.
type rig struct {
	t      *testing.T
	dir    string
	assets *assets
	store  *boltstore.Store
	*Copier

	mu      sync.Mutex
	answer  map[string]http.HandlerFunc // the keys are paths
	asked   map[string]int
	removed []string // ids of removed files
	url     string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), assets: &assets{at: map[string]int64{}, texts: map[string]string{}},
		answer: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	r.answer["/get/removed"] = r.listRemoved
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked[q.URL.Path]++
		answer := r.answer[q.URL.Path]
		r.mu.Unlock()
		if answer == nil {
			answer = http.NotFound
		}
		if q.URL.Path == "/get/removed" {
			w.Header().Set("Content-Type", "application/json")
		}
		answer(w, q)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	r.open()
	t.Cleanup(func() { r.store.Close() })
	return r
}

// open opens the copies like a new process.
func (r *rig) open() {
	r.t.Helper()
	bytes, err := dirstore.Open(filepath.Join(r.dir, "files"))
	expect.OK(r.t, err)
	r.store, err = boltstore.OpenCopies(filepath.Join(r.dir, "files.db"))
	expect.OK(r.t, err)
	r.Copier = New(Config{
		Metadata: r.store, Bytes: bytes, Assets: r.assets, MaxFile: 1 << 20, Retry: time.Millisecond,
		Every: 20 * time.Millisecond, Now: time.Now,
		Source: Source{
			HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			URL:  r.url, UserAgent: "test", Pace: httpserver.Pace{Bytes: 1 << 10, Within: 500 * time.Millisecond},
		},
	})
}

// reopen closes the copies and opens them like a new process.
func (r *rig) reopen() {
	r.t.Helper()
	expect.OK(r.t, r.store.Close())
	r.open()
}

// serve sets the handler by which the upstream answers a path.
func (r *rig) serve(path string, answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer[path] = answer
}

// serveText gives file n to the upstream.
func (r *rig) serveText(n int, text string) { r.serve("/get/"+id(n), has(text)) }

func has(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

// requests returns how often a path was requested.
func (r *rig) requests(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[path]
}

func (r *rig) remove(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed = append(r.removed, ids...)
	slices.Sort(r.removed)
}

// listRemoved answers with the list of removals as a registry does, but with two ids on a page.
func (r *rig) listRemoved(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	data := []map[string]string{}
	for _, id := range r.removed {
		if id > q.URL.Query().Get("after") && len(data) < 2 {
			data = append(data, map[string]string{"id": id})
		}
	}
	answer := map[string]any{"data": data}
	if len(data) == 2 {
		answer["next_page"] = map[string]string{"after": data[1]["id"]}
	}
	text, _ := json.Marshal(answer)
	w.Write(text)
}

// text returns the bytes of a copy as a client reads them.
func (r *rig) text(n int) (string, error) {
	r.t.Helper()
	ctx := r.t.Context()
	f, err := r.Files.Get(ctx, id(n))
	if err != nil {
		return "", err
	}
	if err := r.MayServe(ctx, f); err != nil {
		return "", err
	}
	blob, err := r.Files.Open(ctx, f)
	if err != nil {
		return "", err
	}
	defer blob.Close()
	text, err := io.ReadAll(blob)
	return string(text), err
}

// The method `has` fails the test unless the copy of file n has these bytes.
func (r *rig) has(n int, want string) {
	r.t.Helper()
	expect.Value(r.t, want, "file %d", n)(r.text(n))
}

// lacks fails the test unless reading file n returns a fault of this kind.
func (r *rig) lacks(n int, want fault.Kind) {
	r.t.Helper()
	if got, err := r.text(n); fault.KindOf(err) != want {
		r.t.Errorf("file %d: got %q and %v, want a fault of kind %v", n, got, err, want)
	}
}

// blobs returns the names of all files that have bytes, including unfinished ones.
func (r *rig) blobs() (names []string) {
	r.t.Helper()
	expect.OK(r.t, filepath.WalkDir(filepath.Join(r.dir, "files"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.Contains(path, "/removed/") {
			names = append(names, entry.Name())
		}
		return err
	}))
	return names
}

func (r *rig) mustCatchUp() {
	r.t.Helper()
	expect.OK(r.t, r.CatchUp(r.t.Context()))
}

// mustList fails the test unless a mirror of this mirror would read these removals.
func (r *rig) mustList(want ...string) {
	r.t.Helper()
	got, _, err := r.Files.ListRemoved(r.t.Context(), "", 10)
	if err != nil || !slices.Equal(got, want) {
		r.t.Errorf("got the removals %q and %v, want %q", got, err, want)
	}
}

// await waits until the function isTrue returns true.
func await(t *testing.T, what string, isTrue func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !isTrue(); time.Sleep(5 * time.Millisecond) {
		expect.FatalIf(t, time.Now().After(end), "waited in vain: %s", what)
	}
}

// run starts the copier. The function that it returns ends the copier.
func (r *rig) run() (end func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx, func(error) {}, func(error) {})
	}()
	return func() { cancel(); <-ended }
}

// stored returns the metadata of a file.
func (r *rig) stored(n int) file.File {
	r.t.Helper()
	f, err := r.store.Get(r.t.Context(), id(n))
	if err != nil && !errors.Is(err, file.ErrNotFound) {
		r.t.Fatal(err)
	}
	return f
}
