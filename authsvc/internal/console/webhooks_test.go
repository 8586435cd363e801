package console_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func (r *records) Webhooks(_ context.Context, keyID, broker, after string) ([]assetclient.Webhook, string, error) {
	r.keyID = keyID
	var page []assetclient.Webhook
	for _, w := range r.webhooks {
		if w.ID > after && (broker == "" || w.Broker == broker) {
			page = append(page, w)
		}
	}
	if len(page) > 2 {
		return page[:2], page[1].ID, nil
	}
	return page, "", nil
}

func (r *records) Webhook(_ context.Context, _, id string) (assetclient.Webhook, error) {
	i := slices.IndexFunc(r.webhooks, func(w assetclient.Webhook) bool { return w.ID == id })
	if i < 0 {
		return assetclient.Webhook{}, fault.New(fault.NotFound, fault.URL, "webhook", "There is no such webhook.")
	}
	return r.webhooks[i], nil
}

func (r *records) ChangeWebhook(_ context.Context, keyID, id string, do assetclient.WebhookAction, offset string) error {
	r.keyID = keyID
	if r.refusal != nil {
		return r.refusal
	}
	r.done = append(r.done, strings.TrimSpace(fmt.Sprint(do, " ", id, " ", offset)))
	return nil
}

func newWebhooks() []assetclient.Webhook {
	at := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	return []assetclient.Webhook{
		{ID: "w1", Broker: "acme", URL: "https://acme.example/hook?key=<1>", State: "active", Succeeded: &at},
		{ID: "w2", Broker: "acme", URL: "https://dead.example/", State: "disabled", Reason: "gone", Behind: 5400,
			Failures: 3, LastError: "it answered <410>", Next: &at, Offset: "2026-11-20T12:00:00.000000+00:00"},
		{ID: "w3", Broker: "root", ByAdministrator: true, URL: "https://root.example/", State: "unverified"},
	}
}

func TestWebhooksAreListed(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "auditor")
	b.get("/console/webhooks").must(t, 200, "There are no webhooks yet")
	d.assets.webhooks = newWebhooks()
	first := b.get("/console/webhooks")
	first.must(t, 200, `aria-current="page">Webhooks</a>`, "acme.example", "dead.example", "gone", "1h30m0s",
		"it answered &lt;410&gt;", "/console/webhooks?after=w2")
	if strings.Contains(first.text, "root.example") || strings.Contains(first.text, "key=") {
		t.Errorf("got a third webhook or the query of an address, want neither: %s", first.text)
	}
	b.get("/console/webhooks?after=w2").must(t, 200, "root.example", "administrator", "First page")
	b.get("/console/webhooks?broker=nobody").must(t, 200, "The broker has no webhooks")
	shown := b.get("/console/webhooks/w2")
	shown.must(t, 200, "https://dead.example/", "disabled: gone", "not before", "2026-11-20T12:00:00.000000")
	if strings.Contains(shown.text, "<form class=\"form") || strings.Contains(shown.text, "/resume") {
		t.Errorf("got a form, want none for an auditor: %s", shown.text)
	}
	b.get("/console/webhooks/w9").must(t, 404, "There is no such webhook.")
	if got := b.post("/console/webhooks/w2/resume", url.Values{"once": {"x"}}); got.StatusCode != 403 || len(d.assets.done) > 0 {
		t.Errorf("an auditor resumes: got status %d and %v, want 403 and nothing", got.StatusCode, d.assets.done)
	}
}

