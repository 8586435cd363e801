package assetfilter_test

import (
	"fmt"
	"strings"
	"testing"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/testing/expect"
)

const hotel = `{"id":"1","status":"active","assetType":"bounce","owner":"b1","title":"Готель",
	"assetCustodian":{"name":"Фонд","identifier":{"scheme":"UA-EDR","id":"00032945"}},
	"items":[{"classification":{"id":"04210000-3"},"address":{"region":"Одеська область","locality":"м. Одеса"}},
		{"classification":{"id":"06110000-6"},"address":{"region":"Київ","locality":"Київ"}}]}`

func set(t *testing.T, values map[assetfilter.Name][]string) assetfilter.Set {
	t.Helper()
	text, err := assetfilter.Encode(values)
	expect.OK(t, err)
	s, err := assetfilter.Parse(text)
	expect.OK(t, err)
	return s
}

func terms(t *testing.T, asset string) []string {
	t.Helper()
	all, err := assetfilter.Terms([]byte(asset))
	expect.OK(t, err)
	return all
}

func TestAnAssetMeetsAllFiltersByOneOfTheirValues(t *testing.T) {
	type values = map[assetfilter.Name][]string
	for _, c := range []struct {
		values values
		want   bool
	}{
		{values{}, true},
		{values{"owner": {"b1"}}, true},
		{values{"owner": {"b"}}, false},
		{values{"owner": {"b2", "b1"}, "status": {"pending", "active"}}, true},
		{values{"owner": {"b1"}, "status": {"pending"}}, false},
		{values{"classification": {"0421"}}, true},
		{values{"classification": {"04210000-3"}}, true},
		{values{"classification": {"04200000-0"}}, true},
		{values{"classification": {"0422"}}, false},
		{values{"classification": {"06"}}, true},
		{values{"region": {"odesa"}}, true},
		{values{"region": {"Одесская область"}, "locality": {"ОДЕСА"}}, true},
		{values{"region": {"Київська"}}, false},
		{values{"custodian": {"UA-EDR-00032945"}}, true},
		{values{"custodian": {"00032945"}}, false},
		{values{"type": {"bounce"}}, true},
	} {
		expect.Equal(t, set(t, c.values).Meets(terms(t, hotel)), c.want, "%v", c.values)
	}
}

func TestAssetsThatNoSearchFindsMeetNoFilter(t *testing.T) {
	for _, status := range []string{"draft", "deleted", ""} {
		asset := strings.Replace(hotel, "active", status, 1)
		if set(t, map[assetfilter.Name][]string{"owner": {"b1"}}).Meets(terms(t, asset)) {
			t.Errorf("status %q: got an asset that meets a filter, want none", status)
		}
	}
}

func TestFaultyValuesAreRefused(t *testing.T) {
	var many []string
	for i := range assetfilter.MaxValues + 1 {
		many = append(many, fmt.Sprint(i))
	}
	for _, c := range []struct {
		name   assetfilter.Name
		values []string
	}{
		{assetfilter.Status, []string{"deleted"}},
		{assetfilter.Classification, []string{"0"}},
		{assetfilter.Owner, []string{strings.Repeat("ї", assetfilter.MaxValue+1)}},
		{assetfilter.Owner, []string{"\xff"}},
		{assetfilter.Owner, many},
	} {
		if got, fault := assetfilter.Of(c.name).Read(c.values); fault == "" {
			t.Errorf("%s: got %q, want a fault", c.name, got)
		}
	}
	got, fault := assetfilter.Of(assetfilter.Owner).Read([]string{" b ", "", "b", "a"})
	expect.ErrorIf(t, fault != "" || strings.Join(got, ",") != "b,a", "got %q and %q, want b and a", got, fault)
}

// TestStoredFiltersOfAnotherVersionAreRefused parses filters that this version does not write. Parse must refuse
// them: if it ignored a filter, too many assets would be found.
func TestStoredFiltersOfAnotherVersionAreRefused(t *testing.T) {
	for _, text := range []string{`{"colour":["red"]}`, `{"status":["sold"]}`, `{`, `[]`} {
		expect.FailsOf(t, "%s", text)(assetfilter.Parse(text))
	}
	const want = `{"owner":["a","b"],"region":["Одеська"]}`
	got, err := assetfilter.Encode(map[assetfilter.Name][]string{"region": {"Одеська"}, "owner": {"b", "a"}, "type": nil})
	expect.ErrorIf(t, err != nil || got != want, "got %s and %v, want %s", got, err, want)
}

// TestALocalityIsMetByBothNames checks the filter by the former and by the present name of a renamed town.
func TestALocalityIsMetByBothNames(t *testing.T) {
	for _, c := range []struct {
		locality, region, filter string
		want                     bool
	}{
		{"м. Мирноград", "Донецька область", "Димитров", true}, {"Димитров", "Донецька область", "Мирноград", true},
		{"с. Мирноград", "Сумська область", "Димитров", false}, {"м. Торецьк", "Донецька область", "Дзержинськ", false},
		{"м. Торецьк", "Донецька область", "Торецьк", true},
	} {
		asset := `{"status":"active","items":[{"address":{"locality":"` + c.locality + `","region":"` + c.region + `"}}]}`
		terms, err := assetfilter.Terms([]byte(asset))
		expect.OK(t, err)
		text, err := assetfilter.Encode(map[assetfilter.Name][]string{assetfilter.Locality: {c.filter}})
		expect.OK(t, err)
		set, err := assetfilter.Parse(text)
		expect.OK(t, err)
		expect.Equal(t, set.Meets(terms), c.want, "%s, %s, with the filter %s", c.locality, c.region, c.filter)
	}
}
