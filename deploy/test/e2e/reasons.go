package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// says checks that the description of an error contains a text.
func (got answer) says(t *testing.T, text string) answer {
	t.Helper()
	for _, e := range list(got.json["errors"]) {
		if description, _ := object(e)["description"].(string); strings.Contains(description, text) {
			return got
		}
	}
	t.Errorf("%s %s: got %s, want it to say %q", got.call.method, got.call.path, got.text, text)
	return got
}

// testReasons makes common mistakes, and checks that the answers say how to correct them (docs/contract.md,
// "Errors").
// Promises: rogue
func testReasons(t *testing.T, a api) {
	c, path := a.create(t, validAsset()), "/assets/"
	const status, ways = "Can't update asset in current (draft) status: ",
		"the owner token is missing; send it as header X-Access-Token, query acc_token or body access.token"
	as := func(key, token, method, path string) answer {
		return a.do(t, call{method: method, path: path, key: key, token: token, body: data(fields{})})
	}
	path += c.id
	as("broker", "", "PATCH", path).fails(t, 403, "body/data").says(t, status+ways)
	as("broker", "", "PUT", path).fails(t, 403, "body/data").says(t, status+ways)
	as("broker", "", "POST", c.of("items")).fails(t, 403, "url/permission").says(t, "Forbidden: "+ways)
	as("broker", strings.Repeat("0", 32), "PATCH", path).fails(t, 403, "body/data").
		says(t, status+"the owner token is wrong")
	a.do(t, call{method: "GET", path: path + "/revisions", key: "broker"}).fails(t, 403, "url/permission").
		says(t, "Forbidden: the owner token is missing; send it as header X-Access-Token or query acc_token")
	// The answer must not reveal to another broker whether the token is right.
	for _, token := range []string{"", "wrong", c.token} {
		got := as("broker3", token, "PATCH", path).fails(t, 403, "body/data").
			says(t, status+"the API key belongs to another broker than the asset")
		if token != "" && strings.Contains(got.text, token) {
			t.Errorf("got the token in the answer, want it left out: %s", got.text)
		}
	}
	for _, r := range []struct {
		name, key string
		sent      fields
		place     string
		says      string
	}{
		{"a level that is too low", "broker1", validAsset(), "body/accreditation",
			"does not permit asset creation: level 3 is needed, and the levels of this API key are: 1"},
		{"a test-only key", "broker3t", validAsset(), "body/mode",
			"does not permit asset creation: the API key is test-only (level t)"},
		{"a missing type", "broker", validAsset().without("assetType"), "body/assetType", "This field is required."},
		{"a wrong type", "broker", validAsset().set("assetType", "castle"), "body/assetType",
			"Not implemented: the types are 'bounce'"},
		{"a wrong scheme", "broker", validAsset().set("assetCustodian.identifier.scheme", "UA-EDRPOU"),
			"body/assetCustodian.identifier.scheme", "the nearest is 'UA-EDR'"},
		{"a wrong code", "broker", validAsset().set("items.0.classification.id", "06111000-9"),
			"body/items.0.classification.id", "the nearest is '06111000-3'"},
		{"a misspelt field", "broker", validAsset().set("items.0.quantitty", 1), "body/items.0.quantitty",
			"Rogue field: the nearest is 'quantity'"},
		{"a very long field", "broker", validAsset().set(strings.Repeat("x", 500_000), 1),
			"body/" + strings.Repeat("x", 64) + "…", "Rogue field"},
	} {
		t.Run(r.name, func(t *testing.T) {
			got := a.do(t, call{method: "POST", path: "/assets", key: r.key, body: data(r.sent)})
			got.fails(t, got.status, r.place).says(t, r.says)
			if got.status != 400 && got.status != 403 {
				t.Errorf("got %d, want 400 or 403", got.status)
			}
		})
	}
}

// testAsSent checks that identifiers and coordinates come back in the form in which they were sent, as text or as a
// number. Values of other kinds must be refused (docs/contract.md, "Numbers").
func testAsSent(t *testing.T, a api) {
	const id, place = "assetCustodian.identifier.id", "items.0.location"
	in := validAsset().set(place, map[string]any{"latitude": "50.4501", "longitude": json.Number("30.5234000"),
		"elevation": "170 m"})
	for _, try := range []struct {
		path   string
		values []string
	}{
		{id, []string{`"00037256"`, `37256`, `999999999999999`}},
		{place + ".latitude", []string{`"50.4501"`, `50.4501000`, `5.04501e1`}},
		{place + ".elevation", []string{`"170 m"`, `170`}},
	} {
		for _, value := range try.values {
			c := a.create(t, in.set(try.path, json.RawMessage(value)))
			if got, err := json.Marshal(at(a.read(t, c.id).data(), try.path)); err != nil || string(got) != value {
				t.Errorf("%s: got %s, %v, want %s", try.path, got, err, value)
			}
		}
		for _, value := range []string{`1e400`, strings.Repeat("9", 5000), `true`, `[1]`, `{}`} {
			a.post(t, data(in.set(try.path, json.RawMessage(value)))).fails(t, 400, "body/"+try.path)
		}
	}
	c := a.publish(t, validAsset())
	a.add(t, "broker", c, "documents", validDocument().set("url", "http://docs:8081/get/1"))
}
