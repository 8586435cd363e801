package search

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func parse(t *testing.T, query string) (Query, error) {
	t.Helper()
	values := expect.Get(url.ParseQuery(query))(t)
	return Parse(values, nil)
}

// Promises: search-times
func TestAQuestionIsReadFromItsParameters(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	number := func(n float64) *float64 { return &n }
	for _, c := range []struct {
		query string
		want  Query
	}{
		{"", Query{Sort: NewestFirst}},
		{"q=+++&status=", Query{Sort: NewestFirst}},
		{"q=нежитлове+приміщення", Query{Text: "нежитлове приміщення", Sort: ByRelevance, Also: true}},
		{"q=x&sort=-modified", Query{Text: "x", Sort: NewestFirst}},
		{"sort=relevance", Query{Sort: NewestFirst}},
		{"status=active&status=pending&status=active", Query{
			Filters: Filters{Values: map[FacetName][]string{ByStatus: {"active", "pending"}}}, Sort: NewestFirst,
		}},
		{"classification=0412&classification=04121000-2", Query{
			Filters: Filters{Values: map[FacetName][]string{ByClassification: {"0412", "04121000-2"}}}, Sort: NewestFirst,
		}},
		{"published_from=2026-11-20&published_to=2026-11-21", Query{
			Filters: Filters{Published: Times{day(20), day(22)}}, Sort: NewestFirst,
		}},
		{"modified_to=2026-11-20T02:00:00%2B02:00", Query{
			Filters: Filters{Modified: Times{Until: day(20).Add(time.Microsecond)}}, Sort: NewestFirst,
		}},
		{"modified_from=2026-11-20T02:00:00+02:00", Query{Filters: Filters{Modified: Times{From: day(20)}}, Sort: NewestFirst}},
		{"modified_from=20261120", Query{Filters: Filters{Modified: Times{From: day(20)}}, Sort: NewestFirst}},
		{"modified_from=2026-11-20T00", Query{Filters: Filters{Modified: Times{From: day(20)}}, Sort: NewestFirst}},
		{"modified_from=2026-11-20+00:00", Query{Filters: Filters{Modified: Times{From: day(20)}}, Sort: NewestFirst}},
		{"modified_from=20261120t000000,0z", Query{Filters: Filters{Modified: Times{From: day(20)}}, Sort: NewestFirst}},
		{"modified_from=2026-11-20T02:00:00.123456789+0200", Query{
			Filters: Filters{Modified: Times{From: day(20).Add(123456 * time.Microsecond)}}, Sort: NewestFirst}},
		{"published_from=20261120&published_to=20261121", Query{
			Filters: Filters{Published: Times{From: day(20), Until: day(22)}}, Sort: NewestFirst}},
		{"quantity_from=-1&quantity_to=240.5", Query{
			Filters: Filters{Quantity: Quantities{From: number(-1), To: number(240.5)}}, Sort: NewestFirst,
		}},
		{"quantity_from=2&quantity_unit=ha&sort=-area", Query{
			Filters: Filters{Quantity: Quantities{From: number(2), Unit: Hectares}}, Sort: LargestFirst,
		}},
		{"facets=status,region&facets=month", Query{Sort: NewestFirst, Facets: []FacetName{ByStatus, ByRegion, ByMonth}}},
		{"unknown=1", Query{Sort: NewestFirst}},
	} {
		t.Run(c.query, func(t *testing.T) {
			got := expect.Get(parse(t, c.query))(t)
			c.want.Limit, c.want.FacetLimit = DefaultLimit, DefaultFacetLimit
			expect.NoDiff(t, cmp.Diff(c.want, got), "the question differs")
		})
	}
}

