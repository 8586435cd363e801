package site_test

import (
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// listedNames has names of ДК 021:2015 and of the Common Procurement Vocabulary, and invented names for CAV-PS.
func listedNames(t *testing.T) codenames.Lists {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"CPV.uk.json":    `{"39100000-3": "Меблі"}`,
		"CPV.en.json":    `{"39100000-3": "Furniture"}`,
		"CAV-PS.uk.json": `{"04121000-2": "Нежитлові споруди"}`,
	} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	names, err := codenames.Read(dir)
	expect.OK(t, err)
	return names
}

// TestPagesHaveNamesOfCodes checks the names in facets, filters, hits, statistics and a record.
func TestPagesHaveNamesOfCodes(t *testing.T) {
	f := newFound()
	f.result.Facets[2] = search.Facet{Name: search.ByClassification,
		Values: []search.Count{{Value: "0412", Name: "Нежитлове", NameEn: "Non-residential", Count: 9}},
		Chosen: []search.Count{{Value: "041", Name: "Нерухоме", NameEn: "Immovable"}}}
	s := newSiteWith(t, newRegistry(whole), f, listedNames(t))
	for _, c := range []struct {
		path string
		has  []string
	}{
		{"/uk/?classification=041", []string{">Нежитлове, 0412</bdi>", ">Нерухоме, 041</bdi>", `Вид майна</span> <bdi>Нерухоме, 041`,
			`<bdi lang="uk">Нежитлові споруди, 04121000-2</bdi>`}},
		{"/en/?classification=041", []string{">Non-residential, 0412</bdi>", ">Immovable, 041</bdi>",
			`<bdi lang="uk">Нежитлові споруди, 04121000-2</bdi>`}},
		{"/uk/statistics", []string{">Нежитлове, 0412</a>"}},
		{"/en/statistics", []string{">Non-residential, 0412</a>"}},
		{"/uk/assets/" + id, []string{">Приміщення</bdi> — Нежитлові споруди (",
			`data-copy="items.0.classification.id" data-value="04121000-2">Нежитлові споруди</bdi>`}},
		{"/en/assets/" + id, []string{`>Приміщення</bdi> — <bdi lang="uk">Нежитлові споруди</bdi> (`, `>Меблі</bdi> — Furniture (`}},
	} {
		_, body := get(t, s, c.path)
		mustHave(t, html.UnescapeString(body), c.has...)
	}
	_, body := get(t, s, "/uk/assets/"+id)
	mustLack(t, body, "— Меблі") // the record already has this name
}

// TestCodesWithoutANameComeLast checks how a facet and the statistics show codes that have no name.
func TestCodesWithoutANameComeLast(t *testing.T) {
	f := newFound()
	f.result.Facets[2] = search.Facet{Name: search.ByClassification, Values: []search.Count{
		{Value: "08150000-2", Count: 9}, {Value: "04", Name: "Нерухоме майно", Count: 2}}}
	for path, want := range map[string]string{
		"/uk/": "Код 08150000-2, без назви", "/en/": "Code 08150000-2, no name", "/uk/statistics": "Код 08150000-2, без назви",
	} {
		_, body := get(t, newSite(t, newRegistry(whole), f), path)
		named, nameless := strings.Index(body, "Нерухоме майно, 04"), strings.Index(body, want)
		if named < 0 || nameless < named {
			t.Errorf("%s: got the named code at %d and %q at %d, want it after the named one", path, named, want, nameless)
		}
	}
}
