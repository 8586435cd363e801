package site

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/ukrainian"
)

// wordForm matches a word of a text. Signs inside a word or a number belong to it.
var wordForm = regexp.MustCompile(letters + "(?:" + within + letters + ")*")

// letters matches letters and digits, and the signs inside decimals and fractions.
const letters = "(?:\\d+[.,/])*[\\p{L}\\p{N}\\p{M}]+"

// within matches a sign that may stand between two letters of a word. Most of these signs are invisible.
const within = "['’ʼ`\\-\\x{AD}\\x{200B}-\\x{200F}\\x{2060}\\x{FEFF}]"

// mostLine is the number of characters of a description that a hit shows around a found word.
const mostLine = 160

// piece is a part of a text that a hit shows.
type piece struct {
	Text    string
	IsFound bool // the piece is a word that the search has found
}

// foundWords finds the words of a question in the texts of hits. The zero value finds no words.
type foundWords struct {
	keys       map[string]bool
	beginnings []string // beginnings of keys
}

// newFoundWords returns the words of a question as the search has read them.
func newFoundWords(text string, r search.Reading) foundWords {
	f := foundWords{keys: map[string]bool{}}
	if len(r.Words) == 0 {
		f.add(text)
	}
	for _, w := range r.Words {
		switch {
		case w.Out:
		case len(w.By) == 0:
			f.add(w.Text)
		default:
			for _, phrase := range w.By {
				f.addPhrase(phrase)
			}
		}
	}
	return f
}

// addPhrase adds an element of search.Word.By: a key, the beginning of a key, or a text. It ignores ids and codes,
// because the texts of a hit do not contain them.
func (f *foundWords) addPhrase(text string) {
	if key, ok := strings.CutPrefix(text, search.Key); ok {
		f.keys[key] = true
	} else if beginning, ok := strings.CutPrefix(text, search.Beginning); ok {
		f.beginnings = append(f.beginnings, beginning)
	} else if !strings.HasPrefix(text, search.ID) && !strings.HasPrefix(text, search.Code) {
		f.add(text)
	}
}

func (f *foundWords) add(text string) {
	for _, a := range ukrainian.Ask(text) {
		if !a.HasDigit && utf8.RuneCountInString(a.Text) < 2 { // such as a preposition
			continue
		}
		for _, key := range slices.Concat(append(a.Apart, a.Keys)...) {
			f.keys[key] = true
		}
	}
}

func (f *foundWords) has(word string) (has bool) {
	ukrainian.Each(word, utf8.RuneCountInString(word), func(key string) {
		has = has || f.keys[key]
		for _, beginning := range f.beginnings {
			has = has || strings.HasPrefix(key, beginning)
		}
	})
	return has
}

// The method `in` splits a text into pieces. Each found word is one piece.
func (f *foundWords) in(text string) (pieces []piece) {
	plain := 0 // start of the text that is not in a piece yet
	for from, until := f.next(text, 0); from < until; from, until = f.next(text, until) {
		if plain < from {
			pieces = append(pieces, piece{Text: text[plain:from]})
		}
		pieces, plain = append(pieces, piece{text[from:until], true}), until
	}
	if plain < len(text) {
		pieces = append(pieces, piece{Text: text[plain:]})
	}
	return pieces
}

// The method `next` returns where the next found word of a text begins and ends. It starts at the index `after`. Both
// results are 0 if no found word follows.
func (f *foundWords) next(text string, after int) (from, until int) {
	if len(f.keys) == 0 && len(f.beginnings) == 0 {
		return 0, 0
	}
	for at := wordForm.FindStringIndex(text[after:]); at != nil; at = wordForm.FindStringIndex(text[after:]) {
		from, until = after+at[0], after+at[1]
		if f.has(text[from:until]) {
			return from, until
		}
		after = until
	}
	return 0, 0
}

// line returns the part of a text around its first found word. It is nil if the text has no found word.
func (f *foundWords) line(text string) []piece {
	text = strings.Join(strings.Fields(text), " ")
	from, until := f.next(text, 0)
	if from == until {
		return nil
	}
	return f.in(clip(text, from))
}

// clip returns at most mostLine characters of a text. The result starts a little before the given place, and
// has whole words as far as possible. An ellipsis stands for each part that is left out.
func clip(text string, at int) string {
	from := at
	for n := 0; from > 0 && n < mostLine/4; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:from])
		from -= size
	}
	if space := strings.IndexByte(text[from:at], ' '); from > 0 && space >= 0 {
		from += space + 1
	}
	clipped := codenames.Cut(text[from:], mostLine)
	if from > 0 {
		clipped = "… " + clipped
	}
	return clipped
}
