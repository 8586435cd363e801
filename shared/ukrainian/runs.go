package ukrainian

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A run is several fields with blanks between them that may be one number or code: a number with blanks between its
// thousands, a date with the name of a month, a cadastral number, or the number of a vehicle. The blanks may also
// separate several numbers, so a run counts as one word and as its fields (docs/search.md, "Numbers and codes").

// mostFields is the maximum number of fields of a run.
const mostFields = 16

// field is a text between blanks and marks.
type field struct {
	text   string
	isNear bool   // only blanks stand between this field and the one before
	line   int    // number of line breaks before it
	sign   string // the sign before it, if the sign may be an apostrophe between this field and the one before
	digit  bool   // it has a digit
}

// signsAsApostrophes are signs that people write as apostrophes.
const signsAsApostrophes = `"*“”„`

// apostropheIn returns the sign between two fields if it may be an apostrophe: it stands between a consonant and я, ю,
// є or ї.
func apostropheIn(before, sign, after string) string {
	last, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(after)
	if !strings.Contains(signsAsApostrophes, sign) || scriptOfRune(last) != cyrillic || isVowel(last) ||
		!strings.ContainsRune("яюєї", first) ||
		strings.ContainsFunc(before+after, func(r rune) bool { return !isLetter(r) }) {
		return ""
	}
	return sign
}

// bytesOfField is about the number of bytes that a field takes in a text.
const bytesOfField = 12

// fieldsOf returns the fields of a text in its normal form.
func fieldsOf(text string) []field {
	fields := make([]field, 0, len(text)/bytesOfField+1)
	begin, end, line, isNear, colon := -1, 0, 0, false, "" // a plot number may have blanks around its colons
	take := func(until int) {
		if begin < 0 {
			return
		}
		raw, gap := text[begin:until], text[end:begin]
		bare := trimSigns(raw)
		lead, tail, _ := strings.Cut(raw, bare)
		colon += lead
		near := isNear && strings.TrimSpace(gap) == "" && (colon == "" || colon == ":")
		sign := ""
		if last := len(fields) - 1; last >= 0 && gap != "" && isNear && colon == "" {
			sign = apostropheIn(fields[last].text, gap, raw)
		}
		from := len(fields)
		if digit := hasDigit(bare); bare != "" && (!digit || areDigits(bare)) {
			fields = append(fields, field{bare, near, line, sign, digit})
		} else {
			for _, glued := range unglue(bare) {
				for _, one := range apart(glued) {
					if one != "" {
						fields, near, sign = append(fields, field{one, near, line, sign, hasDigit(one)}), false, ""
					}
				}
			}
		}
		isNear = (bare != "" || isNear) && (tail == "" || tail == ":" && fields[len(fields)-1].digit)
		if from < len(fields) && fields[from].isNear {
			fields[from].text = colon + fields[from].text
		}
		begin, end, colon = -1, until, tail
	}
	for i, r := range text {
		switch {
		case !isBetween(r):
			if begin < 0 {
				begin = i
			}
			continue
		case r == '\n':
			take(i)
			line++
		}
		take(i)
	}
	take(len(text))
	return fields
}

// decimal matches a decimal number, perhaps with its unit.
var decimal = regexp.MustCompile(`^\d+\.\d+(\pL[\pL\d./]*)?$`)

// unglue splits a number from the words that stand directly before it: "пл.36.6" is "пл" and "36.6". Letters before a
// whole number, without a sign or with a hyphen, are a code, unless they are a long word.
func unglue(text string) (parts []string) {
	begin, letters, sign := 0, 0, rune(0) // the letters before the sign, and the sign before the current character
	for i, r := range text {
		switch {
		case isLetter(r) && sign == 0:
			letters++
		case isLetter(r):
			letters, sign = 1, 0
		case r < '0' || r > '9':
			if sign != 0 {
				letters = 0
			}
			sign = r
		default:
			if letters > 0 && (sign == '.' || sign == ':' || (sign == 0 || sign == '-') &&
				(letters > mostLetters && scriptOf(text[begin:i]) == cyrillic || decimal.MatchString(text[i:]))) {
				parts, begin = append(parts, trimSigns(text[begin:i])), i
			}
			letters, sign = 0, 0
		}
	}
	return append(parts, text[begin:])
}

