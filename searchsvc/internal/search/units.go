package search

import "math"

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

// AmountOf returns the measure and the amount of a quantity, in the unit with the given code. ok is false for a
// unit that UnitCodes lacks, and for a quantity that is not positive or is too large.
func AmountOf(code string, quantity float64) (of Measure, amount int64, ok bool) {
	unit, known := UnitCodes[code]
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
