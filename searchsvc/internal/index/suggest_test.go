package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
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
	for n, title := range []string{"Склад", "Складу", "Склад цегляний", "Екскаватор", "Причіп складаний", "Toyota Corolla"} {
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
	if err != nil || len(got) > 0 {
		t.Errorf("got %v, %v without work, want none", got, err)
	}
}
