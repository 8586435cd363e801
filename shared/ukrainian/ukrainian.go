// Package ukrainian makes the words of Ukrainian and English texts comparable
// (docs/search.md, "Words").
//
// A word has keys. If two words share a key, they count as forms of one word. If the ending of a Ukrainian form does
// not show to which word the form belongs, the form has several keys: "ніч" may belong to "ночі", "сіл" to "села".
package ukrainian

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Rules identifies the keys of words. An index with keys of other rules must be built anew. A test computes the value
// from samples.
const Rules = "0fc1a68d84aac118"

// maxWord is the maximum number of letters of a word. Further letters are dropped twice: before the characters of the
// word get their normal form, and after that.
const maxWord = 40

// maxCode is the maximum number of characters of a code.
const maxCode = 64

// Each calls the function `visit` with the keys of the words of a text, and returns the number of these words.
// It stops after the given number of words. A key may come several times.
func Each(text string, most int, visit func(key string)) (words int) {
	number := ""
	for w := range splitAll(text) {
		if words += w.count(); words > most {
			return most
		}
		if w.isCode {
			visit(w.text)
		}
		for _, part := range w.parts {
			for _, key := range known.keys(part) {
				visit(key)
			}
		}
		if number != "" && isLetterOfHouse(w.text) {
			visit(codeKey(number + w.text))
		}
		if number = ""; !w.isCode && len(w.text) < leadingZeros && hasDigit(w.text) {
			number = w.text
		}
	}
	return words
}

// isLetterOfHouse reports whether a word is one letter.
func isLetterOfHouse(word string) bool {
	return len(word) <= 2 && utf8.RuneCountInString(word) == 1 && hasLetter(word)
}

// Form is a word of a text.
type Form struct {
	Text string // the word in its normal form
	Key  string // the key that most forms of the word have
}

// Written returns at most the given number of words from the beginning of a text.
func Written(text string, most int) iter.Seq[Form] {
	return func(yield func(Form) bool) {
		words := 0
		for w := range splitAll(text) {
			forms := w.parts
			if w.isCode {
				forms = []string{w.written}
			}
			for _, form := range forms {
				if words++; words > most {
					return
				}
				found := Form{form, w.text}
				if !w.isCode {
					found.Key = slices.MinFunc(known.keys(form), func(a, b string) int { return len(a) - len(b) })
				}
				if !yield(found) {
					return
				}
			}
		}
	}
}

// Asked is a word of a question.
type Asked struct {
	Text     string     // the word in its normal form
	Keys     []string   // a text must have one of them
	Apart    [][]string // else a text must have one key of each of these words; nil: there are none
	HasDigit bool       // the word is a number or a code
	IsUnit   bool       // the word is a unit of a number
}

// IsIn reports whether texts have the word, or all its words apart. The function `has` reports whether they have one
// of a list of keys.
func (a Asked) IsIn(has func(keys []string) bool) bool {
	return has(a.Keys) ||
		a.Apart != nil && !slices.ContainsFunc(a.Apart, func(keys []string) bool { return !has(keys) })
}

// Ask returns the words of a question.
func Ask(text string) []Asked {
	var words []Asked
	for w := range split(asking(text)) {
		if w.isCode || w.run != nil {
			words = append(words, w.asked())
			continue
		}
		for _, part := range w.parts {
			words = append(words, Asked{
				Text: part, Keys: keys(part), HasDigit: hasDigit(part), IsUnit: isUnit(part),
			})
		}
	}
	return words
}

// asked returns the word of a question that a code, a run or a broken word is.
func (w word) asked() Asked {
	a := Asked{Text: w.written, Keys: []string{w.text}, HasDigit: w.isCode}
	if !w.isCode {
		a.Keys = keys(w.text)
	}
	for _, one := range w.run {
		if one.isCode {
			a.Apart = append(a.Apart, []string{one.text})
			continue
		}
		for _, part := range one.parts {
			a.Apart = append(a.Apart, keys(part))
		}
	}
	return a
}

// Words returns the keys of each word of a question. A text must have one key of each word, or the words of a run apart
// (Asked).
func Words(text string) [][]string {
	var words [][]string
	for _, word := range Ask(text) {
		words = append(words, word.Keys)
	}
	return words
}

// keys returns the keys of a word that normal has made. Keys have no soft signs, so a word that has only soft signs
// is its own key.
func keys(word string) []string {
	var found []string
	switch scriptOf(word) {
	case cyrillic:
		found = stems(word)
	case latin:
		found = []string{english(word)}
		if other, ok := lookAlike(word); ok {
			found = append(found, stems(other)...)
		}
	case otherScript:
		return []string{numberKey(word)}
	}
	found = slices.DeleteFunc(found, func(key string) bool { return key == "" })
	if len(found) == 0 {
		return []string{word}
	}
	return found
}

// word is a part of a text between blanks and marks.
type word struct {
	text   string   // the text in its normal form
	parts  []string // words within it, at least one
	isCode bool     // the text has letters and digits with signs between them; the whole text is then a word, too
	run    []word   // the fields of a run, which is a code without parts, or of a word with a sign as its apostrophe

	written string // the field from which the word was made
}

// count returns the number of words that w adds to a text: the number of its parts, and for a code one more.
func (w word) count() int {
	if w.isCode {
		return 1 + len(w.parts)
	}
	return len(w.parts)
}

