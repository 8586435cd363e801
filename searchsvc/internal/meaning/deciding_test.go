package meaning

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// smallTexts is a vocabulary with all small words, all single letters and some words that decide. A step may
// replace a word by a small word or a letter, although these tell nothing.
func smallTexts() dictionary {
	words := texts + " джип а б в г д е ж з к л м н о п р с т у ф a b c d e f g h i j k l m n o p r s t u v w x y z"
	for small := range smallWords {
		words += " " + small
	}
	return newDictionary(words)
}

// verifyDecides fails if a reading has no word that decides.
func verifyDecides(t *testing.T, text string, r search.Reading) {
	t.Helper()
	if r.Has(search.ByMissing) && slices.ContainsFunc(r.Words, func(w search.Word) bool {
		return !w.Out && !w.Fixed && len(w.By) == 0 && areSmall(w.Text)
	}) {
		t.Errorf("%q: got the words %+v, of which some may be missing, want each to decide", text, r.Words)
	}
	decides := slices.ContainsFunc(r.Words, func(w search.Word) bool {
		if w.Out {
			return false
		}
		said := w.Text
		if len(w.By) > 0 {
			said = strings.TrimLeft(w.Said, search.Key+search.Beginning)
		}
		return !areSmall(said)
	})
	if !decides {
		t.Errorf("%q: got the words %+v by %v, want one that decides", text, r.Words, r.Steps)
	}
}

// TestEachStepKeepsAWordThatDecides asks questions that find nothing, with each subset of the steps. Without a word that
// decides, a question finds all assets, or all with a word such as "buy". The questions are small words, their
// misspelled and retyped forms, and words of random letters, alone and beside others.
// Promises: deciding-words
func TestEachStepKeepsAWordThatDecides(t *testing.T) {
	all := steps
	defer func() { steps = all }()
	synonyms, vocabulary := mustSynonyms(t), smallTexts()
	ask := func(text string) {
		r, ok, err := Read(text, synonyms, vocabulary, func(r search.Reading) (bool, error) {
			verifyDecides(t, text, r)
			return false, nil
		})
		expect.ErrorIf(t, ok || err != nil, "%q: got %t, %v, want nothing found", text, ok, err)
		if r.IsAnother() {
			verifyDecides(t, text, r)
		}
	}
	questions := strings.Split("джиб|біб|л|d|yf|прадаж|прадажу куплю|купити|Kypyty|ghjlfv|ghjlfv d|неру|ащк іфдук|на продаж|"+
		"джиб обід|\"на\" джиб|біб Київ|джиб 145|прадаж гараж|вулеця|мiсто|sale|prodazh|м.кв|кв.м|тйцу нфв|ц у к", "|")
	for small := range smallWords {
		if other := otherLayout(small); other != "" {
			questions = append(questions, other, other+" "+small)
		}
		letters := []rune(small)
		questions = append(questions, string(letters[1:])+"ж", small+"ж", "ж"+small+" "+small)
	}
	for subset := range 1 << len(all) {
		steps = nil
		for i, s := range all {
			if subset&(1<<i) != 0 {
				steps = append(steps, s)
			}
		}
		some := questions[:14]
		if subset == 1<<len(all)-1 {
			some = questions
		}
		for _, text := range some {
			ask(text)
		}
	}
	letters, r := []rune(cyrillicKeys), rand.New(rand.NewPCG(62, 3))
	for range 2_000 {
		text := make([]rune, 2+r.IntN(4))
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
		}
		ask(string(text))
	}
}

// TestAWordIsReplacedOnlyByWordsThatTell has words whose keys write single letters in the other layout. They must stay.
func TestAWordIsReplacedOnlyByWordsThatTell(t *testing.T) {
	vocabulary := smallTexts()
	for text, want := range map[string]string{
		"джиб ufhf;": "джип гараж", "d ufhf;": "гараж", "yf ghjlf;e ufhf;": "гараж", "lj ексковатор": "lj екскаватор",
		"прадаж гараж": "гараж", "lj": "lj",
	} {
		r, _, err := Read(text, &Synonyms{}, vocabulary, func(r search.Reading) (bool, error) {
			return strings.Join(r.Used(), " ") == want, nil
		})
		if got := strings.Join(r.Used(), " "); err != nil || got != want {
			t.Errorf("%q: got %q by %v, %v; want %q", text, got, r.Steps, err, want)
		}
	}
}
