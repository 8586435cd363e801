package e2e

import (
	"strings"
	"testing"
)

// testIgnoredInput sends fields that only the registry sets, and values that never appear in an answer. The
// registry must ignore them (docs/contract.md, "Field rules", "Asset" and "Create").
// Promises: ids-ours, no-null, type-fixed, tokens-hidden, test-titles, decisionof, created-draft
func testIgnoredInput(t *testing.T, a api) {
	id := strings.Repeat("e", 32)
	for _, status := range []string{"draft", "pending", "verification", "active", "complete", "deleted"} {
		got := a.create(t, validAsset().set("status", status)).data()["status"]
		equal(t, "status after a creation as "+status, got, any("draft"))
	}
	c := a.create(t, validAsset().set("id", id).set("assetID", "x").set("owner", "x").set("owner_token", "sesame").
		set("transfer_token", "sesame").set("revisions", []any{"sesame"}).set("title_en", nil).set("assetHolder", nil).
		set("items.0.additionalClassifications", []any{}).set("decisions.0.decisionOf", "lot").
		set("relatedProcesses", []any{validProcess().set("id", id)}).set("mode", "test"))
	if got := text(at(c.data(), "relatedProcesses.0.id")); got == id || !idForm.MatchString(got) {
		t.Errorf("got the id %q of a related process, want one of the registry", got)
	}
	if c.id == id || c.data()["owner"] != "broker" || !readableForm.MatchString(text(c.data()["assetID"])) {
		t.Errorf("got %s, want the id, owner and assetID of the registry", c.text)
	}
	equal(t, "decisionOf", at(c.data(), "decisions.0.decisionOf"), any("asset"))
	c.answer = a.patch(t, c, fields{"assetType": "other", "title": "без позначки", "title_en": "plain",
		"title_ru": "простой", "owner_token": "sesame", "description_en": nil,
		"items": []any{fields{"additionalClassifications": []any{}}}}).must(t, 200)
	equal(t, "assetType after a change", c.data()["assetType"], validAsset()["assetType"])
	for name, start := range map[string]string{"title": "[ТЕСТУВАННЯ] ", "title_en": "[TESTING] ",
		"title_ru": "[ТЕСТИРОВАНИЕ] "} {
		if got := text(c.data()[name]); !strings.HasPrefix(got, start) || strings.Count(got, start) != 1 {
			t.Errorf("%s after a change in test mode: got %q, want it to begin with %q once", name, got, start)
		}
	}
	for _, got := range []answer{c.answer, a.read(t, c.id),
		a.do(t, call{method: "GET", path: "/assets/" + c.id + "/revisions", key: "administrator"})} {
		if got.must(t, 200); strings.Contains(got.text, "sesame") {
			t.Errorf("got %s, want no token that was sent in it", got.text)
		}
	}
	if got := a.read(t, c.id).text; strings.Contains(got, ":null") || strings.Contains(got, ":[]") {
		t.Errorf("got %s, want no null and no empty list", got)
	}
}

// testTransferInEachState takes an asset of each state, and hands it over to another broker. The asset must keep its
// state.
// Promises: ownership-states
func testTransferInEachState(t *testing.T, a api) {
	a.inEachState(t, func(c created, state string) {
		token := text(at(c.json["access"], "transfer"))
		got := a.takeOver(t, "broker3", c.id, a.makeTransfer(t, "broker3").id, token).must(t, 200)
		if got.data()["status"] != state || got.data()["owner"] != "broker3" {
			t.Errorf("got %s, want the state %s and the owner broker3", got.text, state)
		}
	})
}

// inEachState calls the function `do` with a new asset in each state. The argument c holds the answer to the
// creation, not the present state of the asset.
func (a api) inEachState(t *testing.T, do func(c created, state string)) {
	t.Helper()
	steps := []func(c created){
		func(created) {},
		func(c created) { a.move(t, "broker", c, "pending").must(t, 200) },
		func(c created) { a.move(t, "concierge", c, "verification").must(t, 200) },
		func(c created) {
			a.add(t, "concierge", c, "related_processes", validProcess())
			a.move(t, "concierge", c, "active").must(t, 200)
		},
		func(c created) { a.move(t, "concierge", c, "complete").must(t, 200) },
	}
	for n, state := range []string{"draft", "pending", "verification", "active", "complete"} {
		c := a.create(t, validAsset())
		for _, step := range steps[:n+1] {
			step(c)
		}
		do(c, state)
	}
	c := a.create(t, validAsset())
	a.move(t, "broker", c, "pending").must(t, 200)
	a.add(t, "broker", c, "documents", validDocument().set("documentType", "cancellationDetails"))
	a.move(t, "broker", c, "deleted").must(t, 200)
	do(c, "deleted")
}
