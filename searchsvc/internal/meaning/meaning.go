// Package meaning guesses what people mean with a question that finds nothing. It has the second tries
// (docs/search.md, "Second tries"). Each try is a function that changes the words of the question. The interface
// Vocabulary tells the package which words the assets have.
package meaning

import (
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/ukrainian"
)

// Vocabulary has the words of the assets.
type Vocabulary interface {
	// Has reports whether an asset has at least one of the keys.
	Has(keys []string) bool
	// IsValue reports whether a word is a value of a filter.
	IsValue(word string) bool
	// IsPlace reports whether some asset is in a place whose name is one word with one of these keys.
	IsPlace(keys []string) bool
	// Near returns the keys that differ from a key by at most the given number of letters, the best key first.
	Near(key string, letters int) []string
	// Begins returns at most the given number of keys that begin with a text.
	Begins(beginning string, most int) []string
	// HasID reports whether the id of an asset begins with a text.
	HasID(beginning string) bool
	// HasCode reports whether the code of property of an asset begins with a text.
	HasCode(beginning string) bool
	// Said returns a word with a key as texts write it, in the form nearest to another word; "" if it finds none.
	Said(key, like string) string
	// IsSpent reports whether the work for one question is done. After that, the vocabulary finds nothing.
	IsSpent() bool
}

// Finds reports whether a reading finds an asset. It spends work, too.
type Finds func(search.Reading) (bool, error)

// step is a second try of a question that found nothing. It changes the words of the question, and reports
// whether it changed any.
type step struct {
	name search.Step
	try  func(*question) bool
}

// steps lists the steps in the order in which Read tries them. Each step keeps less of the question's meaning than
// the step before it.
var steps = []step{
	{search.BySmall, (*question).leaveOutSmall},
	{search.BySynonym, (*question).replaceUnknown},
	{search.ByLayout, (*question).swapLayout},
	{search.ByCode, (*question).readCodes},
	{search.BySpelling, (*question).respell},
	{search.BySynonym, (*question).addSynonyms},
	{search.ByPrefix, (*question).complete},
	{search.ByNearest, (*question).correct},
	{search.ByKnown, (*question).leaveOutUnknown},
	{search.ByMissing, (*question).letOneMiss},
}

// Read changes the words of a question step by step until the question finds something. It undoes a step after which
// no word decides. If nothing helps, ok is false and r is the reading after the last step. If the work is done before,
// r has the step search.Stopped and the words as they were asked. Read calls `finds` at most three times, because few
// steps change a question whose words are all known.
func Read(text string, synonyms *Synonyms, v Vocabulary, finds Finds) (r search.Reading, ok bool, err error) {
	q := newQuestion(text, synonyms, v)
	if q.isExact || len(q.words) == 0 {
		return q.reading(), false, nil
	}
	asked := slices.Clone(q.words)
	for _, s := range steps {
		before := slices.Clone(q.words)
		isChanged := s.try(q)
		switch {
		case v.IsSpent():
			return q.stopped(asked), false, nil
		case !isChanged:
			continue
		case !q.decides():
			q.words = before
			continue
		}
		if !slices.Contains(q.steps, s.name) {
			q.steps = append(q.steps, s.name)
		}
		if !q.isKnown() {
			continue
		}
		if ok, err := finds(q.reading()); ok || err != nil {
			return q.reading(), ok, err
		}
		if v.IsSpent() {
			return q.stopped(asked), false, nil
		}
	}
	return q.reading(), false, nil
}

// Also returns a reading of a question that finds something: an asset needs a word, or one of the same meaning. The
// reading has no steps if there are no such words. If the work is done before, it has the step search.Stopped.
func Also(text string, synonyms *Synonyms, v Vocabulary) search.Reading {
	q := newQuestion(text, synonyms, v)
	asked := slices.Clone(q.words)
	if !q.isExact && q.addSynonyms() {
		q.steps = []search.Step{search.ByAlso}
	}
	if v.IsSpent() {
		return q.stopped(asked)
	}
	return q.reading()
}

// stopped returns the reading of a question whose tries cost too much: its words as they were asked.
func (q *question) stopped(asked []word) search.Reading {
	q.words, q.steps = asked, []search.Step{search.Stopped}
	return q.reading()
}

// question is a question after the steps that were applied so far.
type question struct {
	words    []word
	steps    []search.Step
	isExact  bool // the whole question is in quotes
	synonyms *Synonyms
	v        Vocabulary
}

// word is a word of a question.
type word struct {
	search.Word
	token   string   // text between two blanks; the word is a part of it
	keys    []string // keys of the word as it was asked
	isCode  bool     // it has a digit, or is a Roman numeral
	isFixed bool     // never left out, replaced or made optional
	isName  bool     // it looks like the name of a place: only its spelling may be changed
	isSmall bool
	isGuess bool // it was replaced by a word that looks similar
	isKnown bool // an asset has the word, or has its replacement
}

func newQuestion(text string, synonyms *Synonyms, v Vocabulary) *question {
	q := &question{synonyms: synonyms, v: v}
	text = strings.TrimSpace(text)
	q.isExact = isQuoted(text)
	left := 0 // tokens that remain of the current phrase in quotes
	tokens := ukrainian.Tokens(text)
	var asked []ukrainian.Asked
	for i, token := range tokens {
		if left--; strings.HasPrefix(token, `"`) {
			left = max(left, phraseLength(tokens[i:]))
		}
		for _, a := range ukrainian.Ask(token) {
			q.words, asked = append(q.words, q.newWord(token, a, left > 0)), append(asked, a)
		}
	}
	q.fixNames()
	for i, key := range ukrainian.Former(asked, nil) {
		if w := &q.words[i]; v.Has([]string{key}) {
			w.By, w.Said, w.isKnown, w.isFixed = []string{search.Key + key}, w.Text, true, true
		}
	}
	return q
}

