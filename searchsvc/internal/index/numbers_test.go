package index

import (
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// TestARunOfNumbersIsFoundEitherWay has texts in which a blank stands within a number or between two. Questions must find
// them, also beside a word that a second try corrects, and on the pages after the first.
// Promises: search-numbers
func TestARunOfNumbersIsFoundEitherWay(t *testing.T) {
	x := wordsIn(t, "Приміщення, буд. 5 100 м²", "Приміщення 5100 м²", "Приміщення, буд. 5, площа 100 м²", "Приміщення 51 м²")
	for question, want := range map[string]int64{
		"5 100": 3, "5100": 2, "5\u00a0100": 3, "5'100": 2, "5 100 м²": 3, "приміщення 5 100": 3, "премещення 5 100": 3,
		"приміщення продам 5 100": 3, "5 101": 0, "премещення 5 101": 0,
	} {
		q, found := search.Query{Text: question, Limit: 1, Sort: search.ByRelevance}, int64(0)
		for {
			r := mustSearch(t, x, q)
			expect.Equal(t, r.Total, want, "%q, assets", question)
			found += int64(len(r.Hits))
			if q.After = r.Next; r.Next == nil {
				break
			}
			c := expect.Get(search.ParseCursor(strings.Clone(r.Next.String())))(t)
			q.After = &c
		}
		expect.Equal(t, found, want, "%q, assets on all pages", question)
	}
}