// split returns the words of a text. Signs within codes, and apostrophes within words, are kept.
func split(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		for piece := range pieces(text) {
			for fields := fieldsOf(normal(piece)); len(fields) > 0; {
				n, key := runOf(fields)
				w := word{text: key, isCode: true}
				for _, f := range fields[:n] {
					w.run = append(w.run, newWord(f.text))
					w.written = strings.TrimPrefix(w.written+" "+f.text, " ")
				}
				if one, ok := broken(fields); ok {
					n, w = 2, one
				} else if n == 0 {
					n, w = 1, newWord(fields[0].text)
				}
				if fields = fields[n:]; len(w.parts)+len(w.run) > 0 && !yield(w) {
					return
				}
			}
		}
	}
}

// splitAll returns the words of a text, with the words of each run after it.
func splitAll(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		for w := range split(text) {
			if !yield(w) {
				return
			}
			for _, one := range w.run {
				if !yield(one) {
					return
				}
			}
		}
	}
}

// isBetween reports whether a rune stands between words.
func isBetween(r rune) bool { return !isPart(r) && !isInner(r) }

// newWord returns the word in a field, which is text between blanks and marks. If the field has only signs, the
// word has no parts.
func newWord(field string) word {
	field = trimSigns(field)
	if slices.Contains(squares, field) {
		return word{text: squares[0], parts: squares[:1], written: field}
	}
	w := word{text: Cut(field, maxCode), isCode: isCode(field), written: Cut(field, maxCode)}
	if w.isCode {
		w.text = codeKey(Cut(field, maxCode))
		field = oneAlphabet(field)
	}
	for part := range strings.FieldsFuncSeq(field, func(r rune) bool { return !isPart(r) && r != apostrophe }) {
		if part = strings.Trim(part, string(apostrophe)); part != "" {
			w.addPart(Cut(part, maxWord))
		}
	}
	return w
}

// addPart adds a part of a code, or of a name with hyphens. The letters and the digits of a code's part are
// added as separate parts, too.
func (w *word) addPart(part string) {
	if !w.isCode || part != w.text {
		w.parts = append(w.parts, part)
	}
	if !w.isCode || !hasDigit(part) || !hasLetter(part) {
		return
	}
	if hasOthers(w.written) {
		for _, other := range []string{asLetters.Replace(part), asDigits.Replace(part)} {
			if !hasDigit(other) || !hasLetter(other) { // "па3" is "паз" in "па3-4234"
				w.parts = append(w.parts, other)
			}
		}
	}
	for _, run := range runs(part) {
		if run != part {
			w.parts = append(w.parts, run)
		}
	}
	if len(w.parts) == 0 {
		w.parts = append(w.parts, part)
	}
}

func trimSigns(field string) string {
	return strings.TrimFunc(field, func(r rune) bool { return !isPart(r) })
}

const apostrophe = '\''

// apostrophes replaces each kind of apostrophe by one form. It also replaces № by a blank, because NFKC would turn
// № into a word. It must be used before NFKC: Unicode counts some apostrophes as letters, and NFKC turns another
// apostrophe into a blank.
var apostrophes = strings.NewReplacer(
	"№", " ", "ʼ", "'", "ʻ", "'", "ʹ", "'", "’", "'", "‘", "'", "‛", "'", "`", "'", "´", "'", "′", "'",
)

// isPart reports whether a rune is a letter, a digit or a mark.
func isPart(r rune) bool { return isLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// isLetter does what unicode.IsLetter does, but faster for the letters of most texts.
func isLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'а' && r <= 'ё' || unicode.IsLetter(r)
}

// isInner reports whether a rune may stand within a code or a word.
func isInner(r rune) bool { return strings.ContainsRune("'-./:_", r) }

// normal returns a text in small letters, with one form of each letter, apostrophe and hyphen. A letter that
// looks alike in both scripts gets the script of the other letters of its word.
func normal(text string) string {
	if !isUsual(text) {
		text = strings.Map(visible, norm.NFKC.String(apostrophes.Replace(text)))
	}
	text = plainNumbers(strings.ToLower(text))
	var out strings.Builder
	out.Grow(len(text))
	begin := 0
	flush := func(end int) {
		out.WriteString(oneScript(text[begin:end]))
	}
	for i, r := range text {
		if isLetter(r) {
			continue
		}
		flush(i)
		begin = i + len(string(r))
		switch r {
		case '‐', '‑', '−', '–':
			out.WriteByte('-')
		case '\u0301': // a stress mark
		default:
			out.WriteRune(r)
		}
	}
	flush(len(text))
	return out.String()
}

// visible removes characters that have no width. Programs put them into words.
func visible(r rune) rune {
	switch {
	case r == '\u00ad', r >= '\u200b' && r <= '\u200f', r >= '\u202a' && r <= '\u202e',
		r >= '\u2060' && r <= '\u2064', r == '\ufeff', r == '\u180e':
		return -1
	}
	return r
}

// decimalPoints returns a row of digits and signs with a point in place of each comma between digits.
func decimalPoints(row string) string {
	changed := []byte(row)
	for i := 1; i < len(row)-1; i++ {
		if row[i] == ',' && isASCIIDigit(row[i-1]) && isASCIIDigit(row[i+1]) {
			changed[i] = '.'
		}
	}
	return string(changed)
}

func isASCIIDigit(b byte) bool { return b >= '0' && b <= '9' }

// isUsual reports whether a text has only ASCII and Ukrainian letters, and no ` as an apostrophe, so that NFKC
// does not change it. Most texts are usual.
func isUsual(text string) bool {
	for _, r := range text {
		if (r > unicode.MaxASCII || r == '`') && (r < 'Ѐ' || r > 'џ') && r != 'ґ' && r != 'Ґ' {
			return false
		}
	}
	return true
}
