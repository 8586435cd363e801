package replica

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"asset-registry.example/client"

	"asset-registry/shared/testing/expect"
)

// fake is a registry that answers over HTTP. Tests change its data.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	data     string            // value of the cookie SERVER_ID
	assets   map[string]int    // position of each asset, in seconds
	padding  string            // text in each asset, to make it longer
	manifest string            // answer of /snapshot; "": 404
	files    map[string][]byte // segments by path
	read     []string          // paths of segments that were read
	reading  func(path string) // nil, or called before a segment is read
	paging   func()            // nil, or called with the lock held before a page is read
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{data: "first", assets: map[string]int{}, files: map[string][]byte{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func idOf(n int) string { return fmt.Sprintf("%032x", n) }

func stampOf(second int) string {
	return time.Unix(int64(second), 0).UTC().Format("2006-01-02T15:04:05.000000-07:00")
}

// publish gives an asset a new position.
func (f *fake) publish(n, second int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.assets[idOf(n)] = second
}

func (f *fake) entry(id string) string {
	return fmt.Sprintf(`{"id":%q,"dateModified":%q,"quantity":240.50,"x":%q}`, id, stampOf(f.assets[id]), f.padding)
}

// export returns the lines of all assets, in the order of their ids.
func (f *fake) export() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines strings.Builder
	for _, id := range slices.Sorted(maps.Keys(f.assets)) {
		lines.WriteString(f.entry(id) + "\n")
	}
	return lines.String()
}

// snapshot makes a snapshot with one file for each asset, and returns the paths of the files. Files of the
// previous snapshot are removed if the new one does not have them.
func (f *fake) snapshot(t *testing.T, date string) []string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	encoder, err := zstd.NewWriter(nil)
	expect.OK(t, err)
	newest, bytes, lines := 0, 0, 0
	f.files = map[string][]byte{}
	var paths, segments []string
	for _, id := range slices.Sorted(maps.Keys(f.assets)) {
		newest = max(newest, f.assets[id])
		line := f.entry(id) + "\n"
		packed := encoder.EncodeAll([]byte(line), nil)
		bytes, lines = bytes+len(packed), lines+len(line)
		sum := sha256.Sum256(packed)
		hash := hex.EncodeToString(sum[:])
		paths = append(paths, "/files/"+hash)
		f.files["/files/"+hash] = packed
		segments = append(segments, fmt.Sprintf(
			`{"from":%q,"to":%q,"assets":1,"bytes":%d,"uncompressedBytes":%d,"sha256":%q,"path":"/files/%s"}`,
			id, id, len(packed), len(line), hash, hash))
	}
	f.manifest = fmt.Sprintf(
		`{"data":{"position":%q,"date":%q,"assets":%d,"bytes":%d,"uncompressedBytes":%d,"segments":[%s]}}`,
		stampOf(newest), date, len(paths), bytes, lines, strings.Join(segments, ","))
	return paths
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	reading := f.reading
	f.mu.Unlock()
	if reading != nil && strings.HasPrefix(r.URL.Path, "/files/") {
		reading(r.URL.Path)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	cookie, err := r.Cookie("SERVER_ID")
	other := err == nil && cookie.Value != f.data
	w.Header().Set("Content-Type", "application/json")
	http.SetCookie(w, &http.Cookie{Name: "SERVER_ID", Value: f.data})
	switch offset := r.URL.Query().Get("offset"); {
	case f.files[r.URL.Path] != nil:
		f.read = append(f.read, r.URL.Path)
		w.Write(f.files[r.URL.Path])
	case r.URL.Path == "/api/2.5/snapshot" && f.manifest != "":
		fmt.Fprint(w, f.manifest)
	case r.URL.Path == "/api/2.5/assets" && r.URL.Query().Has("descending"):
		fmt.Fprint(w, f.end())
	case r.URL.Path == "/api/2.5/assets" && (offset == "" || !other):
		if f.paging != nil {
			f.paging()
		}
		fmt.Fprint(w, f.page(offset))
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"status":"error","errors":[{"location":"querystring","name":"offset"}]}`)
	}
}

// page returns a page of at most 3 entries after an offset.
func (f *fake) page(offset string) string {
	ids := slices.SortedFunc(maps.Keys(f.assets), func(a, b string) int { return f.assets[a] - f.assets[b] })
	var entries []string
	for _, id := range ids {
		if stampOf(f.assets[id]) > offset && len(entries) < 3 {
			entries = append(entries, f.entry(id))
		}
	}
	next := offset
	if len(entries) > 0 {
		next = lastStamp(entries)
	}
	return fmt.Sprintf(`{"data":[%s],"next_page":{"offset":%q}}`, strings.Join(entries, ","), next)
}

// end returns the page with the newest entry, in descending order.
func (f *fake) end() string {
	var entries []string
	for id, second := range f.assets {
		if second == slices.Max(slices.Collect(maps.Values(f.assets))) {
			entries = append(entries, f.entry(id))
		}
	}
	next := ""
	if len(entries) > 0 {
		next = lastStamp(entries)
	}
	return fmt.Sprintf(`{"data":[%s],"next_page":{"offset":%q}}`, strings.Join(entries, ","), next)
}

func lastStamp(entries []string) string {
	_, rest, _ := strings.Cut(entries[len(entries)-1], `"dateModified":"`)
	stamp, _, _ := strings.Cut(rest, `"`)
	return stamp
}

// source returns a Source that reads from the fake registry.
func (f *fake) source(t *testing.T) Source {
	t.Helper()
	c, err := client.New(client.Config{URL: f.URL, Retry: client.Retry{Tries: 1}})
	expect.OK(t, err)
	return Source{Client: c, Address: f.URL, Pause: time.Millisecond}
}

// pathsRead returns the paths of the segments that were read since the last call.
func (f *fake) pathsRead() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	read := f.read
	f.read = nil
	return read
}
