package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/randtest"
)

// moves lists the roles that take an asset from one state to another
// (docs/contract.md, "States").
var moves = []struct {
	from, to string
	by       []string
}{
	{"draft", "pending", []string{"owner", "administrator"}},
	{"pending", "deleted", []string{"owner", "administrator"}},
	{"pending", "verification", []string{"concierge", "administrator"}},
	{"verification", "active", []string{"concierge", "administrator"}},
	{"verification", "pending", []string{"concierge", "administrator"}},
	{"active", "pending", []string{"concierge", "administrator"}},
	{"active", "complete", []string{"concierge", "administrator"}},
}

// mayMove looks into the variable `moves`, and reports whether a role may take an asset from one state to another.
func mayMove(role, from, to string) bool {
	for _, m := range moves {
		if m.from == from && m.to == to {
			return slices.Contains(m.by, role)
		}
	}
	return false
}

// testRandomCalls sends random requests, valid and invalid, with any key. Each walker uses a different asset. No
// request may get a 5xx answer, and a refused request must change nothing. The state of an asset must change only
// as the variable `moves` allows. The feed must list every change.
func testRandomCalls(t *testing.T, a api) {
	seed := randtest.Uint64()
	const walkers, steps = 6, 120
	start := a.now(t)
	final := make([]entry, walkers)
	reached := make([]map[string]int, walkers)
	var walking sync.WaitGroup
	for i := range walkers {
		walking.Go(func() {
			w := &walker{api: a, random: rand.New(rand.NewPCG(seed, uint64(i))), reached: map[string]int{}}
			w.asset = a.create(t, validAsset())
			w.now = w.asset.data()
			for range steps {
				// An asset in a final state cannot change any more, so the walker goes on with a new asset.
				if status := w.now["status"]; status == "complete" || status == "deleted" {
					w.asset = a.create(t, validAsset())
					w.now = w.asset.data()
				}
				w.step(t)
			}
			final[i], reached[i] = entry{w.asset.id, text(w.now["dateModified"])}, w.reached
			if w.now["status"] == "draft" {
				final[i] = entry{}
			}
		})
	}
	walking.Wait()
	f := newFollower(a, false, start)
	f.catchUp(t)
	all := map[string]int{}
	for i, e := range final {
		if e.id != "" && !f.seen[e] {
			t.Errorf("got no %v in the feed, want it there", e)
		}
		for what, times := range reached[i] {
			all[what] += times
		}
	}
	t.Logf("%v", all)
	if all["200"] < 20 || all["400"] < 20 || all["403"] < 20 || all["moved"] < walkers {
		t.Errorf("got %v, want at least 20 of 200, 400 and 403 each, and %d moves", all, walkers)
	}
}

// walker sends random requests for one asset.
type walker struct {
	api
	random  *rand.Rand
	asset   created
	now     map[string]any // data of the asset after the last request
	reached map[string]int // the number of answers with each status; "moved": how often the asset changed its state
}

// The method `one` returns one of its arguments, chosen at random.
func (w *walker) one(of ...string) string { return of[w.random.IntN(len(of))] }

// step sends one request and checks its result.
func (w *walker) step(t *testing.T) {
	w.version = w.one("2.4", "2.5", "0")
	c := w.any()
	if w.random.IntN(4) == 0 { // random requests alone would never reach a late state
		c = w.sensible()
	}
	w.check(t, w.do(t, c))
}

// The method `any` returns a random request by a random caller.
func (w *walker) any() call {
	c := call{
		method: w.one("PATCH", "PATCH", "PATCH", "POST", "PUT", "DELETE"),
		path:   "/assets/" + w.asset.id,
		key:    w.one("broker", "broker", "broker", "concierge", "concierge", "administrator", "broker3", "nobody"),
	}
	if w.random.IntN(5) > 0 {
		c.token = w.asset.token
	}
	sent := fields{"status": w.one("draft", "pending", "pending", "verification", "verification", "active", "active",
		"complete", "deleted", "sold")}
	switch w.random.IntN(6) {
	case 0:
		sent = validAsset()
	case 1, 2, 3:
		sent = w.part(&c)
	}
	if w.random.IntN(3) == 0 {
		sent = fields(object(w.spoil(map[string]any(sent))))
	}
	c.body = data(sent)
	if w.random.IntN(30) == 0 {
		c.body = w.one("", "{", `{"data":[]}`, `{"data":null}`, "\xff", `{"data":{"title":"\ud800"}}`)
	}
	return c
}

