package index

import (
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
)

// TestPagesLoseNothingWhenCountsChange reads pages by relevance while assets come, so that a word
// becomes rarer and then common. Each asset of the first moment is on a page.
func TestPagesLoseNothingWhenCountsChange(t *testing.T) {
	for _, c := range []struct {
		name, title string
		text        string
	}{
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
			parsed, err := search.ParseCursor(page.Next.String())
			if err != nil {
				t.Fatalf("%s: the cursor %s: %v", c.name, page.Next, err)
			}
			q.After = &parsed
			add(len(got)*len(got), c.title, c.text)
		}
		for i := range 15 {
			if !got[idOf(i+1)] {
				t.Errorf("%s: got no asset %d on any page, want it", c.name, i+1)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
