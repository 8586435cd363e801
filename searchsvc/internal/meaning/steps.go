package meaning

import (
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/ukrainian"
)

// leaveOutSmall leaves out small words, units and phrases of buyers, if other words remain.
func (q *question) leaveOutSmall() (changed bool) {
	if !slices.ContainsFunc(q.words, func(w word) bool { return !w.isSmall }) {
		return false
	}
	for i := range q.words {
		if w := &q.words[i]; w.isSmall && !w.isFixed {
			w.Out, changed = true, true
		}
	}
	return changed
}

// swapLayout reads words that no asset has as if the keyboard had been in the other layout. If
// that makes words of some, it does so with all.
func (q *question) swapLayout() bool {
	if !q.swap(func(other string) bool { return q.has(other) }) {
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

// retyped returns the words of a text that somebody has typed as a token. Further tries may
// change them.
func (q *question) retyped(token, text string) (words []word) {
	for _, a := range ukrainian.Ask(text) {
		w := q.newWord(token, a, false)
		w.Text, w.By, w.Said, w.Out = token, []string{a.Text}, a.Text, w.isSmall
		words = append(words, w)
	}
	return words
}

// leastCode is the number of digits of a code of property from which its beginning is a code.
const leastCode = 4

// leastID is the number of characters of an id or a long code from which its beginning is enough.
const leastID = 8

// readCodes reads numbers as beginnings of ids and of codes of property, and models apart.
func (q *question) readCodes() (changed bool) {
	for i := range q.words {
		w := &q.words[i]
		if w.Out || w.isKnown || !w.isCode {
			continue
		}
		long := utf8.RuneCountInString(w.Text) >= leastID
		digits := strings.Trim(w.Text, "0123456789") == ""
		switch code := strings.TrimRight(w.Text, "0"); {
		case digits && len(w.Text) >= leastCode && len(w.Text) <= 8 && len(code) > 2 && q.v.HasCode(code):
			w.By, w.Said, w.isKnown, changed = []string{search.Code + code}, w.Text, true, true
		case long && q.v.HasID(w.Text):
			w.By, w.Said, w.isKnown, changed = []string{search.ID + w.Text}, w.Text, true, true
		case long && !digits && len(q.v.Begins(w.Text, 1)) > 0:
			w.By, w.Said, w.isKnown, changed = []string{search.Beginning + w.Text}, w.Text, true, true
		case !digits && !isRoman(w.Text):
			if apart := ukrainian.Apart(w.token); apart != "" && isTelling(apart) && q.has(apart) {
				w.By, w.Said, w.isKnown, changed = []string{apart}, apart, true, true
			}
		}
	}
	return changed
}

// isTelling tells whether the parts of a code say enough apart: one has three characters.
func isTelling(apart string) bool {
	return slices.ContainsFunc(strings.Fields(apart), func(part string) bool { return utf8.RuneCountInString(part) > 2 })
}

// respell reads words in the spelling of another language or in the other script.
func (q *question) respell() bool {
	return q.each(true, func(w *word) bool {
		for _, other := range spellings(w.current()) {
			if asked := ukrainian.Ask(other); len(asked) == 1 && (q.v.Has(asked[0].Keys) || isTown(asked[0])) {
				q.replace(w, other, other)
				w.isKnown = q.v.Has(asked[0].Keys)
				w.keys = asked[0].Keys
				return true
			}
		}
		return false
	})
}

// current returns the word as it was read so far.
func (w *word) current() string {
	if len(w.By) == 1 {
		return w.By[0]
	}
	return w.Text
}

// addSynonyms lets words of the same meaning do, as many as a reading may have.
func (q *question) addSynonyms() (changed bool) {
	phrases, letters := search.MaxOthers, search.MaxLetters // that are left
	for i := 0; i < len(q.words); i++ {
		if q.words[i].Out || q.words[i].isFixed {
			continue
		}
		others, length := q.synonyms.of(q.words[i:])
		var known []string
		for _, other := range others {
			if len(known) < mostSynonyms && q.has(other) {
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

const leastBeginning = 3 // letters of a word that may be the beginning of one

// complete reads words that no asset has as the beginnings of others. The last word is one as
// somebody types it; others have to be longer.
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

// mostCorrected is the number of words that are compared with all others.
const mostCorrected = 4

// correct reads words that no asset has as the nearest ones that assets have.
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
				return q.replace(w, q.said(w.current(), key, near[0]), search.Key+near[0])
			}
		}
		return false
	})
}

// said returns a word whose key was replaced, as people write it.
func (q *question) said(word, key, other string) string {
	if written := q.v.Said(other); written != "" {
		return written
	}
	if ending, ok := strings.CutPrefix(word, key); ok {
		return other + ending
	}
	return other
}

// leastTelling is the number of characters of a code that says enough alone.
const leastTelling = 5

// leaveOutUnknown leaves out words that no asset has, with those that it has guessed in vain, if
// words remain that are no places.
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

// letOneMiss lets one word be missing, if others remain that are no places.
func (q *question) letOneMiss() bool {
	free := 0
	for _, w := range q.words {
		if !w.Out && !w.isFixed && !w.isName {
			free++
		}
	}
	return free > 1
}
