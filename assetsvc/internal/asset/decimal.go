package asset

import (
	"regexp"
	"strings"

	"github.com/shopspring/decimal"

	"asset-registry/assetsvc/internal/record"
)

// The bounds of decimals (docs/contract.md, "Numbers").
const (
	decimalDigits  = 34  // digits of a decimal in plain notation
	decimalLength  = 200 // characters of a decimal as sent
	quantityPlaces = 4   // fraction digits of a quantity
)

// decimalForm is the form of a decimal that a client may send. parseDecimal also
// bounds its size: 1e999999999 is a short text and a huge number.
var decimalForm = regexp.MustCompile(`^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?$`)

// parseDecimal returns a decimal in plain notation, rounded half-up to a number of
// fraction digits, without trailing zeros. It returns false for text that is no
// decimal or exceeds the bounds.
func parseDecimal(written string, places int) (record.Number, bool) {
	if len(written) > decimalLength || !decimalForm.MatchString(written) {
		return "", false
	}
	d, err := decimal.NewFromString(written)
	if err != nil {
		return "", false
	}
	// The first digit counts 10^(magnitude-1). Check it before Round or String
	// write out a huge number.
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
