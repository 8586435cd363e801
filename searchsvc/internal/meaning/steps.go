package meaning

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/ukrainian"
)

// leaveOutSmall leaves out units and smallWords.
func (q *question) leaveOutSmall() (changed bool) {
	for i := range q.words {
		if w := &q.words[i]; w.isSmall && !w.isFixed {
			w.Out, changed = true, true
		}
	}
	return changed
}

// swapLayout reads words that no asset has as if they were typed in the other layout of the keyboard. If assets
// have at least one of the new words, and it is not small, swapLayout replaces all of the old words. Otherwise it
// replaces none of them.
func (q *question) swapLayout() bool {
	if !q.swap(func(other string) bool { return !areSmall(other) && q.has(other) }) {
		return false
	}
	q.swap(func(string) bool { return true })
	return true
}

func (q *question) swap(isGood func(other string) bool) (changed bool) {
	var words []word
	for i := 0; i < len(q.words); {
		token, end, isKnown := q.words[i].token, i, true
		for ; end < len(q.words) && q.words[end].token == token; end++ {
			isKnown = isKnown && (q.words[end].isKnown || q.words[end].By != nil)
		}
		other := otherLayout(token)
		if areLetters(other) && !areLetters(token) { // "джиб" does not mean "l;b,"
			other = ""
		}
		if isKnown || other == "" || !isGood(other) {
			words = append(words, q.words[i:end]...)
		} else {
			words, changed = append(words, q.retyped(token, other)...), true
		}
		i = end
	}
	q.words = words
	return changed
}

// areLetters reports whether no word of a text has more than one letter.
func areLetters(text string) bool {
	isLong := func(a ukrainian.Asked) bool { return utf8.RuneCountInString(a.Text) > 1 }
	return !slices.ContainsFunc(ukrainian.Ask(text), isLong)
}

// retyped returns the words of the argument `text`, which is the argument `token` in the other layout of the
// keyboard. Later steps may change the words.
func (q *question) retyped(token, text string) (words []word) {
	for _, a := range ukrainian.Ask(text) {
		w := q.newWord(token, a, false)
		w.Text, w.By, w.Said, w.Out = token, []string{a.Text}, a.Text, w.isSmall
		words = append(words, w)
	}
	return words
}

// leastCode is the minimum number of digits of a word that is read as the beginning of a code of property.
const leastCode = 4

// leastID is the minimum number of characters of a word that is read as the beginning of an id or of a long code.
const leastID = 8

// leastPlot is the minimum number of digits of a word that is read as the beginning of a cadastral number.
const leastPlot = 12

// readCodes reads numbers as beginnings of ids or of codes of property, and splits the names of models into
// their parts.
func (q *question) readCodes() (changed bool) {
	for i := range q.words {
		w := &q.words[i]
		if w.Out || w.isKnown || !w.isCode {
			continue
		}
		key := w.keys[0]
		long := utf8.RuneCountInString(key) >= leastID
		digits := strings.Trim(key, "0123456789") == ""
		switch code := strings.TrimRight(key, "0"); {
		case digits && len(key) >= leastCode && len(key) <= 8 && len(code) > 2 && q.v.HasCode(code):
			w.By, w.Said, w.isKnown, changed = []string{search.Code + code}, w.Text, true, true
		case long && q.v.HasID(key):
			w.By, w.Said, w.isKnown, changed = []string{search.ID + key}, w.Text, true, true
		case (long && !digits || len(key) >= leastPlot) && len(q.v.Begins(key, 1)) > 0:
			w.By, w.Said, w.isKnown, changed = []string{search.Beginning + key}, w.Text, true, true
		case !digits && !isRoman(w.Text):
			if apart := ukrainian.Apart(w.token); apart != "" && isTelling(apart) && q.has(apart) {
				w.By, w.Said, w.isKnown, changed = []string{apart}, apart, true, true
			}
		}
	}
	return changed
}

// isTelling reports whether a code may be split into its parts: at least one part must have three or more
// characters.
func isTelling(apart string) bool {
	return slices.ContainsFunc(strings.Fields(apart), func(part string) bool { return utf8.RuneCountInString(part) > 2 })
}

// respell replaces words by their spelling in another language or in the other script.
func (q *question) respell() bool {
	return q.each(true, func(w *word) bool {
		for _, other := range spellings(w.current()) {
			if q.v.IsSpent() {
				return false
			}
			if asked := ukrainian.Ask(other); len(asked) == 1 && (q.v.Has(asked[0].Keys) || isTown(asked[0])) {
				w.keys = asked[0].Keys
				at := slices.IndexFunc(w.keys, func(key string) bool { return q.v.Has([]string{key}) })
				said := other
				if at >= 0 {
					said = q.said(other, w.keys[at])
				}
				q.replace(w, said, other)
				w.isKnown = at >= 0
				return true
			}
		}
		return false
	})
}

// current returns the replacement of the word, if a step has replaced it by one word. Otherwise it returns the
// word itself.
func (w *word) current() string {
	if len(w.By) == 1 {
		return w.By[0]
	}
	return w.Text
}

// replaceUnknown replaces phrases with a word that no asset has by phrases of the same meaning. So later steps do not
// spell such a word otherwise.
func (q *question) replaceUnknown() bool { return q.synonymise(true) }

