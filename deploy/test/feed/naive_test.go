package feed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/randtest"
)

// naive is a registry with a simple feed and a simple record, as many systems have them. Unless the field `sound`
// is true, it first chooses dateModified, and stores the change later. So a change can appear in the feed at a
// position that a follower has already passed. The dates in a record can be in the wrong order.
type naive struct {
	sound bool // naive makes each change in one step
	// naive adds a change to the record first. Then it refuses the change if another request has changed the asset.
	ahead bool
	apart bool // naive extends a record, and does not check whether another request has changed it
	hides bool // naive takes an asset off the list while it stores a change of the asset
	fan   *fan // sends the feed to followers; nil if there are no streams

	mu      sync.Mutex
	assets  map[string]naiveAsset
	records map[string][]map[string]any // the keys are ids of assets; the newest change comes first
}

type naiveAsset struct {
	ID           string `json:"id"`
	Description  string `json:"description"`
	DateModified string `json:"dateModified"`
	Status       string `json:"-"` // not in the JSON; the feed does not list drafts
}

// naiveFields are the fields that a request may set.
type naiveFields struct{ Description, Status string }

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/2.5/assets"), "/")
	of, isRecord := strings.CutSuffix(id, "/revisions")
	switch {
	case n.fan != nil && r.Header.Get("Accept") != "":
		n.fan.stream(w, r)
	case r.Method == http.MethodGet && id == "":
		n.list(w, r)
	case isRecord:
		n.record(w, r, of)
	case r.Method == http.MethodGet:
		n.mu.Lock()
		defer n.mu.Unlock()
		reply(w, http.StatusOK, map[string]any{"data": n.assets[id]})
	default:
		n.save(w, r, id)
	}
}

// pause waits as long as a write to a disk could take. It releases the lock meanwhile, so that other requests can
// work.
func (n *naive) pause() {
	n.mu.Unlock()
	time.Sleep(time.Duration(randtest.IntN(5000)) * time.Microsecond)
	n.mu.Lock()
}

func (n *naive) save(w http.ResponseWriter, r *http.Request, id string) {
	var body struct{ Data naiveFields }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	before, status := n.assets[id], http.StatusOK
	if id == "" {
		id, status = fmt.Sprintf("%016x", randtest.Uint64()), http.StatusCreated
	}
	a := naiveAsset{id, body.Data.Description, time.Now().UTC().Format("2006-01-02T15:04:05.000000000+00:00"),
		body.Data.Status}
	record := n.records[id]
	if n.ahead {
		n.extend(record, before, a)
	}
	if n.hides {
		n.assets[id] = naiveAsset{ID: id}
	}
	if !n.sound {
		n.pause()
	}
	if n.ahead && n.assets[id] != before {
		w.WriteHeader(http.StatusConflict)
		return
	}
	n.assets[id] = a
	if n.fan != nil && a.Status != "" {
		n.fan.changed(a)
	}
	if !n.apart {
		record = n.records[id]
	}
	if !n.ahead {
		n.extend(record, before, a)
	}
	reply(w, status, map[string]any{"data": a, "access": map[string]any{"token": "t"}})
}

// extend adds a change to a record, and stores the result.
func (n *naive) extend(record []map[string]any, before, after naiveAsset) {
	change := map[string]any{"op": "replace", "path": "/description", "value": after.Description}
	if before.ID == "" {
		change = map[string]any{"op": "add", "path": "",
			"value": map[string]any{"id": after.ID, "description": after.Description}}
	}
	n.records[after.ID] = append([]map[string]any{
		{"revision": len(record) + 1, "date": after.DateModified, "changes": []any{change}},
	}, record...)
}

// record answers with the whole record on the first page, and with empty further pages.
func (n *naive) record(w http.ResponseWriter, r *http.Request, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	data := n.records[id]
	if r.URL.Query().Get("offset") != "" {
		data = nil
	}
	reply(w, http.StatusOK, map[string]any{"data": data, "next_page": map[string]any{"path": r.URL.Path + "?offset=end"}})
}

func (n *naive) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	offset, descending := q.Get("offset"), q.Get("descending") != ""
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.page(offset, limit, descending)
	first, last := offset, offset
	if len(all) > 0 {
		first, last = all[0].DateModified, all[len(all)-1].DateModified
	}
	path := fmt.Sprintf("/api/2.5/assets?limit=%d&offset=", limit)
	next, prev := path+url.QueryEscape(last), path+url.QueryEscape(first)
	if descending {
		next += "&descending=1"
	}
	reply(w, http.StatusOK, map[string]any{"data": all, "next_page": map[string]any{"path": next},
		"prev_page": map[string]any{"path": prev}})
}

// page returns at most `limit` assets after an offset. The caller holds the lock.
func (n *naive) page(offset string, limit int, descending bool) (all []naiveAsset) {
	for _, a := range n.assets {
		if a.Status != "" && (offset == "" || (a.DateModified > offset) != descending && a.DateModified != offset) {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b naiveAsset) int {
		if descending {
			a, b = b, a
		}
		return strings.Compare(a.DateModified, b.DateModified)
	})
	return all[:min(len(all), limit)]
}

func reply(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// run runs a load on the naive registry, and prints the report.
func (n *naive) run(t *testing.T, l load) *report {
	t.Helper()
	n.assets, n.records = map[string]naiveAsset{}, map[string][]map[string]any{}
	server := httptest.NewServer(n)
	defer server.Close()
	at := []string{server.URL}
	r := newHistory(&services{bases: at, edges: at, signer: signer(t), client: client()}, l).
		run(t.Context(), func() {})
	print("naive", r, chaos{})
	printLive(r)
	return r
}

func TestTheCheckerFindsLossesOfANaiveRegistry(t *testing.T) {
	r := (&naive{}).run(t, load{writers: 16, followers: 4, changes: 2000, assets: 100})
	if r.lost == 0 {
		t.Error("got no lost change on a registry that loses changes, want at least one")
	}
}

func TestTheCheckerFindsAssetsThatVanish(t *testing.T) {
	r := (&naive{hides: true}).run(t, load{writers: 4, followers: 1, changes: 500, assets: 20})
	if r.vanished == 0 || r.walks == 0 {
		t.Errorf("got %d assets that vanished in %d walks, want at least one", r.vanished, r.walks)
	}
}

func TestTheCheckerFindsFaultsOfANaiveRecord(t *testing.T) {
	for _, c := range []struct {
		name     string
		registry *naive
		found    func(r *report) bool
	}{
		{"all of a change at once is sound", &naive{sound: true},
			func(r *report) bool { return len(r.examples) == 0 && r.recorded > r.changes }},
		{"the time before the write", &naive{}, func(r *report) bool { return r.reordered > 0 }},
		{"the record before a write that is refused", &naive{ahead: true}, func(r *report) bool { return r.extra > 0 }},
		{"the record written back without a guard", &naive{apart: true}, func(r *report) bool { return r.missing > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.registry.run(t, load{writers: 16, changes: 1000, assets: 10})
			if !c.found(r) {
				t.Errorf("got %d recorded, %d missing, %d extra and %d reordered changes, and %q", r.recorded, r.missing,
					r.extra, r.reordered, r.examples)
			}
		})
	}
}
