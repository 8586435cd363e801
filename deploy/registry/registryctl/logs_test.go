package registryctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

const testOrigin = "registry.example/log"

// logged is a change, and its leaf in the log.
type logged struct {
	leaf  translog.Leaf
	salt  translog.Salt
	asset []byte
}

// testRegistry is a registry with a public log, which answers over HTTP. A test may change its answers.
type testRegistry struct {
	*httptest.Server
	key     translog.Key
	changes []logged
	tree    translog.Tree
	parts   map[string][]byte
	signed  []byte

	mu      sync.Mutex
	now     map[string][]byte // current assets
	list    []string          // ids, in the order of the feed
	answers map[string]string // by URL: answers that replace the usual ones
	empty   map[string]int    // by URL: the status of an answer without a body
}

func newTestKey(t testing.TB, use translog.Use, name string, seed byte) translog.Key {
	t.Helper()
	return expect.Get(translog.NewKey(use, name, bytes.Repeat([]byte{seed}, 32)))(t)
}

// newTestRegistry returns a registry whose log has 40 assets with 300 changes. Asset 7 is withdrawn; asset 8
// was withdrawn and published again.
func newTestRegistry(t testing.TB, seed int) *testRegistry {
	t.Helper()
	r := &testRegistry{
		key:   newTestKey(t, translog.ForLog, testOrigin, 1),
		parts: map[string][]byte{}, now: map[string][]byte{}, answers: map[string]string{},
	}
	for i := range 300 {
		kind := translog.Change
		switch {
		case i < 40:
			kind = translog.Publish
		case i%40 == 7 && i > 260, i == 208:
			kind = translog.Withdraw
		case i == 248:
			kind = translog.Publish
		}
		title := fmt.Sprintf("change %d", i)
		if i == 3 {
			title = fmt.Sprintf("seed %d", seed) // logs with different seeds differ in this leaf
		}
		r.change(t, kind, i%40, title)
	}
	r.sign(t)
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func idOf(asset int) string { return fmt.Sprintf("%032x", asset) }

// change appends a change to the log, without signing the log.
func (r *testRegistry) change(t testing.TB, kind translog.Kind, asset int, title string) {
	t.Helper()
	id, mode := idOf(asset), ""
	at := int64(1790000000000000) + int64(len(r.changes))*1003
	if kind == translog.Withdraw {
		mode = `"mode":"test",`
	}
	r.append(t, kind, id, at, assetJSON(id, mode, title, at))
}

// append appends an asset to the log, without signing the log.
func (r *testRegistry) append(t testing.TB, kind translog.Kind, id string, at int64, asset []byte) {
	t.Helper()
	c := logged{
		leaf:  translog.Leaf{Position: at, Asset: id, Revision: int64(len(r.changes) + 2), Kind: kind},
		asset: asset,
	}
	copy(c.salt[:], fmt.Sprintf("salt %d", len(r.changes)))
	if kind != translog.Withdraw {
		var err error
		c.leaf.Commitment, err = translog.Commit(c.salt, c.asset)
		expect.OK(t, err)
	}
	r.changes = append(r.changes, c)
	r.set(id, c.asset, kind != translog.Withdraw)
}

// assetJSON returns an asset. It is not in canonical form: its numbers and texts could be written differently.
func assetJSON(id, mode, title string, at int64) []byte {
	return fmt.Appendf(nil, `{"title":%q,%s"id":%q,"items":[{"quantity":240.50}],"dateModified":%q}`, title, mode, id,
		time.UnixMicro(at).UTC().Format("2006-01-02T15:04:05.000000-07:00"))
}

// set sets the current state of an asset, and whether the feed lists it.
func (r *testRegistry) set(id string, asset []byte, listed bool) {
	r.now[id] = asset
	r.list = slices.DeleteFunc(r.list, func(other string) bool { return other == id })
	if listed {
		at, _ := slices.BinarySearchFunc(r.list, r.modified(id), func(other, modified string) int {
			return strings.Compare(r.modified(other), modified)
		})
		r.list = slices.Insert(r.list, at, id)
	}
}

// modified returns the dateModified of the current asset.
func (r *testRegistry) modified(id string) string {
	var asset struct{ DateModified string }
	if err := json.Unmarshal(r.now[id], &asset); err != nil {
		panic(err)
	}
	return asset.DateModified
}

// sign adds all changes to the tree, and signs a checkpoint of it.
func (r *testRegistry) sign(t testing.TB, keys ...translog.Key) {
	t.Helper()
	var leaves [][]byte
	for _, c := range r.changes[r.tree.Size():] {
		leaves = append(leaves, c.leaf.Encode())
	}
	tree, full, err := r.tree.Append(leaves)
	expect.OK(t, err)
	r.tree = tree
	for _, part := range append(full, tree.Edge()...) {
		r.parts["/log/"+part.Tile.Path()] = bytes.Clone(part.Data)
	}
	r.signed, err = translog.Sign(r.checkpoint(), append(keys, r.key)...)
	expect.OK(t, err)
}

func (r *testRegistry) checkpoint() translog.Checkpoint {
	return translog.Checkpoint{Origin: testOrigin, Size: r.tree.Size(), Root: r.tree.Root()}
}

func (r *testRegistry) ReadPart(_ context.Context, tile translog.Tile) ([]byte, error) {
	if data, ok := r.parts["/log/"+tile.Path()]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// proof returns the registry's answer to a request for the proof of a change.
func (r *testRegistry) proof(index int64) string {
	c := r.changes[index]
	answer := r.bare(index)
	if c.leaf.Kind != translog.Withdraw {
		answer["salt"], answer["asset"] = c.salt.String(), json.RawMessage(c.asset)
	}
	return dataOf(answer)
}

// erased returns the proof of a change whose content was erased.
func (r *testRegistry) erased(index int64) string { return dataOf(r.bare(index)) }

// bare returns a proof that has no content.
func (r *testRegistry) bare(index int64) map[string]any {
	path, err := translog.Include(context.Background(), r.checkpoint(), index, r)
	if err != nil {
		panic(err)
	}
	leaf := json.RawMessage(r.changes[index].leaf.Encode())
	return map[string]any{"index": index, "leaf": leaf, "path": path, "checkpoint": string(r.signed)}
}

func dataOf(data any) string {
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (r *testRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	r.mu.Lock()
	defer r.mu.Unlock()
	if status := r.empty[request.URL.String()]; status > 0 {
		w.WriteHeader(status)
		return
	}
	text, found := r.answers[request.URL.String()]
	if !found {
		text = r.answer(request)
	}
	if text == "" {
		w.WriteHeader(http.StatusNotFound)
		text = `{"status":"error","errors":[{"location":"url","name":"revision","description":"There is none."}]}`
	}
	_, _ = w.Write([]byte(text)) // an error only means that the client has left
}

// answer returns the usual answer, or "" for an unknown address.
func (r *testRegistry) answer(request *http.Request) string {
	path := request.URL.Path
	id := strings.TrimPrefix(path, "/api/2.5/assets/")
	switch {
	case path == "/log/checkpoint":
		return string(r.signed)
	case strings.HasPrefix(path, "/log/"):
		return string(r.parts[path])
	case path == "/api/2.5/assets":
		return r.page(request.URL.Query().Get("offset"))
	case strings.HasSuffix(path, "/proof"):
		id = strings.TrimSuffix(id, "/proof")
		revision, _ := strconv.ParseInt(request.URL.Query().Get("revision"), 10, 64) // 0 if the request has no revision
		for i := len(r.changes) - 1; i >= 0; i-- {
			if l := r.changes[i].leaf; l.Asset == id && (revision == 0 || revision == l.Revision) {
				return r.proof(int64(i))
			}
		}
		return ""
	case r.now[id] != nil:
		return `{"data":` + string(r.now[id]) + `}`
	default:
		return ""
	}
}

// page returns a page of 15 entries. The argument `offset` is the number of entries before the page.
func (r *testRegistry) page(offset string) string {
	first, _ := strconv.Atoi(offset) // 0 for the beginning of the list
	data := []map[string]string{}
	for _, id := range r.list[first:min(first+15, len(r.list))] {
		data = append(data, map[string]string{"id": id, "dateModified": r.modified(id)})
	}
	next := map[string]string{"offset": strconv.Itoa(first + len(data))}
	text, err := json.Marshal(map[string]any{"data": data, "next_page": next})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// file writes a file into a new directory, and returns its path.
func file(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	expect.OK(t, os.WriteFile(path, data, 0o600))
	return path
}
