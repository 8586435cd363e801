package ukrainian

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A code is a field with a digit, and with letters or signs: a number of an asset, a model, a
// plate, the number of a house, a decimal number. Each kind has one key, in texts and questions
// alike (docs/search.md, "Numbers and codes").

// leadingZeros is the number of digits from which zeros before a number do not count. Ids of
// organisations and codes of property have them or not; numbers of houses and rooms do not.
const leadingZeros = 5

// mostRuns is the number of letters and digits in turn that a code has, if a text also gets them
// apart. Others are ids, whose parts nobody asks for.
const mostRuns = 4

// sizes matches numbers with x between them, such as 12x24, and a number with the unit that
// follows it at once, such as 240м2.
var (
	sizes = regexp.MustCompile(`^\d+([.]\d+)?([xх]\d+([.]\d+)?)+$`)
	units = regexp.MustCompile(`^([\dxх./-]*\d)(` +
		`кв\.?м2?|м\.?кв|м[23]?|га|кг|тонн|т|л|км|см|мм|шт|квт|ква|кв|грн|тис|млн|m[23]?|ha|kg|km|sqm)$`)
)

// squares are the forms of the unit of areas. They have one key.
var squares = []string{"м2", "m2", "кв.м", "м.кв", "кв.м2", "sqm", "kv.m"}

// isUnit tells whether a word is a unit of numbers.
func isUnit(word string) bool { return slices.Contains(squares, word) || units.MatchString("1"+word) }

// apart returns the fields of a field in which a number stands at once before its unit or
// another number of a size.
func apart(field string) []string {
	if field == "" || field[0] < '0' || field[0] > '9' || !hasLetter(field) {
		return []string{field}
	}
	var unit []string
	if found := units.FindStringSubmatch(field); found != nil {
		field, unit = found[1], found[2:]
	}
	fields := []string{field}
	if sizes.MatchString(field) {
		fields = strings.FieldsFunc(field, func(r rune) bool { return r == 'x' || r == 'х' })
	}
	return append(fields, unit...)
}

// mostLetters is the number of Cyrillic letters in a row that a code has. Words such as
// "двокімнатна" have more, with a number before them, too.
const mostLetters = 4

// isCode tells whether a field is a code: it has a digit, and a sign or a letter of the Latin or
// the Cyrillic script.
func isCode(field string) bool {
	digit, other, letters := false, false, 0
	for _, r := range field {
		if letters++; scriptOfRune(r) != cyrillic {
			letters = 0
		}
		switch {
		case '0' <= r && r <= '9':
			digit = true
		case r == apostrophe || isPart(r) && scriptOfRune(r) == otherScript || letters > mostLetters:
			return false
		default:
			other = true
		}
	}
	return digit && other
}

func hasLetter(field string) bool { return strings.ContainsFunc(field, unicode.IsLetter) }

func hasDigit(field string) bool { return strings.ContainsAny(field, "0123456789") }

// oneAlphabet returns a code with the letters of one script: Latin if all look like Latin ones,
// else Cyrillic if one is of no other script.
func oneAlphabet(code string) string {
	isLatin, isCyrillic := true, false
	for _, r := range code {
		switch scriptOfRune(r) {
		case cyrillic:
			if _, alike := toLatin[r]; !alike {
				isLatin, isCyrillic = false, true
			}
		case latin:
			if _, alike := toCyrillic[r]; !alike && isCyrillic {
				return code
			}
		}
	}
	switch {
	case isLatin:
		return replace(code, toLatin)
	case isCyrillic:
		return replace(code, toCyrillic)
	}
	return code
}

// codeKey returns the key of a code: its letters and digits. Of и and і it has і, because models
// have names of two languages.
func codeKey(code string) string {
	if !hasLetter(code) {
		return numberKey(code)
	}
	key := strings.Map(func(r rune) rune {
		switch {
		case r == 'и':
			return 'і'
		case isPart(r):
			return r
		}
		return -1
	}, code)
	return cut(key, maxCode)
}

// numberKey returns the key of a number or a code of digits: without zeros that change nothing.
func numberKey(code string) string {
	digits := len(code) - len(strings.TrimLeft(code, "0123456789"))
	whole, fraction, ok := strings.Cut(code, ".")
	if ok && digits == len(whole) && strings.Trim(fraction, "0123456789") == "" {
		if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
			return numberKey(whole)
		}
		return whole + "." + fraction
	}
	if digits >= leadingZeros {
		if shorter := strings.TrimLeft(code, "0"); shorter != "" && shorter[0] >= '0' && shorter[0] <= '9' {
			return shorter
		}
	}
	return code
}

// runs returns the letters and the digits of a part of a code apart; nil if it has too many.
func runs(part string) []string {
	var all []string
	begin, wasDigit := 0, false
	for i, r := range part {
		isDigit := r >= '0' && r <= '9'
		if i > 0 && isDigit != wasDigit {
			all = append(all, part[begin:i])
			begin = i
		}
		wasDigit = isDigit
	}
	if all = append(all, part[begin:]); len(all) > mostRuns {
		return nil
	}
	return all
}

// page matches the address of a page of an asset.
var page = regexp.MustCompile(`(?i)\S*/(?:assets|lots)/([0-9a-z-]{8,})\S*`)

// The number of a house and its letter, as people write them in questions. A small letter counts
// only at the end, as "а" and "в" are also words.
var (
	house      = regexp.MustCompile(`^[(№]*\d{1,4}$`)
	letter     = regexp.MustCompile(`^[A-ZА-ЯҐЄІЇ],?$`)
	lastLetter = regexp.MustCompile(`^[абвгдежa-e]$`)
)

// Tokens returns the parts of a question between blanks. An id replaces a pasted address that has
// it, and the letter of a house is joined to its number. Texts get the key of both joined from
// function Each.
func Tokens(text string) []string {
	var tokens []string
	wasHouse := false
	for field := range strings.FieldsSeq(page.ReplaceAllString(text, " $1 ")) {
		tokens = append(tokens, field)
		last := len(tokens) - 1
		if wasHouse && letter.MatchString(field) {
			tokens = append(tokens[:last-1], tokens[last-1]+field)
		}
		wasHouse = house.MatchString(field)
	}
	if last := len(tokens) - 1; last > 0 && house.MatchString(tokens[last-1]) && lastLetter.MatchString(tokens[last]) {
		tokens = append(tokens[:last-1], tokens[last-1]+tokens[last])
	}
	return tokens
}

// asking returns a question of its tokens.
func asking(text string) string { return strings.Join(Tokens(text), " ") }

// Apart returns the letters and the numbers of a code with blanks between them; "" for a text that
// is no code of this kind.
func Apart(code string) string {
	for w := range split(code) {
		if !w.isCode || !hasLetter(w.text) {
			continue
		}
		var parts []string
		for _, part := range strings.FieldsFunc(normal(code), func(r rune) bool { return !isPart(r) }) {
			parts = append(parts, runs(part)...)
		}
		return strings.Join(parts, " ")
	}
	return ""
}

// Beginning returns how the keys of words begin that begin with a text.
func Beginning(text string) string {
	return finish(strings.ReplaceAll(fold(strings.TrimFunc(normal(text), isBetween)), string(apostrophe), ""))
}