// part turns c into a request for a part of the asset, and returns valid data for that part.
func (w *walker) part(c *call) fields {
	kinds := []struct {
		path, field string
		valid       fields
	}{
		{"items", "items", validItem()},
		{"decisions", "decisions", fields{"decisionDate": "2026-11-21", "decisionID": "1"}},
		{"documents", "documents", validDocument().set("documentType", w.one("notice", "cancellationDetails"))},
		{"related_processes", "relatedProcesses", validProcess().set("type", w.one("lot", "auction"))},
	}
	kind := kinds[w.random.IntN(len(kinds))]
	c.path = w.asset.of(kind.path)
	if there := list(w.now[kind.field]); c.method != "POST" && len(there) > 0 {
		c.path += "/" + text(object(there[w.random.IntN(len(there))])["id"])
	}
	return kind.valid
}

// sensible returns a request that moves the asset to its next state, or that adds what the next state requires.
func (w *walker) sensible() call {
	c := call{method: "PATCH", key: "broker", path: "/assets/" + w.asset.id, token: w.asset.token, body: data(fields{})}
	status := text(w.now["status"])
	if status == "verification" && w.now["relatedProcesses"] == nil {
		return call{method: "POST", key: "concierge", path: w.asset.of("related_processes"), body: data(validProcess())}
	}
	for _, m := range moves {
		if m.from == status && w.random.IntN(2) == 0 {
			c.body, c.key = data(fields{"status": m.to}), strings.Replace(w.one(m.by...), "owner", "broker", 1)
		}
	}
	return c
}

// check checks the answer, and compares the asset with its state before the request.
func (w *walker) check(t *testing.T, got answer) {
	refused := got.status >= 400
	w.reached[fmt.Sprint(got.status)]++
	if got.status == http.StatusNoContent {
		w.checkRemoved(t, got.call)
		return
	}
	if !slices.Contains([]int{200, 201, 400, 401, 403, 404}, got.status) || refused && got.json["status"] != "error" {
		t.Errorf("%s %s %v: got %d %s, want a documented status", got.call.method, got.call.path, got.call.body,
			got.status, got.text)
	}
	w.version = "2.5"
	before, after := w.now, w.read(t, w.asset.id).must(t, http.StatusOK).data()
	w.now = after
	diff := cmp.Diff(before, after)
	if diff != "" && (refused || text(after["dateModified"]) <= text(before["dateModified"])) {
		t.Errorf("%s %s %v by %s: got %d and this change, want none or a later dateModified (-before +after):\n%s",
			got.call.method, got.call.path, got.call.body, got.call.key, got.status, diff)
	}
	from, to := text(before["status"]), text(after["status"])
	if from == to {
		return
	}
	w.reached["moved"]++
	role := got.call.key
	if role == "broker" && got.call.token != "" {
		role = "owner"
	}
	if !mayMove(role, from, to) {
		t.Errorf("%s: got a move from %s to %s, want it refused", role, from, to)
	}
}

// checkRemoved checks that a removed asset was a draft and that its owner removed it. It then goes on with a new
// asset.
func (w *walker) checkRemoved(t *testing.T, c call) {
	if c.method != "DELETE" || c.path != "/assets/"+w.asset.id || w.now["status"] != "draft" ||
		c.key != "broker" || c.token == "" {
		t.Errorf("%s %s by %s: got 204 in the state %v, want it for the owner of a draft", c.method, c.path, c.key,
			w.now["status"])
	}
	w.version = "2.5"
	w.read(t, w.asset.id).must(t, http.StatusNotFound)
	w.asset = w.create(t, validAsset())
	w.now = w.asset.data()
}

// spoil returns a copy of a value in which one part is odd, missing or unknown.
func (w *walker) spoil(value any) any {
	switch v := value.(type) {
	case map[string]any:
		o := make(map[string]any, len(v))
		for name, inner := range v {
			o[name] = inner
		}
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		if len(names) == 0 || w.random.IntN(4) == 0 {
			o[w.one("colour", "id", "title", "owner", "", "$set", "a.b")] = w.odd()
			return o
		}
		name := names[w.random.IntN(len(names))]
		if w.random.IntN(3) == 0 {
			delete(o, name)
		} else {
			o[name] = w.spoil(v[name])
		}
		return o
	case []any:
		if len(v) > 0 && w.random.IntN(2) == 0 {
			l := slices.Clone(v)
			i := w.random.IntN(len(l))
			l[i] = w.spoil(l[i])
			return l
		}
	}
	return w.odd()
}

// odd returns a value that is invalid in most fields.
func (w *walker) odd() any {
	return []any{
		nil, true, "", "x", strings.Repeat("щ", 3000), -1, json.Number("1e999"), json.Number("0.00005"), []any{},
		[]any{[]any{}}, []any{nil},
		map[string]any{}, map[string]any{"id": nil}, "2026-02-30", "9999-12-31T23:59:59-12:00", "\u0000", "𐍈",
		"' OR 1=1", "$where", "../..",
	}[w.random.IntN(20)]
}
