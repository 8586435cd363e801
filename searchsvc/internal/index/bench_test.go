package index

import (
	"math/rand/v2"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
)

// BenchmarkSearch searches in 100,000 assets with five facets.
func BenchmarkSearch(b *testing.B) {
	const assets, change = 100_000, 10_000
	x := openIndex(b, b.TempDir())
	defer x.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for n := 0; n < assets; n += change {
		var list []simple
		for i := range change {
			s := random(r, n+i, int64(n+i+1))
			s.test, s.status = false, client.Active
			list = append(list, s)
		}
		apply(b, x, stateAt(int64(n+change)), list...)
	}
	facets := []search.FacetName{
		search.ByStatus, search.ByRegion, search.ByMonth, search.ByClassification, search.ByCustodian,
	}
	from := 3.0
	for _, c := range []struct {
		name string
		q    search.Query
	}{
		{"all", search.Query{Sort: search.NewestFirst}},
		{"by publication", search.Query{Sort: search.LatestPublished}},
		{"a word", search.Query{Text: "альфа", Sort: search.ByRelevance}},
		{"two words", search.Query{Text: "альфа бета", Sort: search.ByRelevance}},
		{"a quantity", search.Query{
			Sort: search.NewestFirst, Filters: search.Filters{Quantity: search.Quantities{From: &from}},
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.q.Limit, c.q.Facets = search.DefaultLimit, facets
			b.ReportAllocs()
			for b.Loop() {
				mustSearch(b, x, c.q)
			}
		})
	}
}
