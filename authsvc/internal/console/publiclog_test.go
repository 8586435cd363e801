package console_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/assetclient"
	"asset-registry/authsvc/internal/console"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// records has what the asset services answer. The zero value has no log and no assets.
type records struct {
	log     *assetclient.Log
	history map[string]assetclient.History // the keys are the id and the offset, joined
	keyID   string                         // id of the key of the last caller; the method Log does not set it

	assets   []adminapi.Asset
	webhooks []assetclient.Webhook
	done     []string // changes of webhooks and recoveries that were made
	refusal  error    // the next changes fail with this error
	service  *admin.Service
}

func (r *records) Log(context.Context) (assetclient.Log, error) {
	if r.log == nil {
		return assetclient.Log{}, fault.New(fault.NotFound, fault.URL, "path", "There is no log.")
	}
	return *r.log, nil
}

// Asset finds an asset by its id or number. Each id of a history is an asset.
func (r *records) Asset(_ context.Context, keyID string, by url.Values) (adminapi.Asset, error) {
	r.keyID = keyID
	for _, a := range r.assets {
		if a.ID == by.Get("id") || a.Number == by.Get("number") {
			return a, nil
		}
	}
	if _, ok := r.history[by.Get("id")]; ok {
		return adminapi.Asset{ID: by.Get("id"), Owner: "acme", Status: "draft"}, nil
	}
	return adminapi.Asset{}, fault.New(fault.NotFound, fault.URL, "asset_id", "There is no such asset.")
}

func (r *records) Titles(_ context.Context, words string, limit int) ([]adminapi.Asset, bool, bool, error) {
	var found []adminapi.Asset
	for _, a := range r.assets {
		if strings.Contains(a.Title, words) && a.Status != "draft" {
			found = append(found, a)
		}
	}
	return found[:min(limit, len(found))], false, true, nil
}

func (r *records) Owned(
	_ context.Context, _, broker, state string, limit int, _ bool,
) (found []adminapi.Asset, more bool, err error) {
	for _, a := range r.assets {
		if a.Owner == broker && (state == "" || state == a.Status) {
			found = append(found, a)
		}
	}
	return found[:min(limit, len(found))], len(found) > limit, nil
}

func (r *records) History(_ context.Context, keyID, id, offset string) (assetclient.History, error) {
	r.keyID = keyID
	h, ok := r.history[id+offset]
	if !ok {
		return h, fault.New(fault.NotFound, fault.URL, "asset_id", "There is no such asset.")
	}
	return h, nil
}

func TestTheLogIsShownToAuditors(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "auditor")
	b.get("/console/log").must(t, 200, "There is no checkpoint yet")
	at := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	d.assets.log = &assetclient.Log{
		Checkpoint: translog.Checkpoint{Origin: "registry.example/log", Size: 12345},
		Newest:     at.Add(-time.Minute),
		Signers: []translog.Signer{
			{Name: "registry.example/log", ID: "952bc5e7"}, {Name: "<w1>", ID: "20324abe", At: at},
		},
	}
	got := b.get("/console/log")
	got.must(t, 200, `aria-current="page">Public log</a>`, "registry.example/log", "12,345", "2026-11-22 09:29 UTC",
		"952bc5e7", "&lt;w1&gt;", "20324abe", "Cosigned", "2026-11-22 09:30 UTC")
	if strings.Contains(got.text, `action="/console/asset"`) {
		t.Errorf("got a form for the history of assets, want none for an auditor: %s", got.text)
	}
	b.get("/console/asset?id="+strings.Repeat("0", 32)).must(t, 403, "Only operators")
}

func TestAnOperatorReadsTheHistoryOfAnAsset(t *testing.T) {
	d := newDesk(t)
	id := strings.Repeat("0a", 16)
	at := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	by := assetclient.Author{Broker: "acme", Key: "acme-1", Role: "broker"}
	long := json.RawMessage(`"` + strings.Repeat("ї", 1000) + `"`)
	d.assets.history = map[string]assetclient.History{
		id: {Older: "a&b", Changes: []assetclient.Change{
			{Revision: 4, Date: at, Author: by, Changes: []assetclient.Operation{
				{Op: "replace", Path: "/title", Value: json.RawMessage(`"<b>"`)}, {Op: "add", Path: "/description", Value: long},
			}},
			{Revision: 3, Date: at, Author: by, ChangesSize: 40000},
		}},
		id + "a&b": {Changes: []assetclient.Change{
			{Revision: 2, Date: at, Author: by, Erased: &assetclient.Erasure{Date: at, Author: assetclient.Author{Key: "root-1"}}},
		}},
	}
	b := d.signedIn(t, "operator")
	b.get("/console/log").must(t, 200, `action="/console/asset"`)
	first := b.get("/console/asset?id=%20" + id)
	first.must(t, 200, id, "acme-1", "/title", "replace", "&lt;b&gt;", "…", "which was not kept",
		"/console/asset?id="+id+"&amp;offset=a%26b")
	if n := strings.Count(first.text, "ї"); n > 200 {
		t.Errorf("got %d letters of a long value, want at most 200", n)
	}
	if !strings.HasPrefix(d.assets.keyID, "key-") {
		t.Errorf("got the reader %q, want the id of the operator's key", d.assets.keyID)
	}
	last := b.get("/console/asset?id=" + id + "&offset=a%26b")
	last.must(t, 200, "Erased", "root-1")
	if strings.Contains(last.text, "rel=\"next\"") {
		t.Errorf("got a link to an older page, want none: %s", last.text)
	}
	b.get("/console/asset?id=../keys").must(t, 400, "32 hexadecimal digits")
	b.get("/console/asset?id="+strings.Repeat("f", 32)).must(t, 404, "There is no such asset.")
}

func TestAConsoleWithoutAssetServicesHasNoLog(t *testing.T) {
	d := newDesk(t)
	o := d.options()
	o.Assets = nil
	c, err := console.New(o)
	expect.OK(t, err)
	server := httptest.NewServer(c.Handler())
	defer server.Close()
	b := d.signedIn(t, "operator")
	b.get("/console/keys").must(t, 200, `href="/console/log"`)
	b.base = server.URL
	got := b.get("/console/keys")
	got.must(t, 200, "Keys")
	expect.ErrorIf(t, strings.Contains(got.text, "/console/log"), "got a link to the log, want none: %s", got.text)
	b.get("/console/log").must(t, 404)
	b.get("/console/asset?id="+strings.Repeat("0", 32)).must(t, 404)
}
