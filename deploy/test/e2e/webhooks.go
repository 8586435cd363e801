package e2e

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hook is the id of a webhook, and the secret and the public key with which its receiver checks signatures.
type hook struct{ id, secret, key string }

// makeHook creates a webhook and checks its form.
func (a api) makeHook(t *testing.T, key string, f fields) hook {
	t.Helper()
	got := a.do(t, call{method: "POST", path: "/webhooks", key: key, body: data(f)}).must(t, 201)
	made := hook{text(got.data()["id"]), text(at(got.json["access"], "secret")), text(got.data()["publicKey"])}
	want := a.base + "/api/" + a.current() + "/webhooks/" + made.id
	if got.header.Get("Location") != want || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got Location %q and Cache-Control %q, want %q and no-store", got.header.Get("Location"),
			got.header.Get("Cache-Control"), want)
	}
	t.Cleanup(func() { // remove the webhook: a broker may have only a few
		a.do(t, call{method: "DELETE", path: "/webhooks/" + made.id, key: "administrator"})
	})
	return made
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

// testWebhooks creates, lists, changes and removes webhooks. No server answers at the address of these webhooks.
// Promises: ids, keys-needed, hook-secret
func testWebhooks(t *testing.T, a api) {
	mine := a.makeHook(t, "broker3", fields{"url": unreachable, "mode": "_all_", "opt_fields": "*"})
	path := "/" + mine.id
	if !idForm.MatchString(mine.id) {
		t.Errorf("got the id %q of a webhook, want 32 hexadecimal characters", mine.id)
	}
	shown := a.hook(t, "GET", "broker3", path, nil).must(t, 200)
	if d := shown.data(); d["state"] != "unverified" || d["url"] != unreachable || d["version"] != a.current() ||
		d["mode"] != "_all_" || d["opt_fields"] != "*" || d["broker"] != "broker3" || shown.json["access"] != nil {
		t.Errorf("got %s, want what was sent, unverified and without a secret", shown.text)
	}
	ids := func(key, query string) (ids []string) {
		for _, w := range list(a.hook(t, "GET", key, query, nil).must(t, 200).json["data"]) {
			ids = append(ids, text(object(w)["id"]))
		}
		return ids
	}
	own, all, others := ids("broker3", ""), ids("administrator", "?broker=broker3"), ids("broker", "")
	if !slices.Contains(own, mine.id) || !slices.Contains(all, mine.id) || slices.Contains(others, mine.id) {
		t.Errorf("got another list, want webhook %s for its broker and the administrator only", mine.id)
	}
	stopped := a.hook(t, "PATCH", "administrator", path, fields{"state": "disabled"}).must(t, 200).data()
	if stopped["state"] != "disabled" || stopped["reason"] != "stopped" {
		t.Errorf("got %v, want it disabled and stopped", stopped)
	}
	a.hook(t, "POST", "broker3", path+"/replay", fields{}).fails(t, 403, "url/permission")
	a.hook(t, "PATCH", "administrator", path, fields{"state": "active"}).must(t, 200)
	early := a.hook(t, "POST", "broker3", path+"/replay", fields{"offset": "2020-01-01"}).must(t, 200).data()
	if early["state"] != "unverified" || early["offset"] != "2020-01-01T00:00:00.000000+00:00" {
		t.Errorf("got %v, want it unverified from 2020 on", early)
	}
	rotated := a.hook(t, "POST", "broker3", path+"/rotate", fields{}).must(t, 200)
	if secret := text(at(rotated.json["access"], "secret")); secret == "" || secret == mine.secret {
		t.Errorf("got %s, want another secret", rotated.text)
	}
	a.refuseWebhooks(t, path)
	if gone := a.hook(t, "DELETE", "broker3", path, nil).must(t, 200); gone.json["data"] != nil {
		t.Errorf("got %s, want data null", gone.text)
	}
	a.hook(t, "GET", "broker3", path, nil).fails(t, 404, "url/webhook")
}

