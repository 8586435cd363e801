package search

import (
	"math"
	"testing"
)

// TestAmountsAreExactToFourDecimals compares quantities in several units with the ends of ranges. The comparison must
// be exact, although floats cannot represent the fractions of these quantities exactly.
// Promises: search-units
func TestAmountsAreExactToFourDecimals(t *testing.T) {
	bound := func(n float64) *float64 { return &n }
	for _, c := range []struct {
		code     string
		quantity float64
		in       Quantities
		want     bool
	}{
		{"MTK", 240.5, Quantities{From: bound(240.5), To: bound(240.5), Unit: SquareMetres}, true},
		{"MTK", 0.0003, Quantities{To: bound(0.0003), Unit: SquareMetres}, true},
		{"MTK", 0.0004, Quantities{To: bound(0.0003), Unit: SquareMetres}, false},
		{"HAR", 0.1234, Quantities{From: bound(1234), To: bound(1234), Unit: SquareMetres}, true},
		{"MTK", 1234, Quantities{From: bound(0.1234), To: bound(0.1234), Unit: Hectares}, true},
		{"MTK", 1233.9999, Quantities{From: bound(0.1234), Unit: Hectares}, false},
		{"ARE", 6, Quantities{From: bound(600), To: bound(600), Unit: SquareMetres}, true},
		{"KMK", 1, Quantities{From: bound(100), To: bound(100), Unit: Hectares}, true},
		{"H87", 7, Quantities{From: bound(7), Unit: Pieces}, true},
		{"C62", 7, Quantities{Unit: Pieces}, true},
		{"H87", 7, Quantities{Unit: SquareMetres}, false},
		{"MTK", 7, Quantities{Unit: Pieces}, false},
		{"LTR", 7, Quantities{Unit: Pieces}, false},
		{"mtk", 7, Quantities{Unit: SquareMetres}, true},
		{"кв. м", 240.5, Quantities{From: bound(240.5), To: bound(240.5), Unit: SquareMetres}, true},
		{"га", 0.1234, Quantities{From: bound(1234), To: bound(1234), Unit: SquareMetres}, true},
		{"соток", 6, Quantities{From: bound(600), To: bound(600), Unit: SquareMetres}, true},
		{"км2", 1, Quantities{From: bound(100), To: bound(100), Unit: Hectares}, true},
		{"шт", 7, Quantities{Unit: Pieces}, true},
		{"м3", 7, Quantities{Unit: SquareMetres}, false},
		{"MTK", 0, Quantities{Unit: SquareMetres}, false},
		{"MTK", -5, Quantities{Unit: SquareMetres}, false},
		{"MTK", 1e-9, Quantities{Unit: SquareMetres}, false},
		{"MTK", 1e12, Quantities{Unit: SquareMetres}, true},
		{"MTK", 1.1e12, Quantities{Unit: SquareMetres}, false},
		{"HAR", 1e300, Quantities{Unit: Hectares}, false},
		{"KMK", math.MaxFloat64, Quantities{Unit: Hectares}, false},
		{"MTK", 5, Quantities{From: bound(-1e38), To: bound(1e39), Unit: Hectares}, true},
	} {
		of, amount, ok := AmountOf(c.code, c.quantity)
		if got := ok && c.in.Amounts().Has(of, amount); got != c.want {
			t.Errorf("%v %s in %+v: got %t with the amount %d, want %t", c.quantity, c.code, c.in, got, amount, c.want)
		}
	}
}
