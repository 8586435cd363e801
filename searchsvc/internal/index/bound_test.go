package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/replica"
	"asset-registry/shared/testing/expect"
)

// worst has the dearest question for each second try, made of random letters that no asset has.
func worst(r *rand.Rand) map[search.Step]string {
	some := func(letters string, length, words int) string {
		var all []string
		for range words {
			var word []rune
			for range length {
				word = append(word, []rune(letters)[r.IntN(len([]rune(letters)))])
			}
			all = append(all, string(word))
		}
		return strings.Join(all, " ")
	}
	const rare = "щґїфцхюєжшяч"
	return map[search.Step]string{
		search.BySmall: strings.Repeat("купити вул майно ", 21), search.ByLayout: some("[]';.,`qwz", 9, 55),
		search.ByCode: some("0123456789", 8, 60), search.BySpelling: some("aeiougxyc", 9, 60),
		search.BySynonym: strings.Repeat("АТ ", 64), search.ByPrefix: some(rare, 6, 60), search.ByNearest: some(rare, 38, 4) + some(rare, 12, 30),
		search.ByKnown: some(rare, 7, 30) + " слово слово", search.ByMissing: strings.Repeat("слово щось ", 30),
	}
}

// TestSecondTriesHaveABound asks the worst questions with all the work of a search, and with parts of it. A search must
// end when the work is done, and must say so. It must then find nothing, because half of the look-ups make wrong guesses.
// Promises: bounded-tries
func TestSecondTriesHaveABound(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 9))
	change := replica.Change{State: stateAt(2e15)}
	for n := range 400 { // rare words, near to those of the questions
		change.Entries = append(change.Entries, simple{n: n + 1, position: 1e15 + int64(n), status: "active",
			title: fmt.Sprintf("слово щ%cґї%cфцх%c %s", 'а'+n%32, 'а'+n/32, 'а'+n%11, worst(r)[search.ByPrefix])}.entry(t))
	}
	x := openIndex(t, t.TempDir())
	defer x.Close()
	expect.OK(t, x.Apply(change))
	v := x.acquire()
	defer v.release()
	synonyms, stopped := synonyms(t), map[search.Step]bool{}
	for step, text := range worst(r) {
		if len([]rune(text)) > search.MaxText {
			t.Fatalf("%s: got a question of %d characters, want one that a client may ask", step, len([]rune(text)))
		}
		for _, work := range []int64{0, 1_000, 20_000, 200_000, mostWork} {
			words := &vocabulary{view: v, left: work}
			last, ok, err := meaning.Read(text, synonyms, words, func(r search.Reading) (bool, error) {
				p := newPlan(search.Query{Text: text}, r)
				return words.spend(v.cost(&p)) && false, nil
			})
			if err != nil || words.err != nil {
				t.Fatal(err, words.err)
			}
			if got := last.Has(search.Stopped); got != words.IsSpent() || ok {
				t.Errorf("%s with the work %d: got stopped %t, found %t, want %t, not found", step, work, got, ok, words.IsSpent())
			}
			if words.IsSpent() {
				stopped[step] = true
				if len(last.Steps) != 1 || len(last.Replaced())+len(last.LeftOut()) > 0 {
					t.Errorf("%s: got the reading %+v of a search that was stopped, want the words as they were asked", step, last)
				}
			}
		}
	}
	for _, step := range search.Steps {
		if !slices.Contains([]search.Step{search.Stopped, search.BySmall, search.ByAlso}, step) && !stopped[step] {
			t.Errorf("%s: got no question that its work stops, want one", step)
		}
	}
}