// addSynonyms adds phrases of the same meaning to all words.
func (q *question) addSynonyms() bool { return q.synonymise(false) }

// synonymise adds phrases of the same meaning to words, up to the limits of a reading. If `unknown` is true, it leaves
// phrases alone whose words assets have.
func (q *question) synonymise(unknown bool) (changed bool) {
	phrases, letters := search.MaxOthers, search.MaxLetters // how many phrases and letters may still be added
	for _, w := range q.words {
		if len(w.By) > 1 {
			phrases, letters = phrases-len(w.By), letters-utf8.RuneCountInString(strings.Join(w.By, ""))
		}
	}
	for i := 0; i < len(q.words); i++ {
		if q.words[i].Out || q.words[i].isFixed || len(q.words[i].By) > 1 {
			continue
		}
		others, length := q.synonyms.of(q.words[i:])
		if length == 1 && q.words[i].isSmall {
			continue
		}
		var known []string
		for _, other := range others {
			if len(known) < mostSynonyms && !areSmall(other) && q.has(other) {
				known = append(known, other)
			}
		}
		if len(known) == 0 {
			continue
		}
		var own []string
		isKnown := true
		for n := range length {
			own = append(own, q.words[i+n].current())
			isKnown = isKnown && q.words[i+n].isKnown
		}
		if isKnown && unknown {
			continue
		}
		if isKnown {
			known = append(known, strings.Join(own, " "))
		}
		phrases, letters = phrases-len(known), letters-utf8.RuneCountInString(strings.Join(known, ""))
		if phrases < 0 || letters < 0 {
			return changed
		}
		for n := 1; n < length; n++ {
			q.words[i].Text += " " + q.words[i+n].Text
		}
		q.words = slices.Delete(q.words, i+1, i+length)
		q.words[i].By, q.words[i].Said, q.words[i].isKnown, changed = known, known[0], true, true
	}
	return changed
}

const leastBeginning = 3 // letters that a word needs to be read as a beginning

// complete reads words that no asset has as the beginnings of other words. The last word may be short, because
// somebody may still be typing it. The other words must have twice as many letters as the last word needs.
func (q *question) complete() bool {
	last := len(q.words) - 1
	for last > 0 && q.words[last].Out {
		last--
	}
	return q.each(false, func(w *word) bool {
		text := ukrainian.Beginning(w.current())
		least := leastBeginning
		if w != &q.words[last] {
			least = 2 * leastBeginning
		}
		if utf8.RuneCountInString(text) < least {
			return false
		}
		found := q.v.Begins(text, 1)
		if len(found) == 0 {
			return false
		}
		w.isGuess = true
		return q.replace(w, w.current()+"…", search.Beginning+text)
	})
}

// mostCorrected is the largest number of words of a question that are compared with all words of the assets.
const mostCorrected = 4

// correct replaces words that no asset has by the most similar words that assets have.
func (q *question) correct() bool {
	corrected := 0
	return q.each(false, func(w *word) bool {
		n := utf8.RuneCountInString(w.current())
		if n < 4 || corrected == mostCorrected {
			return false
		}
		corrected++
		letters := 1
		if n >= 8 {
			letters = 2
		}
		asked := ukrainian.Ask(w.current())
		if len(asked) != 1 {
			return false
		}
		for _, key := range nominal(asked[0].Keys) {
			if near := q.v.Near(key, letters); len(near) > 0 {
				w.isGuess = true
				return q.replace(w, q.said(w.current(), near[0]), search.Key+near[0])
			}
		}
		return false
	})
}

// said returns the word to show in place of a word whose key was replaced. If no text that people see has a word with
// the new key, it is the former name of a place, or the old word.
func (q *question) said(word, key string) string {
	return cmp.Or(q.v.Said(key, word), ukrainian.FormerName(key), word)
}

// leastTelling is the minimum number of characters of a code that may remain as the only word of a question.
const leastTelling = 5

// leaveOutUnknown leaves out words that no asset has, and words that were only guessed. It does so only if
// another word remains that assets have. The remaining word must not be just the name of a place or a short
// code.
func (q *question) leaveOutUnknown() (changed bool) {
	isLost := func(w word) bool {
		return !w.Out && !w.isFixed && (w.isGuess || !w.isKnown && !w.isName)
	}
	if !slices.ContainsFunc(q.words, func(w word) bool {
		return !w.Out && !isLost(w) && w.isKnown && (!w.isFixed || w.isCode && len(w.Text) >= leastTelling)
	}) {
		return false
	}
	for i := range q.words {
		if w := &q.words[i]; isLost(*w) {
			w.Out, w.By, w.Said, changed = true, nil, "", true
		}
	}
	return changed
}

// letOneMiss reports whether assets may lack one word of the question. They may if the question has at least two
// words that are neither left out, small nor fixed, and are not names of places.
func (q *question) letOneMiss() bool {
	free := 0
	for i := range q.words {
		w := &q.words[i]
		if w.isFixed = w.isFixed || w.isSmall; !w.Out && !w.isFixed && !w.isName {
			free++
		}
	}
	return free > 1
}