// Promises: search-words, search-pages, search-faults
func TestFaultyParametersAreRefusedAllAtOnce(t *testing.T) {
	many := strings.Repeat("&owner=", assetfilter.MaxValues+1)
	for i := range assetfilter.MaxValues + 1 {
		many = strings.Replace(many, "owner=&", "owner="+string(rune('a'+i))+"&", 1)
	}
	for _, c := range []struct{ query, name string }{
		{"q=" + strings.Repeat("ї", MaxText+1), "q"},
		{"q=" + strings.Repeat("a+", MaxWords+1), "q"},
		{"q=" + strings.Repeat("\ufdfa", MaxText), "q"}, // each character counts as four words
		{"q=" + strings.Repeat("\ufdfa", MaxWords/3+2), "q"},
		{"q=" + strings.Repeat("a.", MaxWords+1), "q"},
		{"q=" + strings.Repeat("а-", MaxWords+1), "q"},
		{"status=draft", "status"},
		{"status=deleted", "status"},
		{"owner=" + strings.Repeat("x", assetfilter.MaxValue+1), "owner"},
		{many[1:] + "last", "owner"},
		{"classification=x", "classification"},
		{"classification=0", "classification"},
		{"classification=0412100-2", "classification"},
		{"classification=04121000-22", "classification"},
		{"published_from=yesterday", "published_from"},
		{"published_from=2026-13-01", "published_from"},
		{"published_from=2026-11-02&published_to=2026-11-01", "published_from"},
		{"quantity_from=NaN", "quantity_from"},
		{"quantity_from=0x1p4", "quantity_from"},
		{"quantity_from=" + strings.Repeat("1", 41), "quantity_from"},
		{"quantity_from=1e9", "quantity_from"},
		{"quantity_to=" + strings.Repeat("9", 400), "quantity_to"},
		{"quantity_unit=acre", "quantity_unit"},
		{"sort=price", "sort"},
		{"limit=101", "limit"},
		{"limit=-1", "limit"},
		{"limit=x", "limit"},
		{"facets=title", "facets"},
		{"facets=status,type,region,owner,month,locality", "facets"},
		{"facet_limit=101", "facet_limit"},
		{"search_after=x", "search_after"},
		{"sort=modified&search_after=" + Cursor{Sort: NewestFirst, At: 1}.String(), "search_after"},
	} {
		t.Run(c.query[:min(len(c.query), 40)], func(t *testing.T) {
			_, err := parse(t, c.query+"&limit=never")
			f, ok := errors.AsType[*fault.Error](err)
			expect.FatalIf(t, !ok || f.Kind != fault.Invalid, "got %v, want a fault.Invalid", err)
			var names []string
			for _, d := range f.Details {
				names = append(names, d.Location+"/"+d.Name)
			}
			want := "querystring/" + c.name
			if !strings.Contains(strings.Join(names, " "), want) {
				t.Errorf("got faults at %v, want one at %s", names, want)
			}
			if c.name != "limit" && len(names) != 2 {
				t.Errorf("got %d faults, want one of the limit too", len(names))
			}
		})
	}
}

// Promises: search-codes
func TestCodesHaveTheirParentsAsPrefixes(t *testing.T) {
	for _, c := range []struct {
		code, prefix string
		level        int
	}{
		{"04000000-8", "04", 3},
		{"04120000-5", "0412", 8},
		{"04121000-2", "04121", 8},
		{"04", "04", 3},
		{"041", "041", 4},
		{"10000000-1", "10", 3},
		{"00000000-1", "00", 3},
		{"12345678-9", "12345678", 8},
	} {
		prefix, ok := assetfilter.CodePrefix(c.code)
		if !ok || prefix != c.prefix {
			t.Errorf("the prefix of %s: got %q, %t; want %q", c.code, prefix, ok, c.prefix)
		}
		expect.Equal(t, (Filters{}).With(ByClassification, []string{c.code}).CodeLevel(), c.level,
			"the level below %s", c.code)
	}
	expect.Equal(t, (Filters{}).CodeLevel(), 2, "the level without a filter")
}

// FuzzParse checks that no parameters make the parser panic. It also checks each question that is parsed: the
// question must be within its limits, and its method Values must return parameters that make the same question.
func FuzzParse(f *testing.F) {
	f.Add("q=будинок&status=active&facets=status,region&limit=5")
	f.Add("published_from=2026-11-20T01:02:03.123456Z&published_to=2026-11-21&quantity_from=1.5&quantity_unit=ha&sort=published")
	f.Add("search_after=" + Cursor{Sort: NewestFirst, Key: -3, At: 7}.String() + "&classification=04121000-2")
	f.Add("sort=area&search_after=" + Cursor{Sort: SmallestFirst, Back: true, Key: 5, At: 7}.String())
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := Parse(values, nil)
		if err != nil {
			expect.FatalIf(t, fault.KindOf(err) != fault.Invalid, "got %v, want a fault.Invalid", err)
			return
		}
		if len([]rune(q.Text)) > MaxText || q.Limit > MaxLimit || len(q.Facets) > MaxFacets || len(q.Filters.ValuesOf(ByOwner)) > assetfilter.MaxValues {
			t.Fatalf("got %+v, which is out of bounds", q)
		}
		again, err := Parse(q.Values(), nil)
		expect.Must(t, err, "the parameters %v", q.Values())
		if diff := cmp.Diff(q, again); diff != "" {
			t.Fatalf("the question differs (-first +second):\n%s", diff)
		}
	})
}

// TestBoundsAreThoseOfTheContract compares the limits in the program with the numbers in docs/contract.md,
// "Search". They must be equal.
// Promises: search-words, search-filters, search-hits, suggestions
func TestBoundsAreThoseOfTheContract(t *testing.T) {
	got := []int{MaxText, MaxWords, assetfilter.MaxValues, MaxHit, MaxSuggestions}
	if want := []int{600, 64, 10, 16 << 10, 10}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFiltersByPropertiesAreThoseOfAll checks that the filters in Properties are the filters in assetfilter.All,
// because the search uses the terms of assetfilter.All.
func TestFiltersByPropertiesAreThoseOfAll(t *testing.T) {
	if got, want := FilterParams()[:len(assetfilter.All)], assetfilter.Names(); !slices.Equal(got, want) {
		t.Errorf("got the filters %v, want %v", got, want)
	}
}
