package index

import (
	"slices"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// idsOf returns the ids of all hits of a question, page by page. The total of each page must be their number.
func idsOf(t *testing.T, x *Index, q search.Query) (ids []string) {
	t.Helper()
	for {
		r := mustSearch(t, x, q)
		for _, h := range r.Hits {
			ids = append(ids, h.ID)
		}
		if q.After = r.Next; r.Next == nil {
			if int(r.Total) != len(ids) {
				t.Errorf("%+v: got the total %d, want the %d hits of all pages", q, r.Total, len(ids))
			}
			return ids
		}
		if again, err := search.ParseCursor(r.Next.String()); err != nil || again.String() != r.Next.String() {
			t.Fatalf("got the cursor %s, %v, want one that can be read", r.Next, err)
		}
	}
}

// TestWordsOfTheSameMeaningComeLast searches for a word that assets have, while others have words of the same meaning.
// Promises: same-meaning
func TestWordsOfTheSameMeaningComeLast(t *testing.T) {
	x := wordsIn(t, "комора", "склад за ангаром", "комора стара нова", "майстерня", "склад", "сховище")
	ids := func(numbers ...int) (all []string) {
		for _, n := range numbers {
			all = append(all, idOf(n))
		}
		return all
	}
	wide := search.Query{Text: "склад", Also: true, Sort: search.ByRelevance, Limit: 2}
	changed := func(change func(q *search.Query)) search.Query {
		q := wide
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		q       search.Query
		want    []string
		inOrder bool
	}{
		"relevance":     {wide, ids(5, 2, 1, 3, 6), false},
		"another order": {changed(func(q *search.Query) { q.Also, q.Sort = false, search.OldestFirst }), ids(2, 5), true},
		"the feed":      {changed(func(q *search.Query) { q.Sort = search.OldestFirst }), ids(1, 2, 3, 5, 6), true},
		"exact":         {changed(func(q *search.Query) { q.Exact = true }), ids(5, 2), true},
		"quotes":        {changed(func(q *search.Query) { q.Text = `"склад"` }), ids(5, 2), true},
		"no such words": {changed(func(q *search.Query) { q.Text = "майстерня" }), ids(4), true},
		"a second word": {changed(func(q *search.Query) { q.Text = "склад ангар" }), ids(2), true},
		"one page":      {changed(func(q *search.Query) { q.Limit = 20 }), ids(5, 2, 1, 3, 6), false},
		"another state": {changed(func(q *search.Query) { q.Filters = q.Filters.With(search.ByStatus, []string{"pending"}) }), nil, true},
	} {
		got := idsOf(t, x, c.q)
		if !c.inOrder && len(got) == len(c.want) {
			slices.Sort(got[2:])
			slices.Sort(c.want[2:])
		}
		expect.ErrorIf(t, !slices.Equal(got, c.want), "%s: got %v, want %v", name, got, c.want)
	}
	facets := wide
	facets.Limit, facets.Facets = 0, []search.FacetName{search.ByStatus}
	if r := mustSearch(t, x, facets); r.Total != 5 || r.Facets[0].Values[0].Count != 5 || !r.Reading.Has(search.ByAlso) {
		t.Errorf("got the total %d, %+v and %v, want 5 assets, all counted, and that other words were tried", r.Total, r.Facets, r.Reading.Steps)
	}
	if used := mustSearch(t, x, wide).Reading.Used(); !slices.Equal(used, []string{"склад"}) {
		t.Errorf("got the words %q, want those of the question", used)
	}
	// A cursor from before has no such words: its pages go on with the words of the question alone.
	old := search.Query{Text: "склад", Sort: search.ByRelevance, Limit: 1}
	old.After = mustSearch(t, x, old).Next
	old.Also = true
	if r := mustSearch(t, x, old); r.Total != 2 || len(r.Hits) != 1 || r.Next != nil {
		t.Errorf("got %d of %d assets after the cursor of a search without other words, want the last of 2", len(r.Hits), r.Total)
	}
}
