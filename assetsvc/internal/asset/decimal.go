package asset

import (
	"regexp"
	"strings"

	"github.com/shopspring/decimal"

	"asset-registry/assetsvc/internal/record"
)

// The bounds of decimals (docs/contract.md, "Numbers").
const (
	decimalDigits  = 34  // maximum number of digits of a decimal in plain notation
	decimalLength  = 200 // maximum number of characters of a decimal that a client sends
	quantityPlaces = 4   // fraction digits of a quantity
)

// decimalForm is the form of a decimal that a client may send. parseDecimal also limits the size of the number,
// because a short text such as 1e999999999 may stand for a huge number.
var decimalForm = regexp.MustCompile(`^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?$`)

// parseDecimal returns a decimal in plain notation, without trailing zeros. The decimal is rounded half-up; the
// argument `places` is the number of fraction digits that remain. parseDecimal returns false for a text that is
// not a decimal or exceeds the bounds.
func parseDecimal(written string, places int) (record.Number, bool) {
	if len(written) > decimalLength || !decimalForm.MatchString(written) {
		return "", false
	}
	d, err := decimal.NewFromString(written)
	if err != nil {
		return "", false
	}
	// The first digit has the place value 10^(magnitude-1). The magnitude is checked first, because Round and
	// String would write out a huge number.
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
