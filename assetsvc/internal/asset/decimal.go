package asset

import (
	"regexp"
	"strings"

	"github.com/shopspring/decimal"

	"asset-registry/assetsvc/internal/record"
)

// The bounds of decimals (contract, decision 11).
const (
	decimalDigits  = 34 // of a decimal as it is written out
	quantityPlaces = 4  // fraction digits of a quantity, rounded half-up beyond
)

// decimalForm is how decimals may be sent. The length of what goes into the
// library is bounded here, and its exponent below: 1e999999999 is a short text
// and a long number.
var decimalForm = regexp.MustCompile(`^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?$`)

const decimalLength = 200 // characters

// parseDecimal returns a decimal in plain notation without trailing zeros,
// rounded half-up to so many fraction digits, and whether it is one.
func parseDecimal(written string, places int) (record.Number, bool) {
	if len(written) > decimalLength || !decimalForm.MatchString(written) {
		return "", false
	}
	d, err := decimal.NewFromString(written)
	if err != nil {
		return "", false
	}
	// The first digit stands for 10^(magnitude-1).
	switch magnitude := d.NumDigits() + int(d.Exponent()); {
	case d.IsZero() || magnitude < -places:
		return "0", true
	case magnitude > decimalDigits:
		return "", false
	}
	plain := d.Round(int32(places)).String()
	if digits := len(strings.Trim(plain, "-")) - strings.Count(plain, "."); digits > decimalDigits {
		return "", false
	}
	return record.Number(plain), true
}
