package index

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// filtered has values for random assets and random filters. The filters write the values in several spellings.
var filtered = map[assetfilter.Name][]string{
	assetfilter.Status:         {"pending", "verification", "active", "complete", "deleted", "draft"},
	assetfilter.Type:           {"bounce", "claimRights"},
	assetfilter.Classification: {"04121000-2", "04120000-5", "04122000-9", "06110000-6", "0412", "04", "041", "04121000", "x"},
	assetfilter.Region:         {"Одеська область", "ОДЕСЬКА", "Odesa", "Київ", "м. Київ", "Київська обл.", "Край", "-", ""},
	assetfilter.Locality:       {"м. Одеса", "Одеса", "місто", "Кам’янка", "Камʼянка", "Нова Одеса", ""},
	assetfilter.Custodian:      {"UA-EDR-00032945", "UA-EDR-32945", "UA-IPN-00032945", "7"},
	assetfilter.Owner:          {"broker", "Broker", "b2"},
}

// randomFiltered returns an asset with random values in the properties that filters use.
func randomFiltered(r *rand.Rand, n int) client.Asset {
	one := func(name assetfilter.Name) string { return filtered[name][r.IntN(len(filtered[name]))] }
	a := client.Asset{
		ID: idOf(n), DateModified: stamp(int64(n + 1)), Status: client.Status(one(assetfilter.Status)),
		AssetType: one(assetfilter.Type), Owner: one(assetfilter.Owner),
		AssetCustodian: client.Organisation{Identifier: client.Identifier{
			Scheme: []string{"UA-EDR", "UA-IPN", ""}[r.IntN(3)], ID: client.Text([]string{"00032945", "32945", ""}[r.IntN(3)]),
		}},
	}
	for range r.IntN(4) {
		a.Items = append(a.Items, client.Item{
			Classification: client.Classification{ID: one(assetfilter.Classification)},
			Address:        client.Address{Region: one(assetfilter.Region), Locality: one(assetfilter.Locality)},
		})
	}
	return a
}

// TestWebhooksMeanWhatASearchFinds takes random filters. A search must find the same assets with them that a
// webhook selects.
// Promises: hook-filters
func TestWebhooksMeanWhatASearchFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 3))
	x := openIndex(t, t.TempDir())
	defer x.Close()
	const assets = 400
	change, terms := replica.Change{State: stateAt(assets)}, map[string][]string{}
	for n := range assets {
		a := randomFiltered(r, n)
		text, err := a.MarshalJSON()
		expect.OK(t, err)
		change.Entries = append(change.Entries, replica.Entry{ID: a.ID, Position: int64(n + 1), JSON: text})
		terms[a.ID], err = assetfilter.Terms(text)
		expect.OK(t, err)
	}
	expect.OK(t, x.Apply(change))
	some := 0
	for range 500 {
		asked := url.Values{}
		for _, f := range assetfilter.All {
			if len(filtered[f.Name]) == 0 {
				t.Fatalf("got no values of the filter %s in filtered, want some", f.Name)
			}
			for range max(0, r.IntN(6)-3) {
				asked.Add(string(f.Name), filtered[f.Name][r.IntN(len(filtered[f.Name]))])
			}
		}
		if some += compareFilters(t, x, asked, terms); t.Failed() {
			return
		}
	}
	expect.ErrorIf(t, some < 100, "got %d questions that find something, want 100 at least", some)
}

// compareFilters compares the search with the conditions of webhooks. Both must refuse the filters, or both must select
// the same assets. The result is 1 if the filters select some assets, but less than half of all. Otherwise it is 0.
func compareFilters(t *testing.T, x *Index, asked url.Values, terms map[string][]string) int {
	t.Helper()
	values, fault := map[assetfilter.Name][]string{}, ""
	for name, list := range asked {
		read, why := assetfilter.Of(assetfilter.Name(name)).Read(list)
		values[assetfilter.Name(name)], fault = read, fault+why
	}
	q, err := search.Parse(asked, nil)
	if (err != nil) != (fault != "") {
		t.Fatalf("%v: got %v from the search and %q from the filter, want both to refuse or neither", asked, err, fault)
	}
	if err != nil {
		return 0
	}
	text := expect.Get(assetfilter.Encode(values))(t)
	set := expect.Get(assetfilter.Parse(text))(t)
	q.Limit = len(terms) // more than Parse permits
	found := map[string]bool{}
	for _, h := range mustSearch(t, x, q).Hits {
		found[h.ID] = true
	}
	for id, has := range terms {
		meets := set.Meets(has)
		if set.IsEmpty() { // a search never finds assets without terms
			meets = len(has) > 0
		}
		if meets != found[id] {
			t.Fatalf("%v: got asset %s met %t and found %t, want the same; its terms are %q",
				asked, id, meets, found[id], fmt.Sprint(has))
		}
	}
	if len(found) > 0 && len(found) < len(terms)/2 {
		return 1
	}
	return 0
}
