package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// suggest returns the suggestions for a question.
func suggest(t *testing.T, x *Index, q search.Query) []string {
	t.Helper()
	all, err := x.Suggest(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSuggestionsFindSomething begins each word of the list's titles, after no word and after each word of another
// title, with and without a filter. Each suggestion must find an asset in its words.
// Promises: suggestions
func TestSuggestionsFindSomething(t *testing.T) {
	x := openList(t)
	var titles [][]string
	for _, f := range lines(t, "assets.txt") {
		titles = append(titles, strings.Fields(f[1]))
	}
	given := 0
	for i, title := range titles {
		for n, last := range title {
			beginning := string([]rune(last)[:min(3, len([]rune(last)))])
			q := search.Query{Text: beginning}
			if other := titles[(i+n)%len(titles)]; n > 0 {
				q.Text = other[n%len(other)] + " " + beginning
			}
			if n%3 == 0 {
				q.Filters = q.Filters.With(search.ByStatus, []string{"active"})
			}
			for _, text := range suggest(t, x, q) {
				given++
				found := mustSearch(t, x, search.Query{Text: text, Filters: q.Filters})
				if found.Total == 0 || found.Reading.IsAnother() {
					t.Errorf("%q: got the suggestion %q, which finds %d by %v, want one that finds an asset in its words",
						q.Text, text, found.Total, found.Reading.Steps)
				}
			}
		}
	}
	if least := 2 * len(titles); given < least {
		t.Errorf("got %d suggestions, want at least %d", given, least)
	}
}

// TestSuggestionsReadTheWholeQuestion asks for suggestions with forms of a word, the wrong layout, places and filters.
// Promises: suggestions
func TestSuggestionsReadTheWholeQuestion(t *testing.T) {
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { _ = x.Close() })
	var all []simple
	for n, title := range []string{"Склад", "Складу", "Склад цегляний", "Екскаватор", "Причіп складаний", "Toyota Corolla", "Білизна", "Білизна"} {
		a := simple{n: n + 1, position: 1e15 + int64(n), status: client.Active, title: title, regions: []string{"Київ"}, units: []string{"MTK"}, quantities: []int{1}, custodian: fmt.Sprint(n)}
		if title == "Екскаватор" {
			a.status, a.regions = client.Complete, []string{"Біла Церква"}
		}
		all = append(all, a)
	}
	for n := range 2 * mostBegun { // more words with the same beginning than are kept
		all = append(all, simple{n: n + 100, position: 1e15 + int64(n) + 100, status: client.Active,
			title: fmt.Sprintf("Вагон ска%c%c", 'а'+n/16, 'а'+n%16)})
	}
	all = append(all, simple{n: 99, position: 1e15 + 99, status: client.Active, title: "Гараж скуб"})
	apply(t, x, stateAt(2e15), all...)
	inWork := search.Filters{}.With(search.ByStatus, []string{"active"})
	for _, c := range []struct {
		text    string
		filters search.Filters
		want    []string
	}{
		{"скл", search.Filters{}, []string{"склад", "складаний"}},
		{"crkf", search.Filters{}, []string{"склад", "складаний"}},
		{"склад wtu", search.Filters{}, []string{"склад цегляний"}},
		{"crkfl wtu", search.Filters{}, []string{"склад цегляний"}},
		{"ещнщ", search.Filters{}, []string{"toyota"}},
		{"екскаватор це", search.Filters{}, nil},
		{"екскаватор біла це", search.Filters{}, []string{"екскаватор Біла Церква"}},
		{"екск", search.Filters{}, []string{"екскаватор"}},
		{"біл", search.Filters{}, []string{"білизна", "Біла Церква"}}, // two assets before one
		{"екск", inWork, nil},
		{"цег", inWork, []string{"цегляний"}},
		{"гараж ск", search.Filters{}, []string{"гараж скуб"}},
		{"київ екс", search.Filters{}, nil},
		{`"склад цегл`, search.Filters{}, []string{`"склад цегляний`}},
	} {
		got := suggest(t, x, search.Query{Text: c.text, Filters: c.filters})
		if !slices.Equal(got, c.want) {
			t.Errorf("%q with %v: got %q, want %q", c.text, c.filters.Values, got, c.want)
		}
	}
	if got := suggest(t, x, search.Query{Text: "склад киї"}); !slices.Contains(got, "склад Київ") {
		t.Errorf("got %q for a word and a place, want %q among them", got, "склад Київ")
	}
	v := x.acquire()
	defer v.release()
	for work := int64(1); work < suggestWork; work *= 2 {
		words := &vocabulary{view: v, left: work}
		got, err := v.suggest(t.Context(), search.Query{Text: "склад цег"}, words)
		if err != nil || len(got) > 0 && words.IsSpent() || work < 100 && len(got) > 0 || work > suggestWork/2 && len(got) == 0 {
			t.Errorf("with the work %d: got %q, %v, spent %t; want suggestions only if the work suffices", work, got, err, words.IsSpent())
		}
	}
}

// TestSuggestionsAreInTheRanges asks with ranges of areas and of times, as filters and in words. A text is suggested only
// if one of its assets is in each range.
// Promises: suggestions
func TestSuggestionsAreInTheRanges(t *testing.T) {
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { _ = x.Close() })
	var all []simple
	for n, title := range slices.Repeat([]string{"склад цегляний", "склад цементний", "склад центральний"}, 400) {
		all = append(all, simple{n: n + 1, position: 1e15 + int64(n), published: int64(1+n%3) * 86400e6, status: client.Active, title: title,
			regions: []string{"Київ"}, units: []string{"MTK"}, quantities: []int{10 + 100*(n%3)}, custodian: fmt.Sprint(n % 3)})
	}
	all[1199].quantities[0] = 900 // one asset, behind more than are compared at a time
	apply(t, x, stateAt(2e15), all...)
	from, times := 150.0, search.Times{Until: time.UnixMicro(2 * 86400e6)}
	for _, c := range []struct {
		text    string
		filters search.Filters
		want    []string
	}{
		{"склад це", search.Filters{}, []string{"склад цегляний", "склад цементний", "склад центральний"}},
		{"склад це", search.Filters{Quantity: search.Quantities{From: &from}}, []string{"склад центральний"}},
		{"це", search.Filters{Published: times}, []string{"цегляний"}},
		{"склад до 50 м2 це", search.Filters{}, []string{"склад до 50 м2 цегляний"}},
		{"склад від 600 до 1000 м2 це", search.Filters{}, []string{"склад від 600 до 1000 м2 центральний"}},
		{"склад понад 1 га це", search.Filters{}, nil},
		{"склад понад 1 га", search.Filters{}, nil},
	} {
		got := suggest(t, x, search.Query{Text: c.text, Filters: c.filters})
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%q with %+v: got %q, want %q", c.text, c.filters, got, c.want)
		}
	}
}

