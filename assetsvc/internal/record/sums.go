package record

import (
	"cmp"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// Sums are hashes of the fields of a request, which tell whether two requests are the same (docs/contract.md,
// "Idempotency"). A request is compared with a stored one by each hash that both have.
type Sums struct {
	Canonical string // hash of the canonical form, after the version of that form
	Bytes     string // hash of the fields in the order and with the numbers that were sent
}

// canonicalVersion changes whenever Canonical makes another form.
const canonicalVersion = "1:"

// SumsOf returns the sums of the fields of a request. The hashes depend on the text `head`, too. The next release
// stores no Bytes: the program before this one knows nothing else.
func SumsOf(newHash func() hash.Hash, head string, fields Object) Sums {
	sum := func(value Value) string {
		h := newHash()
		h.Write(Append([]byte(head), value))
		return hex.EncodeToString(h.Sum(nil))
	}
	return Sums{canonicalVersion + sum(Canonical(fields)), sum(fields)}
}

// Match reports whether the stored sums are those of the same request.
func (s Sums) Match(stored Sums) bool {
	return s.Canonical == stored.Canonical || s.Bytes == stored.Bytes
}

// Canonical returns the form that all values with the same meaning share: the members of an object are sorted and
// not null, and equal numbers have one text. The order of a list stays.
func Canonical(value Value) Value {
	switch v := value.(type) {
	case Object:
		kept := make(Object, 0, len(v))
		for _, m := range v {
			if m.Value != nil {
				kept = append(kept, Member{m.Name, Canonical(m.Value)})
			}
		}
		slices.SortFunc(kept, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
		return kept
	case List:
		kept := make(List, 0, len(v))
		for _, element := range v {
			kept = append(kept, Canonical(element))
		}
		return kept
	case Number:
		return v.canonical()
	}
	return value
}

// farthest is the bound of the exponents that Number.canonical reads. No field takes a number beyond it.
const farthest = 1_000_000_000_000_000_000

// canonical returns the number as an integer without zeros at its end, and a power of ten. It never writes out the
// power. A number with an exponent of 19 digits or more stays as it is.
func (n Number) canonical() Number {
	text, exponent := string(n), "0"
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		text, exponent = text[:i], text[i+1:]
	}
	text, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits := strings.TrimRight(all, "0")
	if digits == "" {
		return "0"
	}
	power, err := strconv.ParseInt(exponent, 10, 64)
	if err != nil || power <= -farthest || power >= farthest {
		return n
	}
	power += int64(len(all) - len(digits) - len(fraction))
	if negative {
		digits = "-" + digits
	}
	return Number(digits + "e" + strconv.FormatInt(power, 10))
}
