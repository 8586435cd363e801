package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// testExports exports the assets that a search finds. The files must have the values of these assets, and the columns
// that the contract lists.
// Promises: export-columns
func testExports(t *testing.T, a api) {
	word := nonsense()
	f := validAsset().set("items.0.quantity", json.Number("1234567890123456789.0001")).set("items.0.location",
		map[string]any{"latitude": "49.8397", "longitude": json.Number("24.0297")})
	f["title"] = "=" + word
	c := a.publish(t, f)
	a.awaitFound(t, url.Values{"q": {word}}, c.id)
	file := func(form string) answer { return a.export(t, form, word, "") }
	got := file("csv")
	rows, err := csv.NewReader(strings.NewReader(got.text)).ReadAll()
	if err != nil || len(rows) != 2 || got.header.Get("Registry-Total") != "1" {
		t.Fatalf("got %s, the total %s and %v, want a row", got.text, got.header.Get("Registry-Total"), err)
	}
	var want []string
	described := map[string]any{}
	resp := expect.Get(http.Get(a.base + "/data/assets.csv-metadata.json"))(t)
	defer resp.Body.Close()
	expect.OK(t, json.NewDecoder(resp.Body).Decode(&described))
	for _, table := range list(described["tables"]) {
		for _, column := range list(at(table, "tableSchema.columns")) {
			if strings.HasSuffix(text(at(table, "url")), "assets.csv") {
				want = append(want, text(at(column, "name")))
			}
		}
	}
	if want = append(want, "page"); !slices.Equal(rows[0], want) {
		t.Errorf("got the columns %q, want %q", rows[0], want)
	}
	whole := a.read(t, c.id).must(t, 200).data()
	for i, name := range rows[0] {
		want := ""
		if value := at(whole, name); value != nil {
			want = fmt.Sprint(value)
		}
		switch name {
		case "title":
			want = "'=" + word
		case "items.length", "documents.length":
			want = "1"
		case "page":
			want = a.base + "/assets/" + c.id
		}
		expect.Equal(t, rows[1][i], want, "%s", name)
	}
	feature := at(file("geojson").json, "features.0")
	if got := fmt.Sprint(at(feature, "geometry.coordinates")); got != "[24.0297 49.8397]" {
		t.Errorf("got the coordinates %s, want the longitude first", got)
	}
	of := object(object(feature)["properties"])
	if of["title"] != "="+word || of["items.0.quantity"] != json.Number("1234567890123456789.0001") {
		t.Errorf("got the properties %v, want the fields", of)
	}
	if sheet := unpacked(t, file("xlsx").text); !strings.Contains(sheet, ">&#39;="+word+"<") {
		t.Errorf("got the sheet %s, want the title in it", sheet)
	}
}

// export returns the exported file of a search for a word, in the given form.
func (a api) export(t *testing.T, form, word, key string) answer {
	t.Helper()
	got := a.do(t, call{method: "GET", path: "/api/2.5/search." + form + "?" + url.Values{"q": {word}}.Encode(), key: key})
	if kind := got.header.Get("Content-Type"); got.status != http.StatusOK || strings.Contains(kind, "application/json") {
		t.Fatalf("%s: got %d %s, want a file", got.call.path, got.status, got.text)
	}
	return got
}
