package index

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/nearest"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/ukrainian"
)

// wordsIn returns an index with an asset for each text. Every second asset has the text in its description only.
func wordsIn(t *testing.T, texts ...string) *Index {
	t.Helper()
	x := openIndex(t, t.TempDir())
	t.Cleanup(func() { _ = x.Close() })
	var assets []simple
	for n, text := range texts {
		s := simple{n: n + 1, position: 1e15 + int64(n), status: client.Active, title: text}
		if n%2 == 1 {
			s.title, s.text = "", text
		}
		assets = append(assets, s)
	}
	apply(t, x, stateAt(2e15), assets...)
	return x
}

// replacedBy returns the words that a question was corrected to.
func replacedBy(t *testing.T, x *Index, text string) (said []string) {
	t.Helper()
	for _, w := range mustSearch(t, x, search.Query{Text: text}).Reading.Replaced() {
		said = append(said, w.Said)
	}
	return said
}

// TestOneWrongLetterIsOne has an index of random words, and asks words that differ from them in some letters. A short
// word must be replaced by one that differs in one letter, counting swapped letters as one.
// Promises: one-letter
func TestOneWrongLetterIsOne(t *testing.T) {
	letters, r := []rune("бвгджзклмнпрстфхцчш"), rand.New(rand.NewPCG(62, 4))
	random := func() (word []rune) { // words of consonants have one key, which is the word
		for len(word) < 5 {
			if one := letters[r.IntN(len(letters))]; len(word) == 0 || word[len(word)-1] != one {
				word = append(word, one)
			}
		}
		return word
	}
	words := []string{"длгп", "вхід", "jabp"}
	for range 300 {
		words = append(words, string(random()))
	}
	x := wordsIn(t, words...)
	corrected := 0
	ask := func(text string) {
		if ukrainian.Words(text)[0][0] != text { // a double letter counts as one
			return
		}
		for _, said := range replacedBy(t, x, text) {
			if got := nearest.Distance(text, said); got != 1 {
				t.Errorf("%s: got %s, which differs by %d letters, want 1", text, said, got)
			}
			corrected++
		}
	}
	for _, text := range []string{"джип", "обід", "jeep"} {
		ask(text)
	}
	for _, word := range words[3:] {
		asked := []rune(word)
		at := r.IntN(len(asked) - 1)
		asked[at], asked[at+1] = asked[at+1], asked[at]
		ask(string(asked))
		asked[r.IntN(len(asked))] = letters[r.IntN(len(letters))]
		ask(string(asked))
	}
	expect.ErrorIf(t, corrected < len(words)/2, "got %d corrected words, want most of %d", corrected, len(words))
}

// TestPeopleAreShownWordsOfTexts misspells words that titles have, and words that only a description has. The words
// that people are shown must be words of the texts.
// Promises: one-letter
func TestPeopleAreShownWordsOfTexts(t *testing.T) {
	texts := []string{"Поточний ремонт", "вулиця в Умані, поточного року", "Подвір'я біля льоху", "сільськогосподарська техніка, книзі ґанку"}
	x := wordsIn(t, texts...)
	for text, want := range map[string]string{
		"потчний": "поточний", "поточнго": "поточного", "умаані": "умані", "падвіря": "подвір'я",
		"сільскогосподраська": "сільськогосподарська", "техніеа": "техніка", "ремотн": "ремонт", "tehnika": "техніка",
		"Umani": "умані",
	} {
		got := replacedBy(t, x, text)
		expect.ErrorIf(t, !slices.Equal(got, []string{want}), "%s: got %q, want %q", text, got, want)
	}
	x = wordsIn(t, "", strings.Repeat("слово ", maxShown)+"потаємне") // a hit does not show the end of a long text
	if got := mustSearch(t, x, search.Query{Text: "потаємрне"}); got.Total != 1 || got.Reading.Used()[0] != "потаємрне" {
		t.Errorf("got %d assets and the word %q, want one, and the word of the question", got.Total, got.Reading.Used())
	}
}