// TestOperatorsChangeWebhooks does each action. Each must have an entry in the audit log, without the address of
// the webhook.
func TestOperatorsChangeWebhooks(t *testing.T) {
	d := newDesk(t)
	d.assets.webhooks = newWebhooks()
	b := d.signedIn(t, "operator")
	before, err := d.service.Head(t.Context())
	expect.OK(t, err)
	send := func(page, action string, values url.Values) {
		t.Helper()
		form := b.get(page)
		form.must(t, 200)
		values.Set("once", onceOf(t, form.text))
		b.post(action, values).must(t, 200)
		b.post(action, values).must(t, 200, "was sent before") // as if the browser sent the form again
	}
	send("/console/webhooks/w1", "/console/webhooks/w1/stop", url.Values{})
	send("/console/webhooks/w2", "/console/webhooks/w2/resume", url.Values{})
	send("/console/webhooks/w2", "/console/webhooks/w2/replay", url.Values{"offset": {" 2026-11-20 "}})
	send("/console/webhooks/w2/remove", "/console/webhooks/w2/remove", url.Values{})
	want := []string{"webhook.stop w1", "webhook.resume w2", "webhook.replay w2 2026-11-20", "webhook.remove w2"}
	expect.NoDiff(t, cmp.Diff(want, d.assets.done), "the changes")
	if !strings.HasPrefix(d.assets.keyID, "key-") {
		t.Errorf("got the caller %q, want the id of the operator's key", d.assets.keyID)
	}
	entries, err := d.service.Entries(t.Context(), before.Seq, 10)
	expect.OK(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Action+" "+e.Subject+" "+string(e.After))
	}
	expect.NoDiff(t, cmp.Diff([]string{
		`webhook.stop webhook w1 {"broker":"acme","state":"active"}`,
		`webhook.resume webhook w2 {"broker":"acme","state":"disabled"}`,
		`webhook.replay webhook w2 {"broker":"acme","state":"disabled","offset":"2026-11-20"}`,
		`webhook.remove webhook w2 {"broker":"acme","state":"disabled"}`,
	}, got), "the audit log differs")
	if found, err := d.service.Check(t.Context()); err != nil || len(found.Problems) > 0 {
		t.Errorf("check: got %v and %v, want no problem", found.Problems, err)
	}
	b.get("/console/audit").must(t, 200, "/console/webhooks/w2")
}

// TestAFailedActionIsNotCalledDone sends a form while the asset service is down, and again when it works. The
// first attempt has added an entry to the audit log, but has changed nothing. The page must not claim that the
// action was done.
func TestAFailedActionIsNotCalledDone(t *testing.T) {
	d := newDesk(t)
	d.assets.webhooks = newWebhooks()
	b := d.signedIn(t, "operator")
	form := b.get("/console/webhooks/w1")
	values := url.Values{"once": {onceOf(t, form.text)}}
	d.assets.refusal = fault.New(fault.Unavailable, fault.URL, "registry", "The registry cannot be reached now.")
	b.post("/console/webhooks/w1/stop", values).must(t, 503, "cannot be reached")
	d.assets.refusal = nil
	repeated := b.post("/console/webhooks/w1/stop", values)
	repeated.must(t, 200, "may have failed", "nothing was done again")
	if strings.Contains(repeated.text, "its change was made then") || len(d.assets.done) > 0 {
		t.Errorf("got %v and %s, want neither a change nor the claim of one", d.assets.done, repeated.text)
	}
	fresh := url.Values{"once": {onceOf(t, repeated.text)}}
	b.post("/console/webhooks/w1/stop", fresh).must(t, 200, "Done.")
}

func TestARefusedReplayShowsTheForm(t *testing.T) {
	d := newDesk(t)
	d.assets.webhooks = newWebhooks()
	d.assets.refusal = fault.New(fault.Invalid, fault.Body, "offset", "not an ISO 8601 timestamp")
	b := d.signedIn(t, "operator")
	form := b.get("/console/webhooks/w2")
	values := url.Values{"once": {onceOf(t, form.text)}, "offset": {"yesterday"}}
	again := b.post("/console/webhooks/w2/replay", values)
	again.must(t, 422, "not an ISO 8601 timestamp", `value="yesterday"`)
	d.assets.refusal = nil
	values = url.Values{"once": {onceOf(t, again.text)}, "offset": {"2026-11-20"}}
	b.post("/console/webhooks/w2/replay", values).must(t, 200, "Done.")
}

// onceOf returns the value of the hidden field "once" on a page with forms.
func onceOf(t *testing.T, page string) string {
	t.Helper()
	for _, field := range hidden.FindAllStringSubmatch(page, -1) {
		if field[1] == "once" {
			return field[2]
		}
	}
	t.Fatalf("got no form, want one: %s", page)
	return ""
}
