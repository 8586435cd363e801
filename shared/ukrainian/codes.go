package ukrainian

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A code is a field (a part of a text between blanks) that has a digit, and also a letter or a sign. Examples are the
// number of an asset, a model, a plate, the number of a house and a decimal number. All ways to write one code have
// the same key, in texts and in questions (docs/search.md, "Numbers and codes").

// leadingZeros is the least number of digits of a number whose leading zeros do not count. People write the ids of
// organisations and the codes of property with or without leading zeros. In the numbers of houses and rooms, leading
// zeros count.
const leadingZeros = 5

// mostRuns limits the codes whose runs become keys of a text, too. A run is a part of a code that has only letters or
// only digits. Codes with more runs than mostRuns are ids, and nobody asks for a part of an id.
const mostRuns = 4

// sizes matches numbers with x between them, such as 12x24. units matches a number directly followed by its
// unit, such as 240м2.
var (
	sizes = regexp.MustCompile(`^\d+([.]\d+)?([xх]\d+([.]\d+)?)+$`)
	units = regexp.MustCompile(`^([\dxх./-]*\d)(` +
		`кв\.?м2?|м\.?кв|м[23]?|га|кг|тонн|т|л|км|см|мм|шт|квт|ква|кв|грн|тис|млн|m[23]?|ha|kg|km|sqm)$`)
)

// squares are the ways to write the unit square metre. All have the same key.
var squares = []string{"м2", "m2", "кв.м", "м.кв", "кв.м2", "sqm", "kv.m"}

// isUnit reports whether a word is a unit, such as "кг".
func isUnit(word string) bool { return slices.Contains(squares, word) || units.MatchString("1"+word) }

// The function `apart` splits a number from the unit that follows it directly, and a size such as 12x24 into its
// numbers. It returns any other field unchanged.
func apart(field string) []string {
	if field == "" || field[0] < '0' || field[0] > '9' || !hasLetter(field) {
		return []string{field}
	}
	var unit []string
	for _, text := range []string{replace(field, toCyrillic), field} { // letters of units look alike, too
		if found := units.FindStringSubmatch(text); found != nil {
			field, unit = found[1], found[2:]
			break
		}
	}
	fields := []string{field}
	if sizes.MatchString(field) {
		fields = strings.FieldsFunc(field, func(r rune) bool { return r == 'x' || r == 'х' })
	}
	return append(fields, unit...)
}

// mostLetters is the maximum number of Cyrillic letters in a row in a code. Words such as "двокімнатна" have more
// letters, so they are not codes, even after a number.
const mostLetters = 4

// isCode reports whether a field is a code: it has a digit, and also a sign or a letter, and all its letters are
// Latin or Cyrillic.
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

func hasDigit(field string) bool {
	for i := range len(field) {
		if isASCIIDigit(field[i]) {
			return true
		}
	}
	return false
}

// oneAlphabet returns a code in which all letters that look alike belong to one script. The script is Latin if every
// Cyrillic letter of the code looks like a Latin letter. Otherwise it is Cyrillic.
func oneAlphabet(code string) string {
	for _, r := range code {
		if _, alike := toLatin[r]; !alike && scriptOfRune(r) == cyrillic {
			return replace(code, toCyrillic)
		}
	}
	return replace(code, toLatin)
}

// codeKey returns the key of a code: its letters and digits. Letters that look alike, and и and і, which people
// confuse in the names of models, have one form. So have 3 and З, and 0 and О, if the code has other letters and
// digits.
func codeKey(code string) string {
	if date := dateKey(code); date != "" {
		return date
	}
	if !hasLetter(code) {
		return numberKey(code)
	}
	code = strings.ReplaceAll(code, "и", "і")
	if hasOthers(code) {
		code = asDigits.Replace(code)
	}
	key := strings.Map(func(r rune) rune {
		if isPart(r) {
			return r
		}
		return -1
	}, oneAlphabet(code))
	return Cut(key, maxCode)
}

// Digits and letters that look alike.
var (
	asDigits  = strings.NewReplacer("з", "3", "о", "0", "o", "0")
	asLetters = strings.NewReplacer("3", "з", "0", "о")
)

// hasOthers reports whether a code has letters and digits that do not look like digits and letters.
func hasOthers(code string) bool {
	return hasLetter(asDigits.Replace(code)) && hasDigit(asLetters.Replace(code))
}

// leastPlot is the least number of digits with colons between them that are the beginning of a cadastral number.
const leastPlot = 12

// numberKey returns the key of a number or a code of digits, without the zeros that do not change the value.
func numberKey(code string) string {
	bare := plotSigns.Replace(code)
	isBegun := len(bare) >= leastPlot && len(bare) <= plotDigits && strings.Trim(code, "0123456789:") == ""
	if isBegun || len(bare) == plotDigits && areDigits(bare) {
		code = bare
	}
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

// runs returns the runs of letters and of digits of a part of a code, or nil if it has too many.
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

// The number of a house, and its letter, as people write them in questions. A small letter counts only at the
// end of the question, because "а" and "в" are also words.
var (
	house      = regexp.MustCompile(`^[(№]*\d{1,4}$`)
	letter     = regexp.MustCompile(`^[A-ZА-ЯҐЄІЇ],?$`)
	lastLetter = regexp.MustCompile(`^[абвгдежa-e]$`)
)

// Tokens returns the parts of a question between blanks. If a part is a pasted address with an id, Tokens returns the
// id instead. It joins the letter of a house to the house's number, and the parts of a run. For texts, Each also visits
// the key of the number with the letter.
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
	return joinRuns(tokens)
}

// joinRuns joins the tokens of each run.
func joinRuns(tokens []string) []string {
	joined := 0
	for fields := fieldsOf(normal(strings.Join(tokens, "\n"))); len(fields) > 0; {
		n, _ := runOf(fields)
		if n > 0 {
			first, last := fields[0].line-joined, fields[n-1].line-joined
			tokens = slices.Replace(tokens, first, last+1, strings.Join(tokens[first:last+1], " "))
			joined += last - first
		}
		fields = fields[max(n, 1):]
	}
	return tokens
}

// asking returns the tokens of a question, joined by blanks.
func asking(text string) string { return strings.Join(Tokens(text), " ") }

// Apart returns the letters and the numbers of a code with blanks between them, or "" if the text is not a code
// with letters.
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

// Beginning takes the beginning of a word, and returns the text with which the keys of the word begin.
func Beginning(text string) string {
	return finish(strings.ReplaceAll(fold(strings.TrimFunc(normal(text), isBetween)), string(apostrophe), ""))
}