// broken returns the word that two fields are if the sign between them is an apostrophe.
func broken(fields []field) (w word, ok bool) {
	if len(fields) < 2 || fields[1].sign == "" {
		return word{}, false
	}
	w = newWord(fields[0].text + string(apostrophe) + fields[1].text)
	w.written = fields[0].text + fields[1].sign + fields[1].text
	w.run = []word{newWord(fields[0].text), newWord(fields[1].text)}
	return w, true
}

// runOf returns the number of the first fields that are a run, and the key of the run. It returns 0 if there is none.
func runOf(fields []field) (n int, key string) {
	near, digits := 1, fields[0].digit
	for near < min(len(fields), mostFields) && fields[near].isNear && (digits || near < 4) {
		digits = digits || fields[near].digit // one of its first four fields has a digit
		near++
	}
	if near == 1 || !digits {
		return 0, ""
	}
	var texts [mostFields]string
	for i, f := range fields[:near] {
		texts[i] = f.text
	}
	texts[0] = strings.TrimPrefix(texts[0], ":")
	if n, key = dateRun(texts[:near]); n == 0 {
		n, key = plotRun(texts[:near])
	}
	if n == 0 {
		n, key = vehicleRun(texts[:near])
	}
	if n == 0 {
		n, key = thousandsRun(texts[:near])
	}
	return n, key
}

func areDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// thousandsRun reads a number with blanks between its thousands. Letters may stand before a decimal number.
func thousandsRun(fields []string) (n int, key string) {
	key = strings.TrimLeftFunc(fields[0], func(r rune) bool { return r < '0' || r > '9' })
	if key == "" || len(key) > 3 || !areDigits(key) || strings.HasPrefix(key, "0") {
		return 0, ""
	}
	needsDecimal := key != fields[0]
	for n = 1; n < len(fields); n++ {
		whole, _, isDecimal := strings.Cut(fields[n], ".")
		if len(whole) != 3 || !areDigits(strings.Replace(fields[n], ".", "", 1)) {
			break
		}
		if key += fields[n]; isDecimal {
			n, needsDecimal = n+1, false
			break
		}
	}
	if n == 1 || needsDecimal {
		return 0, ""
	}
	return n, numberKey(Cut(key, maxCode))
}

// plotParts are the numbers of digits after which a cadastral number may have a sign or a blank.
var plotParts = []int{10, 12, 15, plotDigits}

// plotDigits is the number of digits of a cadastral number.
const plotDigits = 19

// plotRun reads a cadastral number.
func plotRun(fields []string) (n int, key string) {
	for n < len(fields) && len(key) < plotDigits && hasDigit(fields[n]) {
		digits := plotSigns.Replace(fields[n])
		key, n = key+digits, n+1
		if !areDigits(digits) || !slices.Contains(plotParts, len(key)) {
			return 0, ""
		}
	}
	if n < 2 || len(key) != plotDigits {
		return 0, ""
	}
	return n, numberKey(key)
}

var plotSigns = strings.NewReplacer(":", "", "-", "", ".", "")

// vehicleLetters is the number of characters of the number of a vehicle.
const vehicleLetters = 17

// vehicle matches the identification number of a vehicle.
var vehicle = regexp.MustCompile(`^[a-hj-npr-z0-9]{13}\d{4}$`)

