package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/translog"
	"asset-registry/shared/translog/prooftest"
)

// proof asks for the proof of a revision until a checkpoint covers it. It checks the path and the asset in the
// proof. It does not know the log's key, so it does not check the signature. It returns the leaf, and the asset as
// text.
func (a api) proof(t *testing.T, id, query string) (leaf translog.Leaf, asset string) {
	t.Helper()
	get := call{method: "GET", path: "/assets/" + id + "/proof" + query}
	got := a.do(t, get)
	deadline := time.Now().Add(checkpointWithin)
	for ; got.status == 503 && time.Now().Before(deadline); got = a.do(t, get) {
		equal(t, "Retry-After", got.header.Get("Retry-After"), "1")
		time.Sleep(200 * time.Millisecond)
	}
	got.must(t, 200)
	equal(t, "Cache-Control", got.header.Get("Cache-Control"), "no-cache")
	equal(t, "ETag", got.header.Get("ETag"), "")
	p, evidence, err := prooftest.Decode([]byte(got.text))
	if err != nil {
		t.Fatalf("%v in %s", err, got.text)
	}
	checkpoint, err := translog.Unverified(p.Checkpoint)
	if err != nil {
		t.Fatalf("checkpoint: %v in %s", err, got.text)
	}
	if err := translog.CheckInclusion(checkpoint, p.Index, tlog.RecordHash(evidence.Leaf), p.Path); err != nil {
		t.Errorf("%s: %v in %s", query, err, got.text)
	}
	if leaf, err = translog.ParseLeaf(evidence.Leaf); err != nil {
		t.Fatalf("%s: %v in %s", query, err, got.text)
	}
	equal(t, "the asset is there with its salt", evidence.Asset != nil, evidence.Salt != nil)
	if evidence.Salt != nil {
		if err := leaf.Match(evidence.Asset, *evidence.Salt); err != nil {
			t.Errorf("%s: %v in %s", query, err, got.text)
		}
	}
	return leaf, string(evidence.Asset)
}

// testProofs takes an asset through its life, and verifies the proof of each public
// revision (docs/contract.md, "Proofs").
// Promises: proof-members
func testProofs(t *testing.T, a api) {
	c := a.publish(t, validAsset())
	current := api{a.base, "2.5"} // a proof has the asset in the form of version 2.5
	published := current.read(t, c.id).must(t, 200)
	exact := []any{fields{"quantity": json.Number("240.50")}}
	a.patch(t, c, fields{"description": "ще раз", "items": exact}).must(t, 200)
	changed := current.read(t, c.id).must(t, 200)
	admin := call{method: "PATCH", path: "/assets/" + c.id, key: "administrator", body: data(fields{"mode": "test"})}
	a.do(t, admin).must(t, 200)
	a.patch(t, c, fields{"description": "у режимі тестування"}).must(t, 200)
	for _, p := range []struct {
		query    string
		kind     translog.Kind
		revision int64
		shown    string
	}{
		{"", translog.Withdraw, 4, ""},
		{"?revision=4", translog.Withdraw, 4, ""},
		{"?revision=3", translog.Change, 3, changed.text},
		{"?revision=2", translog.Publish, 2, published.text},
	} {
		leaf, asset := a.proof(t, c.id, p.query)
		equal(t, "asset of the leaf", leaf.Asset, c.id)
		equal(t, "kind of the leaf", leaf.Kind, p.kind)
		equal(t, "revision of the leaf", leaf.Revision, p.revision)
		if p.shown != "" {
			equal(t, "the asset as it was", canonical(t, `{"data":`+asset+`}`), canonical(t, p.shown))
		}
	}
	for _, refused := range []struct {
		query  string
		status int
	}{{"?revision=1", 404}, {"?revision=5", 404}, {"?revision=6", 404}, {"?revision=0", 400}} {
		got := a.do(t, call{method: "GET", path: "/assets/" + c.id + "/proof" + refused.query}).must(t, refused.status)
		equal(t, "place of the refusal", at(got.json, "errors.0.location"), any("url"))
		equal(t, "name of the refusal", at(got.json, "errors.0.name"), any("revision"))
	}
	draft := a.create(t, validAsset())
	a.do(t, call{method: "GET", path: "/assets/" + draft.id + "/proof"}).must(t, 404)
}

// canonical returns the canonical form of a JSON object.
func canonical(t *testing.T, text string) string {
	t.Helper()
	form, err := translog.Canonical([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(form)
}
