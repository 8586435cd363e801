package index

import (
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// TestPagesLoseNothingWhenCountsChange reads pages by relevance while assets are added, so that a word becomes
// rarer or more common. Each asset that was there at first must be on a page.
func TestPagesLoseNothingWhenCountsChange(t *testing.T) {
	for _, c := range []struct{ name, title, text string }{
		{"a word becomes rarer", "гамма", "річ"},
		{"a word becomes common", "альфа", "бета"},
	} {
		x := openIndex(t, t.TempDir())
		n, position := 0, int64(1_000_000)
		add := func(count int, title, text string) {
			var all []simple
			for range count {
				n, position = n+1, position+1
				all = append(all, simple{n: n, position: position, status: client.Active, title: title, text: text})
			}
			apply(t, x, stateAt(position), all...)
		}
		add(5, "альфа", "річ")
		add(5, "альфа бета", "річ")
		add(5, "інше", "альфа бета")
		q := search.Query{Text: "альфа", Sort: search.ByRelevance, Limit: 2}
		got := map[string]bool{}
		for page := mustSearch(t, x, q); ; page = mustSearch(t, x, q) {
			for _, hit := range page.Hits {
				got[hit.ID] = true
			}
			if page.Next == nil {
				break
			}
			q.After = parsed(t, page.Next)
			add(len(got)*len(got), c.title, c.text)
		}
		for i := range 15 {
			expect.ErrorIf(t, !got[idOf(i+1)], "%s: got no asset %d on any page, want it", c.name, i+1)
		}
		expect.OK(t, x.Close())
	}
}

// TestPagesLeadBackWhileTheRegistryChanges reads the pages to the last one and back, in each order. Between two
// pages, assets are added, changed and deleted. Each asset that did not change must be on a page on the way
// back.
// Promises: search-back
func TestPagesLeadBackWhileTheRegistryChanges(t *testing.T) {
	const still, limit = 31, 5 // still: number of assets that do not change
	for _, sort := range search.Sorts {
		t.Run(string(sort), func(t *testing.T) {
			x, position := openIndex(t, t.TempDir()), int64(1_000_000)
			put := func(status client.Status, numbers ...int) {
				var all []simple
				for _, n := range numbers {
					position++
					all = append(all, simple{n: n, position: position, published: int64(1 + n%7*1000), status: status, title: "альфа",
						text: "бета", code: codes[0], regions: []string{regions[0]}, quantities: []int{n % 6}, units: []string{"MTK"}})
				}
				apply(t, x, stateAt(position), all...)
			}
			first := make([]int, 2*still) // only assets with even numbers change later
			for i := range first {
				first[i] = i + 1
			}
			put(client.Active, first[:still]...)
			put(client.Active, first[still:]...)
			q := search.Query{Sort: sort, Limit: limit, Exact: true}
			if sort == search.ByRelevance {
				q.Text = "альфа"
			}
			page := mustSearch(t, x, q)
			for page.Next != nil {
				q.After = parsed(t, page.Next)
				page = mustSearch(t, x, q)
			}
			seen, next := map[string]bool{}, 3*still
			for round := 0; ; round++ {
				for _, hit := range page.Hits {
					seen[hit.ID] = true
				}
				if page.Prev == nil {
					break
				}
				if round < still { // one asset changes, one is deleted and one is added
					put(client.Active, 2*round+2)
					put(client.Deleted, 2*(round+5)%(2*still)+2)
					next++
					put(client.Active, next)
				}
				q.After = parsed(t, page.Prev)
				before := page.Before
				if page = mustSearch(t, x, q); page.Before > max(0, before+2-limit) {
					t.Fatalf("got %d assets before a page after one with %d, want at most two more without the page's", page.Before, before)
				}
			}
			for n := 1; n <= 2*still; n += 2 {
				expect.ErrorIf(t, !seen[idOf(n)], "got no asset %d on the way back, want it", n)
			}
			if page.Before != 0 || len(page.Hits) != limit {
				t.Errorf("got %d assets before the first page and %d on it, want 0 and %d", page.Before, len(page.Hits), limit)
			}
			expect.OK(t, x.Close())
		})
	}
}

// TestAnEmptyPageLeadsBack deletes the assets after the second page. The page before the empty third page must
// be the second one.
// Promises: search-back
func TestAnEmptyPageLeadsBack(t *testing.T) {
	for _, sort := range []search.Sort{search.NewestFirst, search.SmallestFirst} {
		x := openIndex(t, t.TempDir())
		for n := range 14 {
			apply(t, x, stateAt(int64(n+1)), simple{n: n, position: int64(n + 1), status: client.Active})
		}
		q := search.Query{Sort: sort, Limit: 5}
		q.After = parsed(t, mustSearch(t, x, q).Next)
		second := mustSearch(t, x, q)
		q.After = parsed(t, second.Next)
		for i, hit := range mustSearch(t, x, q).Hits {
			n := expect.Get(strconv.ParseInt(hit.ID, 16, 64))(t)
			apply(t, x, stateAt(int64(i+20)), simple{n: int(n), position: int64(i + 20), status: client.Deleted})
		}
		empty := mustSearch(t, x, q)
		if len(empty.Hits) > 0 || empty.Before != 10 || empty.Next != nil {
			t.Fatalf("got %d assets after %d and %v, want an empty page after 10", len(empty.Hits), empty.Before, empty.Next)
		}
		q.After = parsed(t, empty.Prev)
		expect.NoDiff(t, gocmp.Diff(second.Hits, mustSearch(t, x, q).Hits),
			"%s: the page before the empty one differs", sort)
		expect.OK(t, x.Close())
	}
}