// refuseWebhooks sends requests that the registry must refuse. The parameter `path` is the path of a webhook of
// "broker3".
func (a api) refuseWebhooks(t *testing.T, path string) {
	t.Helper()
	for _, c := range []struct {
		method, key, path string
		body              fields
		status            int
		places            []string
	}{
		{"GET", "", "", nil, 401, []string{"header/Authorization"}},
		{"GET", "", path, nil, 401, []string{"header/Authorization"}},
		{"DELETE", "", path, nil, 401, []string{"header/Authorization"}},
		{"GET", "concierge", "", nil, 403, []string{"url/permission"}},
		{"GET", "concierge", path, nil, 403, []string{"url/permission"}},
		{"GET", "broker", path, nil, 404, []string{"url/webhook"}},
		{"PATCH", "broker", path, fields{"x": 1}, 404, []string{"url/webhook"}},
		{"POST", "broker", path + "/replay", fields{}, 404, []string{"url/webhook"}},
		{"DELETE", "broker", path, nil, 404, []string{"url/webhook"}},
		{"PATCH", "administrator", path, fields{"url": unreachable + "2"}, 403, []string{"url/permission"}},
		{"POST", "administrator", path + "/rotate", fields{}, 403, []string{"url/permission"}},
		{"PATCH", "broker3", path, fields{"url": "ftp://broker.example/"}, 400, []string{"body/url"}},
		{"PATCH", "broker3", path, fields{"state": "gone", "x": 1}, 400, []string{"body/state", "body/x"}},
		{"POST", "broker3", path + "/replay", fields{"offset": "x"}, 400, []string{"body/offset"}},
		{"POST", "broker3", "", fields{"mode": "x"}, 400, []string{"body/mode", "body/url"}},
		{"POST", "broker3", "", fields{"url": "https://u:p@broker.example/"}, 400, []string{"body/url"}},
		{"POST", "broker3", "", fields{"url": "https://169.254.169.254/"}, 400, []string{"body/url"}},
		{"POST", "broker3", "",
			fields{"url": unreachable, "filters": fields{"regoin": []string{"Одеська"}, "status": []string{"sold"}}},
			400, []string{"body/filters.regoin", "body/filters.status"}},
		{"POST", "broker3t", "", fields{"url": unreachable}, 403, []string{"body/mode"}},
		{"POST", "concierge", "", fields{"url": unreachable}, 403, []string{"url/permission"}},
		{"GET", "broker3", "?limit=x", nil, 400, []string{"querystring/limit"}},
		{"PUT", "broker3", path, fields{}, 404, []string{"url/method_not_allowed"}},
	} {
		a.hook(t, c.method, c.key, c.path, c.body).fails(t, c.status, c.places...)
	}
}

// testRepeatedWebhook creates a webhook again under the same Idempotency-Key. The answer must have the first
// webhook and its secret.
func testRepeatedWebhook(t *testing.T, a api) {
	c := call{method: "POST", path: "/webhooks", key: "broker3", body: data(fields{"url": unreachable})}.
		with("Idempotency-Key", rand.Text())
	first := a.do(t, c).must(t, 201)
	again := a.do(t, c).must(t, 201)
	secretOf := func(a answer) string { return text(at(a.json["access"], "secret")) }
	if again.data()["id"] != first.data()["id"] || secretOf(again) != secretOf(first) {
		t.Errorf("got %s, want the webhook and the secret of %s", again.text, first.text)
	}
	c.body = data(fields{"url": unreachable + "2"})
	a.do(t, c).fails(t, 400, "header/Idempotency-Key")
	a.hook(t, "DELETE", "broker3", "/"+text(first.data()["id"]), nil).must(t, 200)
}

