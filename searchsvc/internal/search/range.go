package search

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"asset-registry/shared/ukrainian"
)

// Range is a range of areas that a question has in words, such as "до 500 м2" (docs/search.md, "Ranges").
type Range struct {
	Words string `json:"words"` // the words of the range
	Rest  string `json:"-"`     // the question without them
	Quantities
}

// areas are the forms of units of area in questions, and their square metres.
var areas = []struct {
	form   *regexp.Regexp
	metres float64
}{
	{regexp.MustCompile(`(?i)^(?:` + square + `(?:[кk][мm]|килом|кілом|kilom)|[кk][мm])`), 1_000_000},
	{regexp.MustCompile(`(?i)^(?:г|h)`), hectare},
	{regexp.MustCompile(`(?i)^(?:сот|ар|are)`), 100},
	{regexp.MustCompile(`(?i)^.`), 1},
}

const hectare = 10_000

// The parts of a range in words.
const (
	square = `(?:кв\.?\s*|квадратн\pL+\s+|sq\.?\s*|square\s+)`
	// amount is a number, of which ukrainian.Ask makes one word, or a number of thousands.
	amount = `(\d+(?:[.,'’ \x{a0}\x{202f}\x{2009}]\d+)*(?:\s*т[иы]с(?:\.|\pL*))?)\s*`
	unit   = `(` + square + `(?:[кk]?[мm][2²]?|(?:к[иі]ло)?метр\pL*|(?:kilo)?met\pL+)|[кk]?[мm]\.?\s?[2²]|[мm]\.?\s?кв|` +
		`метр\pL*\s+квадратн\pL+|квадрат(?:[иа]|[іо]в)?|га|гектар\pL*|ha|hectares?|сот(?:к\pL*|ок)|ар(?:и|ы|[іо]в)?|ares)`
	begin = `(?i)(?:^|[\s,;(])((?:(?:(?:загальн|общ|total)\pL*\s+)?(?:площ\pL+|area(?:\s+of)?|пл\.?)\s*[:=]?\s*)?(?:`
	last  = unit + `\.?)(?:$|[\s.,;:)!?])`
	end   = `\s*` + amount + last
	dash  = `[-–—‑]`
)

var (
	// between has groups for the words, the first number and its unit three times, and the second number and its unit.
	between = regexp.MustCompile(begin + `(?:від|от|from)\s*` + amount + unit + `?\s*(?:до|to|` + dash + `)|` +
		`(?:між|между|between)\s*` + amount + unit + `?\s*(?:і|й|та|и|and)|` + amount + unit + `?\s*` + dash + `)` + end)
	// bound has groups for the words, "not", "less", and other words before a largest number, and the number and its unit.
	bound = regexp.MustCompile(begin + `(не\s+|not?\s+)?(?:(менше|менш|меньше|менее|less)|більше|більш|больше|` +
		`более|more)(?:\s+(?:ніж|за|як|чем|than))?|(до|максимум|макс\.?|не\s+перевищує|up\s+to|under|below|at\s+most|` +
		`max\.?|<=?|≤)|від|понад|мінімум|мін\.?|щонайменше|от|свыше|минимум|over|above|from|at\s+least|min\.?|>=?|≥)` + end)
	// more has groups for the words, and the number and its unit.
	more = regexp.MustCompile(begin + `)` + amount + `\+\s*` + last)
)

// quotes matches the parts of a question in quotes.
var quotes = regexp.MustCompile(`"[^"]*"|«[^»]*»|“[^”]*”|„[^“”]*[“”]`)

// Range returns the first range in the words of a question. It ignores words in quotes. ok is false if there is none,
// if the question is exact, or if it has a filter by quantities.
func (q Query) Range() (r Range, ok bool) {
	if q.Exact || q.Filters.Quantity != (Quantities{}) || !strings.ContainsAny(q.Text, "0123456789") {
		return Range{}, false
	}
	text := quotes.ReplaceAllStringFunc(q.Text, func(quoted string) string { return strings.Repeat("_", len(quoted)) })
	from, until := 0, 0
	if at := between.FindStringSubmatchIndex(text); at != nil {
		g := groups(text, at)
		first, second := g[2]+g[4]+g[6], g[3]+g[5]+g[7]
		if second == "" {
			second = g[9]
			if at := strings.IndexFunc(g[8], unicode.IsLetter); at > 0 {
				first += g[8][at:] // "3-4 thousand" are both thousands
			}
		}
		from, until, ok = at[2], at[3], r.set(areaOf(first, second), areaOf(g[8], g[9]))
	} else if at := bound.FindStringSubmatchIndex(text); at != nil {
		g := groups(text, at)
		from, until = at[2], at[3]
		if g[4] != "" || (g[2] != "") != (g[3] != "") {
			ok = r.set(0, areaOf(g[5], g[6]))
		} else {
			ok = r.set(areaOf(g[5], g[6]), math.Inf(1))
		}
	} else if at := more.FindStringSubmatchIndex(text); at != nil {
		g := groups(text, at)
		from, until, ok = at[2], at[3], r.set(areaOf(g[2], g[3]), math.Inf(1))
	}
	if !ok {
		return Range{}, false
	}
	r.Words, r.Rest = q.Text[from:until], strings.TrimSpace(q.Text[:from]+q.Text[until:])
	return r, true
}

