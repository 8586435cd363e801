package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// makeHook creates a webhook and returns its path below the path of all webhooks.
func (a api) makeHook(t *testing.T, key string, f fields) (path string) {
	t.Helper()
	path = "/" + text(a.hook(t, "POST", key, "", f).must(t, 201).data()["id"])
	t.Cleanup(func() { // remove the webhook: a broker may have only a few
		a.do(t, call{method: "DELETE", path: "/webhooks" + path, key: "administrator"})
	})
	return path
}

func (a api) hook(t *testing.T, method, key, path string, f fields) answer {
	t.Helper()
	c := call{method: method, path: "/webhooks" + path, key: key}
	if f != nil {
		c.body = data(f)
	}
	return a.do(t, c)
}

// unreachable is an address of a name that never resolves (RFC 2606).
const unreachable = "https://broker.example/hook"

// testWebhooks sends each request for a webhook without a key, with the key of another broker, and with the right key.
// No server answers at the address of the webhook.
// Promises: keys-needed
func testWebhooks(t *testing.T, a api) {
	path := a.makeHook(t, "broker3", fields{"url": unreachable})
	for _, c := range []struct {
		method, path string
		sent         fields
		shows        string
	}{
		{"GET", "", nil, path[1:]},
		{"GET", path, nil, path[1:]},
		{"PATCH", path, fields{"url": unreachable + "2"}, unreachable + "2"},
		{"POST", path + "/replay", fields{"offset": "2020-01-01"}, "2020-01-01T00:00:00.000000+00:00"},
		{"POST", path + "/rotate", fields{}, "whsec_"},
		{"DELETE", path, nil, "null"},
	} {
		a.hook(t, c.method, "", c.path, c.sent).fails(t, 401, "header/Authorization")
		if c.path != "" {
			a.hook(t, c.method, "broker", c.path, c.sent).fails(t, 404, "url/webhook")
		}
		if got := a.hook(t, c.method, "broker3", c.path, c.sent).must(t, 200); !strings.Contains(got.text, c.shows) {
			t.Errorf("%s %s: got %s, want %q in it", c.method, c.path, got.text, c.shows)
		}
	}
	a.hook(t, "GET", "broker3", path, nil).fails(t, 404, "url/webhook")
}

// testRepeatedWebhook creates a webhook again under the same Idempotency-Key. The answer must have the first
// webhook and its secret.
func testRepeatedWebhook(t *testing.T, a api) {
	c := call{method: "POST", path: "/webhooks", key: "broker3", body: data(fields{"url": unreachable})}.
		with("Idempotency-Key", rand.Text())
	first := a.do(t, c).must(t, 201)
	equal(t, "answer to a repeat", a.do(t, c).must(t, 201).text, first.text)
	a.hook(t, "DELETE", "broker3", "/"+text(first.data()["id"]), nil).must(t, 200)
}

// receiver receives messages of a webhook. It does not check their signatures, which deploy/test/apart/webhooks does.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	hook   string            // path of the webhook below the path of all webhooks
	seen   map[string]string // id of an asset -> newest dateModified
	times  map[string]int    // id of an asset -> number of entries
	sums   map[string]string // id of an asset -> SHA-256 of its last document, in the newest entry
	signed int               // number of signatures of the newest message
	faults []string
	offset string // offset of the newest message
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{seen: map[string]string{}, times: map[string]int{}, sums: map[string]string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.Close()
		for _, f := range r.faults {
			t.Error(f)
		}
	})
	return r
}

// ServeHTTP checks a message and keeps its entries.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signed = len(strings.Split(q.Header.Get("webhook-signature"), " "))
	var m struct {
		Type string
		Data struct {
			Challenge, Offset string
			Entries           []struct {
				ID, DateModified, Title string
				Documents               []struct{ SHA256 string }
			}
		}
	}
	if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
		r.faults = append(r.faults, err.Error())
	}
	if m.Type == "webhook.challenge" {
		json.NewEncoder(w).Encode(map[string]string{"challenge": m.Data.Challenge})
		return
	}
	for _, e := range m.Data.Entries {
		r.seen[e.ID] = max(r.seen[e.ID], e.DateModified)
		r.times[e.ID]++
		if n := len(e.Documents); n > 0 {
			r.sums[e.ID] = e.Documents[n-1].SHA256
		}
		if e.Title == "" {
			r.faults = append(r.faults, fmt.Sprintf("got the entry %+v, want a whole asset", e))
		}
	}
	r.offset = m.Data.Offset
}

// The method `with` runs the given function while the lock is held, so that no message is handled meanwhile.
func (r *receiver) with(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// The method `until` calls holds() again and again until it returns true, and fails the test after 30 s. No message is
// handled during a call.
func (r *receiver) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		done := false
		r.with(func() { done = holds() })
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for 30 s, want that %s", what)
		}
	}
}