// TestFurtherWordsHaveABound asks a question that finds something and has as many words with synonyms as it may have. The
// search for these ends when the work is done, says so, and keeps what it has found.
// Promises: bounded-tries
func TestFurtherWordsHaveABound(t *testing.T) {
	x := wordsIn(t, "АТ склад", "ПАТ склад")
	v := x.acquire()
	defer v.release()
	q := search.Query{Text: strings.Repeat("АТ ", 64), Also: true, Limit: 10}
	for work, want := range map[int64]search.Step{0: search.Stopped, 20_000: search.Stopped, mostWork: search.ByAlso} {
		words := &vocabulary{view: v, left: work}
		r, err := v.searchWith(t.Context(), q, synonyms(t), words)
		if err != nil || !r.Reading.Has(want) || want == search.Stopped && r.Total != 1 || words.IsSpent() != (want == search.Stopped) {
			t.Errorf("the work %d: got %d assets by %v, %v; want %s", work, r.Total, r.Reading.Steps, err, want)
		}
	}
}

// TestAStoppedSearchSaysSo searches with a question that costs more than all the work of a search.
// Promises: bounded-tries
func TestAStoppedSearchSaysSo(t *testing.T) {
	x := wordsIn(t, "слово")
	v := x.acquire()
	defer v.release()
	v.assets = 1e12 // so many assets that each try is too dear
	r, err := v.search(t.Context(), search.Query{Text: "слово купити", Limit: 10, Facets: []search.FacetName{search.ByStatus}}, &meaning.Synonyms{})
	if err != nil || r.Total != 0 || !slices.Equal(r.Reading.Steps, []search.Step{search.Stopped}) || len(r.Facets[0].Values) > 0 {
		t.Errorf("got %d assets by %v, %+v, %v; want none, and that the search was stopped", r.Total, r.Reading.Steps, r.Facets, err)
	}
}

// TestExportsAndFeedsOfDearQuestionsAreBounded asks the worst questions as an Atom feed and an export ask them, in their
// orders and page by page. Such a question ends after one page, with the work of one search. If a second try finds
// something, only the first page tries: further pages cost what they would without tries.
// Promises: bounded-tries
func TestExportsAndFeedsOfDearQuestionsAreBounded(t *testing.T) {
	x := wordsIn(t, slices.Repeat([]string{"приміщення складу"}, 60)...)
	v := x.acquire()
	defer v.release()
	for name, shape := range map[string]search.Query{
		"Atom": {Sort: search.NewestFirst, Limit: search.DefaultLimit}, "export": {Sort: search.ByRelevance, Limit: search.DefaultLimit},
	} {
		ask := func(q search.Query) search.Result {
			r, err := v.search(t.Context(), q, synonyms(t))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		for step, text := range worst(rand.New(rand.NewPCG(62, 10))) {
			q := shape
			q.Text = text
			if r := ask(q); r.Next != nil || r.Work > mostWork/automatonWork*letterWork {
				t.Errorf("%s, %s: got the next page %v and the work %d, want one page and at most %d",
					name, step, r.Next, r.Work, mostWork/automatonWork*letterWork)
			}
		}
		assets := v.assets
		v.assets = 1e12 // so many assets that each try is too dear
		q, plain := shape, shape
		q.Text = "приміщення купити"
		if r := ask(q); r.Total != 0 || !slices.Equal(r.Reading.Steps, []search.Step{search.Stopped}) {
			t.Errorf("%s: got %d assets by %v, want none, and that the search was stopped", name, r.Total, r.Reading.Steps)
		}
		v.assets = assets
		q.Text, plain.Text = "прміщення складу", "приміщення складу"
		for page := 1; ; page++ {
			r, want := ask(q), ask(plain)
			if r.Total != 60 || page == 1 && r.Work <= want.Work || page > 1 && r.Work != want.Work {
				t.Errorf("%s, page %d: got %d assets for the work %d, want 60, and the work %d from page 2 on", name, page, r.Total, r.Work, want.Work)
			}
			if q.After, plain.After = r.Next, want.Next; r.Next == nil || want.Next == nil {
				expect.ErrorIf(t, page != 3, "%s: got %d pages, want 3", name, page)
				break
			}
		}
	}
}