// TestSuggestionsHaveABound asks for the dearest beginnings: of thousands of words that no asset has beside the words
// before, of assets that are in no range, and of a question with as many words as it may have. The work stays within its
// bound, and half of it remains to test what was found.
// Promises: suggestions
func TestSuggestionsHaveABound(t *testing.T) {
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { _ = x.Close() })
	all := []simple{{n: 1, position: 1e15, status: client.Active, title: "рідкісний скаал"}}
	for n := range 500 {
		var words []string
		for i := range 16 {
			words = append(words, fmt.Sprintf("ска%c%c%c", 'б'+n/25, 'а'+n%25, 'а'+i))
		}
		all = append(all, simple{n: n + 2, position: 1e15 + 1 + int64(n), status: client.Active, title: strings.Join(words, " "),
			regions: []string{"Київ"}, units: []string{"MTK"}, quantities: []int{1}, custodian: "1"})
	}
	apply(t, x, stateAt(2e15), all...)
	v := x.acquire()
	defer v.release()
	from := 1e6
	for _, c := range []struct {
		name, text string
		filters    search.Filters
		want       []string
	}{
		{"words of other assets", "рідкісний ска", search.Filters{}, []string{"рідкісний скаал"}},
		{"a range without assets", "ска", search.Filters{Quantity: search.Quantities{From: &from}}, nil},
		{"many words", strings.Repeat("скала ", 63) + "ска", search.Filters{}, nil},
		{"many names", strings.Repeat("ск ", 60) + "ки", search.Filters{}, nil},
	} {
		words := &vocabulary{view: v, left: suggestWork}
		got, err := v.suggest(t.Context(), search.Query{Text: c.text, Filters: c.filters}, words)
		expect.ErrorIf(t, err != nil || !slices.Equal(got, c.want), "%s: got %q, %v; want %q", c.name, got, err, c.want)
		t.Logf("%s: the work %d of %d", c.name, suggestWork-words.left, suggestWork)
	}
}

// TestOtherQuestionsFindSomething searches for what nobody has. The answer must have exactly the other questions that
// find something with the same filters, and none if no work is left.
func TestOtherQuestionsFindSomething(t *testing.T) {
	x := wordsIn(t, "Склад цегляний великий", "")
	ask := func(q search.Query) (texts []string) {
		q.Others = true
		for _, other := range mustSearch(t, x, q).Others {
			if found := mustSearch(t, x, other); found.Total == 0 {
				t.Errorf("%q: got the question %q, which finds nothing", q.Text, other.Text)
			}
			texts = append(texts, other.Text)
		}
		return texts
	}
	none := search.Filters{}.With(search.ByStatus, []string{"complete"})
	for _, c := range []struct {
		q    search.Query
		want []string
	}{
		{search.Query{Text: "склад 777", Exact: true}, []string{"склад"}},
		{search.Query{Text: "скалд", Exact: true}, []string{"скалд"}},
		{search.Query{Text: "склад 777 цегляний"}, []string{"склад цегляний"}},
		{search.Query{Text: "склад 777 888"}, nil},
		{search.Query{Text: "777"}, nil},
		{search.Query{Text: "склад 777", Filters: none}, nil},
		{search.Query{Text: "склад"}, nil},
	} {
		if got := ask(c.q); !slices.Equal(got, c.want) {
			t.Errorf("%q, exact %t: got the questions %q, want %q", c.q.Text, c.q.Exact, got, c.want)
		}
	}
	v := x.acquire()
	defer v.release()
	got, err := v.others(t.Context(), search.Query{Text: "склад 777"}, synonyms(t), &vocabulary{view: v, left: -1})
	expect.ErrorIf(t, err != nil || len(got) > 0, "got %v, %v without work, want none", got, err)
}