// testDelivery uses a webhook: its challenge, messages, a replay, a pause and a rotation. The registry must be allowed
// to send to this machine.
func testDelivery(t *testing.T, a api) {
	r := a.receive(t, fields{})
	path := r.hook
	shown := func() map[string]any { return a.hook(t, "GET", "broker", path, nil).must(t, 200).data() }
	c := a.publish(t, validAsset())
	c2 := a.publish(t, validAsset())
	changed := text(a.patch(t, c, fields{"description": "нове"}).must(t, 200).data()["dateModified"])
	r.until(t, "the changes come", func() bool { return r.seen[c.id] == changed && r.seen[c2.id] != "" })
	r.until(t, "they are acknowledged", func() bool {
		w := shown()
		return w["offset"] == changed && w["behind"] == json.Number("0") && w["succeeded"] != nil
	})

	first := 0
	r.with(func() { first = r.times[c2.id] })
	a.hook(t, "POST", "broker", path+"/replay", fields{"offset": before(t, c2)}).must(t, 200)
	r.until(t, "a replay sends them again", func() bool { return r.times[c2.id] > first && r.offset == changed })

	a.hook(t, "PATCH", "broker", path, fields{"state": "disabled"}).must(t, 200)
	later := text(a.patch(t, c, fields{"description": "пізніше"}).must(t, 200).data()["dateModified"])
	a.hook(t, "POST", "broker", path+"/rotate", fields{}).must(t, 200)
	a.hook(t, "POST", "broker", path+"/replay", fields{}).must(t, 200)
	r.until(t, "it goes on where it ended, with both secrets", func() bool {
		return r.seen[c.id] == later && r.signed == 4
	})
}

// testFilteredDelivery publishes and changes assets. A webhook with filters must get only assets that meet the filters:
// when they are published, when they change, and in a replay. A second webhook gets all assets. It shows when no more
// messages will come.
// Promises: hook-filters
func testFilteredDelivery(t *testing.T, a api) {
	filters := fields{"region": []string{"ОДЕСЬКА область", "Волинська"}, "classification": []string{"06110000"},
		"owner": []string{"broker"}}
	some, all := a.receive(t, fields{"filters": filters}), a.receive(t, fields{})
	odesa := validAsset().set("items.0.address.region", "Одеська область")
	there, elsewhere := a.publish(t, odesa), a.publish(t, validAsset())
	other := a.publish(t, odesa.set("items.0.classification.id", "04121000-2"))
	moved := a.publish(t, validAsset())
	items := func(region string) fields {
		return fields{"items": validAsset().set("items.0.address.region", region)["items"]}
	}
	in := text(a.patch(t, moved, items("Волинська область")).must(t, 200).data()["dateModified"])
	some.until(t, "an asset comes when it first meets the filters", func() bool { return some.seen[moved.id] == in })
	out := text(a.patch(t, moved, items("Харківська область")).must(t, 200).data()["dateModified"])
	check := func(when string) {
		t.Helper()
		all.until(t, when+" all changes come", func() bool { return all.seen[moved.id] == out })
		newest := text(a.patch(t, there, fields{"description": when}).must(t, 200).data()["dateModified"])
		some.until(t, when+" the asset of the filters comes", func() bool { return some.seen[there.id] == newest })
		some.with(func() {
			if some.times[elsewhere.id]+some.times[other.id] > 0 || some.seen[moved.id] == out {
				t.Errorf("%s: got %v, want only assets that meet the filters by then", when, some.seen)
			}
		})
	}
	check("as they are made")
	some.with(func() { some.seen, some.times = map[string]string{}, map[string]int{} })
	a.hook(t, "POST", "broker", some.hook+"/replay", fields{"offset": "2020-01-01"}).must(t, 200)
	some.until(t, "a replay sends what meets the filters", func() bool { return some.times[there.id] > 0 })
	check("from the past")
	if some.until(t, "it is at the end", func() bool {
		w := a.hook(t, "GET", "broker", some.hook, nil).must(t, 200).data()
		return w["behind"] == json.Number("0")
	}); some.times[moved.id] > 0 {
		t.Errorf("got the asset that has left the filters %d times, want none", some.times[moved.id])
	}
}

// receive creates a webhook that sends whole assets, and waits until it is active.
func (a api) receive(t *testing.T, f fields) *receiver {
	t.Helper()
	r := newReceiver(t)
	sent := fields{"url": r.URL, "opt_fields": "*"}
	maps.Copy(sent, f)
	r.hook = a.makeHook(t, "broker", sent)
	r.until(t, "the challenge is answered", func() bool {
		return a.hook(t, "GET", "broker", r.hook, nil).must(t, 200).data()["state"] == "active"
	})
	return r
}

// The function `before` returns an offset just before the position at which an asset was published.
func before(t *testing.T, c created) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text(c.data()["dateModified"]))
	if err != nil {
		t.Fatal(err)
	}
	return at.Add(-time.Microsecond).Format(time.RFC3339Nano)
}

// testLateDelivery uploads a file after its document was added. The sums of the file are a change of the asset, so
// a webhook must send this change. The registry must be allowed to send to this machine.
func testLateDelivery(t *testing.T, a api) {
	r := a.receive(t, fields{})
	f := &keptFile{api: a, content: rand.Text(), asset: a.publish(t, validAsset())}
	f.register(t)
	f.name(t)
	before := text(a.read(t, f.asset.id).must(t, 200).data()["dateModified"])
	r.until(t, "the document comes without sums", func() bool { return r.seen[f.asset.id] == before })
	if got := r.sums[f.asset.id]; got != "" {
		t.Errorf("got the SHA-256 %s before the upload, want none", got)
	}
	f.upload(t)
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(f.content)))
	r.until(t, "the document comes again with the sums", func() bool {
		return r.seen[f.asset.id] > before && r.sums[f.asset.id] == want
	})
}