func groups(text string, at []int) (all []string) {
	for ; len(at) > 0; at = at[2:] {
		all = append(all, text[max(at[0], 0):max(at[1], 0)])
	}
	return all
}

// set sets the bounds in square metres, or in hectares if both are large. 0 and infinity are no bounds. set reports
// whether the bounds are a range; NaN is none.
func (r *Range) set(from, to float64) bool {
	times := 1.0
	if r.Unit = SquareMetres; max(from, hectare) == from || from == 0 && to >= hectare {
		r.Unit, times = Hectares, hectare
	}
	from, to = from/times, to/times
	if from > 0 {
		r.From = &from
	}
	if !math.IsInf(to, 1) {
		r.To = &to
	}
	return from <= to && to > 0 && (r.From != nil || r.To != nil)
}

// areaOf returns a number with a unit in square metres, or NaN if the text is no number.
func areaOf(text, unit string) float64 {
	times := 1.0
	if at := strings.IndexFunc(text, unicode.IsLetter); at > 0 {
		text, times = text[:at], 1000
	}
	words := ukrainian.Ask(text)
	if len(words) != 1 || len(words[0].Keys) == 0 {
		return math.NaN()
	}
	value, err := strconv.ParseFloat(words[0].Keys[0], 64)
	value *= times
	if err != nil || value > MaxAmount/perUnit {
		return math.NaN()
	}
	for _, a := range areas {
		if a.form.MatchString(unit) {
			return math.Round(value*a.metres*perUnit) / perUnit
		}
	}
	return math.NaN()
}

// Measure is the kind of a quantity: an area or a number of pieces.
type Measure uint8

// The measures. An amount is a number of ten-thousandths of a square metre (Area), or of a piece (Number).
const (
	Area Measure = iota
	Number
	Measures // the number of measures
)

// Unit is a unit in which a range of quantities is written.
type Unit string

// The units.
const (
	SquareMetres Unit = "m2"
	Hectares     Unit = "ha"
	Pieces       Unit = "pieces"
)

// Units lists all units, in the order in which documents and pages list them.
var Units = []Unit{SquareMetres, Hectares, Pieces}

// scale says which measure a unit has, and how many square metres or pieces the unit stands for.
type scale struct {
	of    Measure
	times float64
}

var scales = map[Unit]scale{SquareMetres: {Area, 1}, Hectares: {Area, 10_000}, Pieces: {Number, 1}}

// UnitCodes are the codes of UN/CEFACT Recommendation 20 whose quantities can be converted to amounts: square
// metre, are, hectare and square kilometre; piece and one.
var UnitCodes = map[string]scale{
	"MTK": {Area, 1}, "ARE": {Area, 100}, "HAR": {Area, 10_000}, "KMK": {Area, 1_000_000},
	"H87": {Number, 1}, "C62": {Number, 1},
}

// perUnit is the amount of one square metre or one piece. Amounts are whole numbers: they count ten-thousandths.
const perUnit = 10_000

// MaxAmount is the largest amount of an item or an asset: a million square kilometres, which is more than
// Ukraine has. An item with more has no amount, and a larger sum is cut to MaxAmount.
const MaxAmount = 1_000_000_000_000 * perUnit

// AmountOf returns the measure and the amount of a quantity, in the unit with the given code or form
// (ukrainian.Unit). ok is false for another unit, and for a quantity that is not positive or is too large.
func AmountOf(code string, quantity float64) (of Measure, amount int64, ok bool) {
	unit, known := UnitCodes[ukrainian.Unit(code)]
	exact := math.Round(quantity * unit.times * perUnit)
	if !known || !(exact > 0) || exact > MaxAmount {
		return 0, 0, false
	}
	return unit.of, int64(exact), true
}

// Amounts is a range of amounts of one measure.
type Amounts struct {
	Of       Measure
	From, To float64 // inclusive
}

// Amounts converts the range to amounts. The range must have a Unit.
func (q Quantities) Amounts() Amounts {
	unit := scales[q.Unit]
	bound := func(n *float64, without float64) float64 {
		if n == nil {
			return without
		}
		return math.Round(*n * unit.times * perUnit)
	}
	return Amounts{unit.of, bound(q.From, math.Inf(-1)), bound(q.To, math.Inf(1))}
}

// Has reports whether an amount is in the range.
func (a Amounts) Has(of Measure, amount int64) bool {
	return of == a.Of && float64(amount) >= a.From && float64(amount) <= a.To
}

// InUnits converts an amount, or a sum of amounts, to square metres or pieces.
func InUnits(amount float64) float64 { return amount / perUnit }