// vehicleRun reads the number of a vehicle that has blanks.
func vehicleRun(fields []string) (n int, key string) {
	letters := 0
	for n = range min(4, len(fields)) {
		if letters += utf8.RuneCountInString(fields[n]); n == 0 || letters != vehicleLetters {
			continue
		}
		if key = replace(strings.Join(fields[:n+1], ""), toLatin); hasLetter(key) && vehicle.MatchString(key) {
			return n + 1, codeKey(key)
		}
		break
	}
	return 0, ""
}

// months maps the names of months in dates to their numbers.
var months = func() map[string]int {
	all := map[string]int{}
	for _, list := range []string{
		"січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
		"января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
		"january february march april may june july august september october november december",
	} {
		for i, name := range strings.Fields(list) {
			all[name] = i + 1
		}
	}
	return all
}()

var yearWords = strings.Fields("р року рік г года год")

// dateRun reads a date with the name of a month, or with a word for year.
func dateRun(fields []string) (n int, key string) {
	n, key = 1, dateKey(fields[0])
	if key == "" && len(fields) > 2 && months[fields[1]] > 0 {
		n, key = 3, dateKey(fmt.Sprintf("%s.%d.%s", fields[0], months[fields[1]], fields[2]))
	}
	if n < len(fields) && slices.Contains(yearWords, fields[n]) {
		n++
	}
	if key == "" || n == 1 {
		return 0, ""
	}
	return n, key
}

// dates matches dates. The year has four digits and stands first or last.
var dates = regexp.MustCompile(`^(?:(\d{1,2})[./-](\d{1,2})[./-](\d{4})[рг]?|(\d{4})[./-](\d{1,2})[./-](\d{1,2}))$`)

// dateKey returns a date as 2019-11-25, or "" for a text that is no date.
func dateKey(text string) string {
	if len(text) < len("1.1.2019") || len(text) > len("25.11.2019р") || !isASCIIDigit(text[0]) {
		return ""
	}
	found := dates.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	day, month, year := found[1]+found[6], found[2]+found[5], found[3]+found[4]
	d, _ := strconv.Atoi(day)
	m, _ := strconv.Atoi(month)
	if d < 1 || d > 31 || m < 1 || m > 12 {
		return ""
	}
	return fmt.Sprintf("%s-%02d-%02d", year, m, d)
}

// thousands matches numbers with signs between their thousands. A full stop or a comma is such a sign only if the
// other one is the decimal sign.
var thousands = regexp.MustCompile(`^\d{1,3}(?:(?:'\d{3})+(?:[.,]\d+)?|(?:\.\d{3})+,\d+|(?:,\d{3})+\.\d+)$`)

// plainNumbers returns a text in small letters in which numbers have no signs between their thousands, and a full stop
// as their decimal sign.
func plainNumbers(text string) string {
	var out strings.Builder
	at := 0
	for i := 1; i < len(text)-1; i++ { // most texts have no comma and no apostrophe between digits
		if text[i] != ',' && text[i] != apostrophe || !isASCIIDigit(text[i-1]) || !isASCIIDigit(text[i+1]) {
			continue
		}
		begin := at + len(strings.TrimRight(text[at:i], numberSigns))
		end := len(text) - len(strings.TrimLeft(text[i:], numberSigns))
		out.WriteString(text[at:begin])
		out.WriteString(plainNumber(text[begin:end]))
		at, i = end, end
	}
	if at == 0 {
		return text
	}
	return out.String() + text[at:]
}

const numberSigns = "0123456789.,'"

// plainNumber does for a row of digits and signs what plainNumbers does for a text.
func plainNumber(row string) string {
	bare := strings.Trim(row, ".,'")
	if !thousands.MatchString(bare) {
		return decimalPoints(row)
	}
	whole, fraction := bare, ""
	if last := strings.LastIndexAny(bare, ".,"); last >= 0 {
		whole, fraction = bare[:last], "."+bare[last+1:]
	}
	return strings.Replace(row, bare, strings.NewReplacer(".", "", ",", "", "'", "").Replace(whole)+fraction, 1)
}
