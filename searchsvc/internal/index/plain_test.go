package index

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

const compared = 20_000 // assets of the comparison

// comparedAssets returns the assets of the comparison. Searches can find each of them.
func comparedAssets() []simple {
	r := rand.New(rand.NewPCG(1, 1))
	var all []simple
	for i := range compared {
		s := random(r, i, int64(i+1))
		s.test, s.status = false, []client.Status{client.Pending, client.Active, client.Complete}[i%3]
		s.custodian = fmt.Sprintf("%08d", r.IntN(500))
		all = append(all, s)
	}
	return all
}

// comparedQueries are questions with five facets each.
var comparedQueries = []struct{ name, text string }{
	{"all", ""}, {"a word", "альфа"}, {"two words", "альфа бета"},
}

// BenchmarkFacets compares searches with five facets in this package with the same searches in plain bleve, on
// the same assets (docs/search.md, "A search").
func BenchmarkFacets(b *testing.B) {
	plain, x := plainIndex(b), openIndex(b, b.TempDir())
	defer x.Close()
	apply(b, x, stateAt(compared), comparedAssets()...)
	verifyCounts(b, plain, x)
	for _, c := range comparedQueries {
		b.Run("ours/"+c.name, func(b *testing.B) {
			for b.Loop() {
				mustSearch(b, x, ourQuery(c.text))
			}
		})
		b.Run("plain bleve/"+c.name, func(b *testing.B) {
			for b.Loop() {
				expect.Get(plain.SearchInContext(b.Context(), plainRequest(c.text)))(b)
			}
		})
	}
}

func ourQuery(text string) search.Query {
	return search.Query{
		Text: text, Sort: search.NewestFirst, Limit: search.DefaultLimit, Facets: []search.FacetName{
			search.ByStatus, search.ByRegion, search.ByMonth, search.ByClassification, search.ByCustodian,
		},
	}
}

// plainIndex returns an index of bleve with the assets of the comparison.
func plainIndex(tb testing.TB) bleve.Index {
	tb.Helper()
	mapping := bleve.NewIndexMapping()
	mapping.DefaultAnalyzer = keyword.Name
	words := bleve.NewTextFieldMapping()
	words.Analyzer = "standard"
	mapping.DefaultMapping.AddFieldMappingsAt("words", words)
	x := expect.Get(bleve.New(tb.TempDir()+"/plain", mapping))(tb)
	tb.Cleanup(func() {
		expect.Nil(tb, x.Close(), "close")
	})
	batch := x.NewBatch()
	for i, s := range comparedAssets() {
		month := ""
		if s.published != 0 {
			month = time.UnixMicro(s.published).UTC().Format("2006-01")
		}
		err := batch.Index(idOf(s.n), map[string]any{
			"words": s.title + " " + s.text, "status": string(s.status), "region": s.regions, "month": month,
			"classification": s.code[:2], "custodian": s.custodian, "position": float64(s.position),
		})
		if err == nil && i%batchSize == batchSize-1 {
			err = x.Batch(batch)
			batch.Reset()
		}
		expect.OK(tb, err)
	}
	return x
}

func plainRequest(text string) *bleve.SearchRequest {
	q := bleve.NewConjunctionQuery()
	for word := range strings.FieldsSeq(text) {
		m := bleve.NewMatchQuery(word)
		m.SetField("words")
		q.AddQuery(m)
	}
	request := bleve.NewSearchRequest(q)
	if text == "" {
		request = bleve.NewSearchRequest(bleve.NewMatchAllQuery())
	}
	request.Size = search.DefaultLimit
	request.SortBy([]string{"-position"})
	for _, name := range []string{"status", "region", "month", "classification", "custodian"} {
		request.AddFacet(name, bleve.NewFacetRequest(name, search.DefaultFacetLimit))
	}
	return request
}

// verifyCounts makes sure that the comparison is fair: both indexes must find and count the same number of
// assets.
func verifyCounts(b *testing.B, plain bleve.Index, x *Index) {
	b.Helper()
	for _, c := range comparedQueries {
		result := expect.Get(plain.SearchInContext(b.Context(), plainRequest(c.text)))(b)
		ours := mustSearch(b, x, ourQuery(c.text))
		if int64(result.Total) != ours.Total {
			b.Errorf("%s: bleve finds %d assets and we %d, want as many", c.name, result.Total, ours.Total)
		}
		for i, term := range result.Facets["status"].Terms.Terms() {
			if got := ours.Facets[0].Values[i]; got.Count != int64(term.Count) {
				b.Errorf("%s: bleve counts %d of %s and we %d of %s, want as many", c.name, term.Count, term.Term, got.Count, got.Value)
			}
		}
	}
}
