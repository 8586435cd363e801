package console_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// Recover does what the asset services do: they call an auth service, which writes the entry of the audit log.
func (r *records) Recover(
	ctx context.Context, by assetclient.Recoverer, id, reason string,
) (assetclient.Recovered, error) {
	if r.refusal != nil {
		return assetclient.Recovered{}, r.refusal
	}
	r.done = append(r.done, id+" "+reason)
	who := admin.Actor{Name: by.KeyID + " console", From: by.From, RequestID: by.RequestID}
	err := r.service.NoteRecovery(ctx, who, id, admin.Recovery{Broker: "acme", Reason: reason})
	return assetclient.Recovered{Owner: "acme", Token: "tok<1>", Transfer: "tra1"}, err
}

// TestAnOperatorRecoversAnAsset sends the form twice. The tokens must be shown once, and the audit log must have
// one entry, with the reason and without a token.
func TestAnOperatorRecoversAnAsset(t *testing.T) {
	d := newDesk(t)
	d.assets.service = d.service.Service
	id := strings.Repeat("0a", 16)
	path := "/console/recover-asset?id=" + id
	d.signedIn(t, "auditor").get(path).must(t, 403)
	b := d.signedIn(t, "operator")
	before, err := d.service.Head(t.Context())
	expect.OK(t, err)
	d.assets.history = map[string]assetclient.History{id: {}}
	b.get("/console/asset?id="+id).must(t, 200, `href="`+path+`"`)
	form := b.get(path)
	form.must(t, 200, id, "Reason")
	values := url.Values{"once": {onceOf(t, form.text)}, "reason": {" "}}
	b.post(path, values).must(t, 422, "Say why")
	d.assets.refusal = fault.New(fault.Invalid, fault.Body, "reason", "String value is too long")
	values.Set("reason", " the <token> was lost ")
	b.post(path, values).must(t, 422, "String value is too long", "the &lt;token&gt; was lost")
	d.assets.refusal = nil
	b.post(path, values).must(t, 200, id, "acme", "tok&lt;1&gt;", "tra1")
	again := b.post(path, values)
	again.must(t, 200, "was sent before", "<h2>History</h2>")
	if strings.Contains(again.text, "tok&lt;1&gt;") {
		t.Errorf("got the tokens again, want them once: %s", again.text)
	}
	entries, err := d.service.Entries(t.Context(), before.Seq, 10)
	entries = slices.DeleteFunc(entries, func(e adminapi.Entry) bool { return e.Action == "asset.read" })
	expect.FatalIf(t, err != nil || len(entries) != 1, "got the entries %+v, %v; want one", entries, err)
	e := entries[0]
	if e.Action != "asset.recover" || e.Subject != "asset "+id || !strings.HasPrefix(e.Who, "key-") ||
		string(e.After) != `{"broker":"acme","reason":"the \u003ctoken\u003e was lost"}` {
		t.Errorf("got the entry %+v with %s, want the recovery with its reason", e, e.After)
	}
	b.get("/console/audit?action=asset.recover").must(t, 200, "/console/asset?id="+id, "the &lt;token&gt; was lost")
	if found, err := d.service.Check(t.Context()); err != nil || len(found.Problems) > 0 {
		t.Errorf("check: got %v and %v, want no problem", found.Problems, err)
	}
	b.get("/console/recover-asset?id=x").must(t, 400, "32 hexadecimal digits")
}