// receiver receives messages of a webhook. It refuses messages that are not signed.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	hook    hook
	former  hook              // the webhook's keys before the rotation
	answers int               // HTTP status with which the receiver answers
	seen    map[string]string // id of an asset -> newest dateModified
	times   map[string]int    // id of an asset -> number of entries
	sums    map[string]string // id of an asset -> SHA-256 of its last document, in the newest entry
	signed  int               // number of signatures of the newest message
	faults  []string
	offset  string // offset of the newest message
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{answers: http.StatusOK, seen: map[string]string{}, times: map[string]int{}, sums: map[string]string{}}
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
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || !r.isSigned(r.hook, q.Header, body) && !r.isSigned(r.former, q.Header, body) {
		r.faults = append(r.faults, fmt.Sprintf("got the message %s with %v, %v; want it signed", body, q.Header, err))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
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
	if err := json.Unmarshal(body, &m); err != nil {
		r.faults = append(r.faults, err.Error())
	}
	if r.answers != http.StatusOK {
		w.WriteHeader(r.answers)
		return
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

// isSigned reports whether a message is signed with both keys of a webhook. After a rotation, a message also has
// signatures with the former keys.
func (r *receiver) isSigned(by hook, h http.Header, body []byte) bool {
	secret, err1 := base64.StdEncoding.DecodeString(strings.TrimPrefix(by.secret, "whsec_"))
	key, err2 := base64.StdEncoding.DecodeString(strings.TrimPrefix(by.key, "whpk_"))
	if err1 != nil || err2 != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	text := fmt.Appendf(nil, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	symmetric, asymmetric := false, false
	all := strings.Split(h.Get("webhook-signature"), " ")
	r.signed = len(all)
	for _, s := range all {
		version, value, _ := strings.Cut(s, ",")
		signature, err := base64.StdEncoding.DecodeString(value)
		symmetric = symmetric || err == nil && version == "v1" && bytes.Equal(signature, mac.Sum(nil))
		asymmetric = asymmetric || err == nil && version == "v1a" && ed25519.Verify(key, text, signature)
	}
	return symmetric && asymmetric
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

// testDelivery uses a webhook from its challenge to its removal. The registry must be allowed to send to this
// machine.
// Promises: hook-signed
func testDelivery(t *testing.T, a api) {
	r := newReceiver(t)
	r.hook = a.makeHook(t, "broker", fields{"url": r.URL + "/in?key=7", "opt_fields": "*", "state": "disabled"})
	path := "/" + r.hook.id
	shown := func() map[string]any { return a.hook(t, "GET", "broker", path, nil).must(t, 200).data() }
	is := func(state string) func() bool { return func() bool { return shown()["state"] == state } }
	a.hook(t, "PATCH", "broker", path, fields{"state": "active"}).must(t, 200)
	r.until(t, "the challenge is answered", is("active"))

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
	if w := shown(); w["state"] != "disabled" || w["reason"] != "paused" || w["offset"] == later {
		t.Errorf("got %v, want it paused before the newest change", w)
	}
	rotated := a.hook(t, "POST", "broker", path+"/rotate", fields{}).must(t, 200)
	r.with(func() {
		r.former = r.hook // for a moment, the sender may still use the old keys
		r.hook.secret, r.hook.key = text(at(rotated.json["access"], "secret")), text(rotated.data()["publicKey"])
	})
	a.hook(t, "POST", "broker", path+"/replay", fields{}).must(t, 200)
	r.until(t, "it goes on where it ended, with both secrets", func() bool {
		return r.seen[c.id] == later && r.signed == 4
	})

	r.with(func() { r.answers = http.StatusGone })
	a.patch(t, c, fields{"description": "ніколи"}).must(t, 200)
	r.until(t, "410 disables it", is("disabled"))
	if w := shown(); w["reason"] != "gone" || text(w["lastError"]) == "" {
		t.Errorf("got %v, want the reason gone and an error", w)
	}
	a.hook(t, "DELETE", "broker", path, nil).must(t, 200)
}

// testFilteredDelivery publishes and changes assets. A webhook with filters must get only assets that meet the filters:
// when they are published, when they change, and in a replay. A second webhook gets all assets. It shows when no more
// messages will come.
// Promises: hook-filters
func testFilteredDelivery(t *testing.T, a api) {
	filters := fields{"region": []string{"ОДЕСЬКА область", "Волинська"}, "classification": []string{"06110000"},
		"owner": []string{"broker"}}
	some, all := a.receive(t, fields{"filters": filters}), a.receive(t, fields{})
	shown := a.hook(t, "GET", "broker", "/"+some.hook.id, nil).must(t, 200).data()["filters"]
	want := map[string]any{"region": []any{"Волинська", "ОДЕСЬКА область"}, "classification": []any{"06110000"},
		"owner": []any{"broker"}}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the filters differ (-want +got):\n%s", diff)
	}
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
	a.hook(t, "POST", "broker", "/"+some.hook.id+"/replay", fields{"offset": "2020-01-01"}).must(t, 200)
	some.until(t, "a replay sends what meets the filters", func() bool { return some.times[there.id] > 0 })
	check("from the past")
	if some.until(t, "it is at the end", func() bool {
		w := a.hook(t, "GET", "broker", "/"+some.hook.id, nil).must(t, 200).data()
		return w["behind"] == json.Number("0")
	}); some.times[moved.id] > 0 {
		t.Errorf("got the asset that has left the filters %d times, want none", some.times[moved.id])
	}
	shownNow := a.hook(t, "GET", "broker", "/"+some.hook.id, nil).must(t, 200).data()
	for _, c := range []struct {
		sent fields
		want string
	}{
		{shownNow, ""},
		{fields{"filters": fields{"region": []string{"Київ"}}, "mode": "test", "opt_fields": "*"}, "mode, filters"},
		{fields{"filters": nil, "version": "1"}, "version"},
	} {
		got := a.hook(t, "PATCH", "broker", "/"+some.hook.id, c.sent).must(t, 200).header.Get("Registry-Ignored")
		if got != c.want {
			t.Errorf("PATCH of %v: got the ignored fields %q, want %q", c.sent, got, c.want)
		}
	}
}

// receive creates a webhook that sends whole assets, and waits until it is active.
func (a api) receive(t *testing.T, f fields) *receiver {
	t.Helper()
	r := newReceiver(t)
	sent := fields{"url": r.URL, "opt_fields": "*", "state": "disabled"}
	maps.Copy(sent, f)
	r.hook = a.makeHook(t, "broker", sent)
	path := "/" + r.hook.id
	a.hook(t, "PATCH", "broker", path, fields{"state": "active"}).must(t, 200)
	r.until(t, "the challenge is answered", func() bool {
		return a.hook(t, "GET", "broker", path, nil).must(t, 200).data()["state"] == "active"
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