// phraseLength returns the number of the tokens from a quotation mark to the next one; 0 if there is no other one.
func phraseLength(tokens []string) int {
	for i, token := range tokens {
		if token = strings.TrimRight(token, ".,:;!?)"); strings.HasSuffix(token, `"`) && (i > 0 || len(token) > 1) {
			return i + 1
		}
	}
	return 0
}

func isQuoted(text string) bool {
	for _, marks := range [][2]string{{`"`, `"`}, {"«", "»"}, {"“", "”"}, {"„", "“"}} {
		inner, ok := strings.CutPrefix(text, marks[0])
		if inner, ok2 := strings.CutSuffix(inner, marks[1]); ok && ok2 && !strings.ContainsAny(inner, `"«»“”`) {
			return true
		}
	}
	return false
}

func (q *question) newWord(token string, a ukrainian.Asked, quoted bool) word {
	w := word{
		Word: search.Word{Text: a.Text}, token: token, keys: a.Keys, isKnown: a.IsIn(q.v.Has),
		isCode: a.HasDigit && !a.IsUnit || isRoman(a.Text),
	}
	w.isSmall = isSmall(a)
	w.isFixed = quoted || w.isCode || !w.isSmall && q.isPlaceOrValue(a)
	w.isName = !w.isSmall && looksLikeTown(a.Text)
	return w
}

// isRoman reports whether a word is a Roman numeral, which counts as a number.
func isRoman(text string) bool { return len(text) > 1 && strings.Trim(text, "ivxіх") == "" }

func (q *question) isPlaceOrValue(a ukrainian.Asked) bool {
	return isTown(a) || q.v.IsValue(a.Text) || q.v.IsPlace(a.Keys)
}

// fixNames sets isFixed for the words of places whose names have two words. The word for a district is small.
func (q *question) fixNames() {
	for i := range len(q.words) - 1 {
		a, b := &q.words[i], &q.words[i+1]
		if isTownOfTwo(a.keys, b.keys) {
			a.isFixed, b.isFixed = true, b.isFixed || !b.isSmall
		}
	}
}

// isKnown reports whether assets have all words that are not left out.
func (q *question) isKnown() bool {
	for _, w := range q.words {
		if !w.Out && !w.isKnown {
			return false
		}
	}
	return true
}

// decides reports whether the question has a word that tells what it means. Without one, it would find all assets, or
// all that somebody sells.
func (q *question) decides() bool {
	return slices.ContainsFunc(q.words, func(w word) bool { return !w.Out && !w.isSmall })
}

func (q *question) reading() search.Reading {
	r := search.Reading{Steps: q.steps}
	for _, w := range q.words {
		w.Fixed = w.isFixed || w.isName
		w.Text, w.Said = ukrainian.Cut(w.Text, search.MaxPhrase), ukrainian.Cut(w.Said, search.MaxPhrase)
		r.Words = append(r.Words, w.Word)
		r.Unknown = r.Unknown || !w.Out && !w.isKnown
	}
	return r
}

// The method `each` calls the function `try` for the words that no asset has and that may still change. If the
// argument `names` is false, it skips names of places.
func (q *question) each(names bool, try func(w *word) bool) (changed bool) {
	for i := range q.words {
		if w := &q.words[i]; !w.Out && !w.isKnown && !w.isFixed && (names || !w.isName) && !q.v.IsSpent() {
			changed = try(w) || changed
		}
	}
	return changed
}

// replace replaces a word by the phrases in the argument `by`. An asset needs only one of these phrases. People see
// the text `said` in place of the word. If this text has only small words, it is left out.
func (q *question) replace(w *word, said string, by ...string) bool {
	w.By, w.Said, w.isKnown = by, said, true
	w.isSmall = areSmall(said)
	w.Out = w.isSmall
	for _, a := range ukrainian.Ask(said) {
		w.isFixed = w.isFixed || q.isPlaceOrValue(a)
	}
	return true
}

// The method `has` reports whether assets have each word of a text.
func (q *question) has(text string) bool {
	asked := ukrainian.Ask(text)
	for _, a := range asked {
		if !a.IsIn(q.v.Has) {
			return false
		}
	}
	return len(asked) > 0
}

// smallWords do not decide what a question means: prepositions, words about buying and selling, kinds of streets
// and places, and words before numbers. They are in their normal form.
var smallWords = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(smallList) {
		set[word] = true
	}
	return set
}()

//go:embed small.txt
var smallList string

// isSmall reports whether a word is a unit, one of smallWords, or a single letter, such as the letter of a house.
func isSmall(a ukrainian.Asked) bool {
	return a.IsUnit || !a.HasDigit && (smallWords[a.Text] || utf8.RuneCountInString(a.Text) == 1)
}

// areSmall reports whether a text has only small words.
func areSmall(text string) bool {
	return !slices.ContainsFunc(ukrainian.Ask(text), func(a ukrainian.Asked) bool { return !isSmall(a) })
}
