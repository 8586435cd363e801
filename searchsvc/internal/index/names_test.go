package index

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// described is an asset whose item has a code and a description.
type described struct {
	n                    int
	custodian, code, say string
	test                 bool
}

func (d described) entry(t *testing.T, position int64) replica.Entry {
	t.Helper()
	a := client.Asset{ID: idOf(d.n), DateModified: stamp(position), Status: client.Active,
		AssetCustodian: client.Organisation{Identifier: client.Identifier{Scheme: "UA-EDR", ID: client.Text(d.custodian)}},
		Items:          []client.Item{{Classification: client.Classification{ID: d.code, Description: d.say}}}}
	text := expect.Get(a.MarshalJSON())(t)
	return replica.Entry{ID: a.ID, Position: position, Test: d.test, JSON: text}
}

// namesOf returns the codes and names in the facet of codes, under a filter.
func namesOf(t *testing.T, x *Index, filter string) string {
	t.Helper()
	q := search.Query{Facets: []search.FacetName{search.ByClassification}}
	if filter != "" {
		q.Filters = q.Filters.With(search.ByClassification, []string{filter})
	}
	var all []string
	for _, v := range mustSearch(t, x, q).Facets[0].Values {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s=%s/%s", v.Value, v.Name, v.NameEn), "/"))
	}
	return strings.Join(all, ", ")
}

// TestRecordsNameACode has records of several custodians that describe the same code. A description must name
// the code if at least leastSayers custodians use it.
// Promises: code-names
func TestRecordsNameACode(t *testing.T) {
	const code, class = "04121000-2", "04120000-5"
	long := strings.Repeat("я", maxSaid+1)
	spam := make([]described, 3*mostSayers) // all of one custodian
	for n := range spam {
		spam[n] = described{100 + n, "9", code, "Реклама", false}
	}
	for _, c := range []struct {
		name         string
		assets       []described
		filter, want string
	}{
		{"two custodians name none", []described{{1, "1", code, "Склад", false}, {2, "2", code, "Склад", false}}, "0412",
			code + "="},
		{"three do", []described{{1, "1", code, "Склад", false}, {2, "2", code, "Склад", false}, {3, "3", code, "Склад", false}},
			"0412", code + "=Склад"},
		{"one custodian counts once", append([]described{{1, "1", code, "Склад", false}, {2, "2", code, "Склад", false},
			{3, "3", code, "Склад", false}}, spam...), "0412", code + "=Склад"},
		{"spam alone names none", spam, "0412", code + "="},
		{"records in test mode do not count", []described{{1, "1", code, "Склад", false}, {2, "2", code, "Склад", false},
			{3, "3", code, "Склад", true}}, "0412", code + "="},
		{"no custodian does not count", []described{{1, "1", code, "Склад", false}, {2, "2", code, "Склад", false},
			{3, "", code, "Склад", false}}, "0412", code + "="},
		{"the one of most custodians", []described{{1, "1", code, "Дім", false}, {2, "2", code, "Дім", false},
			{3, "3", code, "Дім", false}, {4, "4", code, "Склад", false}, {5, "5", code, "Склад", false},
			{6, "6", code, "Склад", false}, {7, "7", code, "Склад", false}}, "0412", code + "=Склад"},
		{"a long one is cut", []described{{1, "1", code, long, false}, {2, "2", code, long, false}, {3, "3", code, long, false}},
			"0412", code + "=" + long[:2*maxSaid] + "…"},
		{"the code of a class names the class", []described{{1, "1", class, "Будівлі", false}, {2, "2", class, "Будівлі", false},
			{3, "3", class, "Будівлі", false}}, "041", "0412=Будівлі"},
		{"a division has no name of a code below it", []described{{1, "1", code, "Склад", false}, {2, "2", code, "Склад", false},
			{3, "3", code, "Склад", false}}, "", "04="},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := openIndex(t, t.TempDir())
			defer x.Close()
			for i, assets := range [][]described{c.assets[:len(c.assets)/2], c.assets[len(c.assets)/2:]} { // two segments
				change := replica.Change{State: stateAt(int64(1e15) + int64(i))}
				for _, d := range assets {
					change.Entries = append(change.Entries, d.entry(t, int64(1e15)+int64(i)))
				}
				expect.OK(t, x.Apply(change))
			}
			expect.Equal(t, namesOf(t, x, c.filter), c.want, "")
		})
	}
}

// TestNamesOfRecordsFollowTheRecords makes records of leastSayers custodians, which give a code a name. Then it
// changes one record, and the name must disappear. The test does this in small and in large columns.
func TestNamesOfRecordsFollowTheRecords(t *testing.T) {
	// With many custodians, a column stores a number for each asset. With few, it stores a set for each value.
	for _, others := range []int{0, 2 * mostSets} {
		x := openIndex(t, t.TempDir())
		defer x.Close()
		const code = "04121000-2"
		change := replica.Change{State: stateAt(1e15)}
		for n := range others + leastSayers {
			d := described{n, fmt.Sprint(n), "06110000-6", "Земля", false}
			if n < leastSayers {
				d.code, d.say = code, "Склад"
			}
			change.Entries = append(change.Entries, d.entry(t, 1e15))
		}
		expect.OK(t, x.Apply(change))
		expect.Equal(t, namesOf(t, x, "0412"), code+"=Склад", "%d others", others)
		found, err := x.Suggest(t.Context(), search.Query{Text: "0412"})
		if want := code + " Склад"; err != nil || len(found) != 1 || found[0] != want {
			t.Errorf("%d others: got the suggestions %q, %v, want %s", others, found, err, want)
		}
		renamed := described{0, "0", code, "Інше", false}
		expect.OK(t, x.Apply(replica.Change{State: stateAt(1e15 + 1), Entries: []replica.Entry{renamed.entry(t,
			1e15+1)}}))
		expect.Equal(t, namesOf(t, x, "0412"), code+"=", "%d others: after a change", others)
		if found, err = x.Suggest(t.Context(), search.Query{Text: "0412"}); err != nil || len(found) != 1 || found[0] != code {
			t.Errorf("%d others: got the suggestions %q, %v, want the code alone", others, found, err)
		}
	}
}

// TestNamesOfListsWin has lists with names from ДК 021:2015 and from the Common Procurement Vocabulary. Facets
// must show these names instead of the descriptions in records.
// Promises: code-names
func TestNamesOfListsWin(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"CPV.uk.json": `{"03111000-2": "Насіння"}`,
		"CPV.en.json": `{"03111000-2": "Seeds", "03110000-5": "Crops, products of market gardening and horticulture"}`} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	names := expect.Get(codenames.Read(dir))(t)
	x := expect.Get(Open(t.TempDir(), synonyms(t), names))(t)
	defer x.Close()
	change := replica.Change{State: stateAt(1e15)}
	for n := range leastSayers {
		change.Entries = append(change.Entries, described{n, fmt.Sprint(n), "03111000-2", "Зерно", false}.entry(t, 1e15))
	}
	expect.OK(t, x.Apply(change))
	for filter, want := range map[string]string{"0311": "03111000-2=Насіння/Seeds",
		"": "03=Сільськогосподарська, фермерська продукція, продукція рибальства, лісівництва та супутня продукція/" +
			"Agricultural, farming, fishing, forestry and related products",
		"031": "0311=Crops, products of market gardening and horticulture/Crops, products of market gardening and horticulture"} {
		expect.Equal(t, namesOf(t, x, filter), want, "%s", filter)
	}
}
