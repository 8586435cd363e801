package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// TestAreasAreBounded has the quantities of brokers who want to be listed first, or to make sums overflow. The test
// follows the cursors of pages with one hit each. Areas that are too large or not positive must not count.
func TestAreasAreBounded(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	c := replica.Change{State: stateAt(100)}
	for n, items := range []string{
		strings.Repeat(`{"unit":{"code":"KMK"},"quantity":1000000,"classification":{"id":"04121000-2"}},`, 2000),
		`{"unit":{"code":"KMK"},"quantity":99999999999999999999999999999999999},`,
		`{"unit":{"code":"MTK"},"quantity":-5},{"unit":{"code":"HAR"},"quantity":"1e400"},{"unit":{"code":"MTK"}},`,
		`{"unit":{"code":"MTK"},"quantity":7,"classification":{"id":"none"}},{"unit":{"code":"H87"},"quantity":900},`,
		`{"unit":{"code":"MTK"},"quantity":0.0001,"classification":{"id":"04121000-2"}},`,
	} {
		text := fmt.Sprintf(`{"id":%q,"dateModified":%q,"status":"active","items":[%s]}`, idOf(n), stamp(int64(n+1)), strings.TrimSuffix(items, ","))
		c.Entries = append(c.Entries, replica.Entry{ID: idOf(n), Position: int64(n + 1), JSON: []byte(text)})
	}
	expect.OK(t, x.Apply(c))
	for sort, want := range map[search.Sort][]int{search.LargestFirst: {0, 3, 4, 2, 1}, search.SmallestFirst: {4, 3, 0, 1, 2}} {
		q, got := search.Query{Sort: sort, Limit: 1}, []int(nil)
		for range want {
			page := mustSearch(t, x, q)
			var n int
			fmt.Sscanf(page.Hits[0].ID, "%x", &n)
			got = append(got, n)
			if page.Next == nil {
				break
			}
			after := expect.Get(search.ParseCursor(page.Next.String()))(t)
			q.After = &after
		}
		expect.ErrorIf(t, !slices.Equal(got, want), "%s: got the assets %v, want %v", sort, got, want)
	}
}
