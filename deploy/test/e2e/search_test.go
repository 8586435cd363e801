package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/randtest"
)

// nonsense returns a random word in Ukrainian letters. No other asset has this word.
func nonsense() string {
	letters := []rune("бвгджзклмнпрст")
	var word strings.Builder
	for range 6 {
		word.WriteRune(letters[randtest.IntN(len(letters))])
		word.WriteRune([]rune("аоу")[randtest.IntN(3)])
	}
	return word.String() + "в"
}

// find searches, and returns the answer.
func (a api) find(t *testing.T, query url.Values) answer {
	t.Helper()
	return a.do(t, call{method: "GET", path: "/api/2.5/search?" + query.Encode()}).must(t, 200)
}

// idsOf returns the ids of the hits.
func idsOf(got answer) (ids []string) {
	for _, hit := range list(got.json["data"]) {
		ids = append(ids, text(at(hit, "id")))
	}
	return ids
}

// awaitFound searches until the hits are exactly the assets in the parameter `want`.
func (a api) awaitFound(t *testing.T, query url.Values, want ...string) answer {
	t.Helper()
	slices.Sort(want)
	deadline := time.Now().Add(20 * time.Second)
	for {
		got := a.find(t, query)
		ids := idsOf(got)
		slices.Sort(ids)
		if slices.Equal(ids, want) {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v: got %v, want %v", query, ids, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitSearch waits until the search service answers. While it starts or builds its index, it does not answer.
func (a api) awaitSearch(t *testing.T) {
	t.Helper()
	soon(t, "the search answers", 20*time.Second, func() bool {
		return a.do(t, call{method: "GET", path: "/api/2.5/search"}).status == http.StatusOK
	})
}

// testFoundAssets checks searches in a registry that has a search service.
// Promises: search-public
func testFoundAssets(t *testing.T, a api) {
	a.awaitSearch(t)
	t.Run("a published asset is found by its words and filters", a.findsWords)
	t.Run("hidden assets are never found", a.hides)
	t.Run("the page of an asset has its pictures", func(t *testing.T) { testPageWithPictures(t, a) })
	t.Run("each value of a list has names", func(t *testing.T) { testDictionaries(t, a) })
	t.Run("only some answers have other forms", func(t *testing.T) { testFormsOfAnswers(t, a) })
	t.Run("HEAD has the headers of GET", func(t *testing.T) { testHeads(t, a) })
}

// testDictionaries compares the dictionaries with the values that the description of the API lists. Both must
// have the same values.
// Promises: dictionaries
func testDictionaries(t *testing.T, a api) {
	got := a.do(t, call{method: "GET", path: "/api/2.5/dictionaries"}).must(t, 200)
	has := map[string][]string{}
	for _, d := range list(got.json["data"]) {
		for _, v := range list(at(d, "values")) {
			id := text(at(d, "id"))
			has[id] = append(has[id], text(at(v, "value")))
			isBoth := text(at(v, "name")) != "" && text(at(v, "name_en")) != ""
			if isCode := slices.Contains([]string{"CAV-PS", "CPV", "CPVS", "dk018", "kvtspz"}, id); !isBoth && !isCode {
				t.Errorf("%v: got %v, want a name in both languages", id, v)
			}
		}
	}
	schemas := at(a.do(t, call{method: "GET", path: "/api/2.5/openapi.json"}).must(t, 200).json, "components.schemas")
	lists := 0
	for schema, within := range map[string]string{"Asset": "", "Document": "", "Organization": "", "Decision": "",
		"RelatedProcess": "relatedProcesses.", "RegistrationDetails": "registrationDetails."} {
		for field, of := range object(at(schemas, schema+".properties")) {
			if ref, isRef := at(of, "$ref").(string); isRef {
				of = object(schemas)[path.Base(ref)]
			}
			want := list(at(of, "enum"))
			if one := at(of, "const"); one != nil {
				want = []any{one}
			}
			if want == nil {
				continue
			}
			lists++
			var values []string
			for _, value := range want {
				values = append(values, text(value))
			}
			slices.Sort(values)
			if !slices.Equal(has[within+field], values) {
				t.Errorf("%s: got the values %q, want %q", within+field, has[within+field], values)
			}
		}
	}
	if lists < 7 || len(has["region"]) < 20 || len(has["unit.code"]) < 10 {
		t.Errorf("got %d lists, the regions %q and the units %q, want all", lists, has["region"], has["unit.code"])
	}
	again := a.do(t, call{method: "GET", path: "/api/2.5/dictionaries",
		header: map[string]string{"If-None-Match": got.header.Get("ETag")}})
	if again.status != http.StatusNotModified {
		t.Errorf("got %d with the tag %q, want 304", again.status, got.header.Get("ETag"))
	}
}

func (a api) findsWords(t *testing.T) {
	word := nonsense()
	f := validAsset().set("items.0.unit.code", "MTK")
	f["title"] = "Приміщення " + word
	f["description"] = "Об'єкт у м. Івано-Франківськ, ґанок; house near the lakes."
	c := a.publish(t, f)
	base := url.Values{"q": {word}}
	got := a.awaitFound(t, base, c.id)
	equal(t, "total", got.json["total"], any(json.Number("1")))
	equal(t, "dateModified", at(got.json, "data.0.dateModified"), c.data()["dateModified"])
	for _, q := range []string{"приміщеннями", "06111000-3", c.id} {
		equal(t, "found by "+q, idsOf(a.find(t, url.Values{"q": {word + " " + q}})), []string{c.id})
	}
	for filter, meets := range map[string]bool{"status": true, "owner": false} {
		query := url.Values{"q": {word}, filter: {map[bool]string{true: "pending", false: "broker1"}[meets]}}
		equal(t, "found with the filter "+filter, len(idsOf(a.find(t, query))) == 1, meets)
	}
	a.patch(t, c, fields{"title": "Інше"}).must(t, 200)
	a.awaitFound(t, base)
}

// hides checks that searches find no hidden asset. Each hidden asset has a word that no other asset has (a
// canary). hides then publishes one more asset, and waits until a search finds it. This proves that the index
// has read the earlier changes.
func (a api) hides(t *testing.T) {
	canaries := map[string]string{"a draft": nonsense(), "a test asset": nonsense(), "a deleted asset": nonsense(),
		"an asset that became a test asset": nonsense()}
	with := func(word string) fields {
		f := validAsset()
		f["title"], f["description"] = word, word
		return f
	}
	a.create(t, with(canaries["a draft"]))
	test := with(canaries["a test asset"])
	test["mode"] = "test"
	a.publish(t, test)
	deleted := a.publish(t, with(canaries["a deleted asset"]))
	became := a.publish(t, with(canaries["an asset that became a test asset"]))
	a.awaitFound(t, url.Values{"q": {canaries["a deleted asset"]}}, deleted.id)
	a.awaitFound(t, url.Values{"q": {canaries["an asset that became a test asset"]}}, became.id)
	a.do(t, call{method: "POST", path: "/assets/" + deleted.id + "/documents", key: "broker", token: deleted.token,
		body: data(fields{"documentType": "cancellationDetails", "title": "x", "url": "http://example.com/1"})}).must(t, 201)
	a.patch(t, deleted, fields{"status": "deleted"}).must(t, 200)
	a.do(t, call{method: "PATCH", path: "/assets/" + became.id, key: "administrator",
		body: data(fields{"mode": "test"})}).must(t, 200)
	marker := nonsense()
	a.awaitFound(t, url.Values{"q": {marker}}, a.publish(t, with(marker)).id)
	for name, word := range canaries {
		for _, sort := range []string{"relevance", "modified"} {
			if ids := idsOf(a.find(t, url.Values{"q": {word}, "sort": {sort}})); len(ids) != 0 {
				t.Errorf("%s: got %v, want none", name, ids)
			}
		}
	}
}
