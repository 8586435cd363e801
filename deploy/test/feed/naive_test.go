package feed

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// naive is a registry with a simple feed, as other systems have it: it takes the time
// for dateModified first and stores the change later. So a change can appear in the
// feed before the offset of a follower.
type naive struct {
	mu     sync.Mutex
	assets map[string]naiveAsset
}

type naiveAsset struct {
	ID           string `json:"id"`
	Description  string `json:"description"`
	DateModified string `json:"dateModified"`
}

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/2.5/assets"), "/")
	switch {
	case r.Method == http.MethodGet && id == "":
		n.list(w, r)
	case r.Method == http.MethodGet:
		n.mu.Lock()
		defer n.mu.Unlock()
		reply(w, http.StatusOK, map[string]any{"data": n.assets[id]})
	default:
		n.save(w, r, id)
	}
}

func (n *naive) save(w http.ResponseWriter, r *http.Request, id string) {
	var body struct{ Data naiveAsset }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	status := http.StatusOK
	if id == "" {
		id, status = fmt.Sprintf("%016x", rand.Uint64()), http.StatusCreated
	}
	n.mu.Lock()
	a := naiveAsset{id, body.Data.Description, time.Now().UTC().Format("2006-01-02T15:04:05.000000000+00:00")}
	n.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond) // the time of a write to disk
	n.mu.Lock()
	defer n.mu.Unlock()
	n.assets[id] = a
	reply(w, status, map[string]any{"data": a, "access": map[string]any{"token": "t"}})
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
	var all []naiveAsset
	for _, a := range n.assets {
		if offset == "" || (a.DateModified > offset) != descending && a.DateModified != offset {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b naiveAsset) int {
		if descending {
			a, b = b, a
		}
		return strings.Compare(a.DateModified, b.DateModified)
	})
	all = all[:min(len(all), limit)]
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

func reply(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func TestTheCheckerFindsLossesOfANaiveRegistry(t *testing.T) {
	server := httptest.NewServer(&naive{assets: map[string]naiveAsset{}})
	defer server.Close()
	r := newHistory(&services{bases: []string{server.URL}, signer: signer(t), client: client()},
		load{writers: 16, followers: 4, changes: 2000, assets: 100}).run(t.Context(), func() {})
	print("naive", r, chaos{})
	if r.lost == 0 {
		t.Error("got no lost change on a registry that loses changes, want at least one")
	}
}
