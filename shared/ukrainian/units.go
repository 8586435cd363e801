package ukrainian

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// UnitForms are the units whose quantities searches compare and add up, by their codes of UN/CEFACT Recommendation 20.
// Each has the forms in which lists of offices write it, separated by commas.
var UnitForms = map[string]string{
	"MTK": "м², м2, м^2, м кв., кв. м, кв.м, кв. метр, кв. метри, кв. метрів, квадратний метр, квадратні метри, " +
		"квадратних метрів, метр квадратний, метри квадратні, метрів квадратних, m², m2, sq. m, sqm, square metre, " +
		"square metres, square meter, square meters",
	"ARE": "ар, ари, арів, сотка, сотки, соток, сот., are, ares",
	"HAR": "га, гектар, гектари, гектара, гектарів, ha, hectare, hectares",
	"KMK": "км², км2, кв. км, кв.км, квадратний кілометр, квадратні кілометри, квадратних кілометрів, km², km2, " +
		"sq. km, sqkm, square kilometre, square kilometres, square kilometer, square kilometers",
	"H87": "шт., штука, штуки, штук, pcs, piece, pieces",
	"C62": "од., одиниця, одиниці, одиниць",
}

// unitCodes has the codes by the keys of their forms.
var unitCodes = func() map[string]string {
	codes := map[string]string{}
	for code, forms := range UnitForms {
		codes[code], codes[unitKey(code)] = code, code
		for form := range strings.SplitSeq(forms, ", ") {
			codes[unitKey(form)] = code
		}
	}
	return codes
}()

// Unit returns the code in UnitForms that a text means: the code itself, or a form of it with any blanks, full stops
// and capital letters. It returns "" for another text.
func Unit(text string) string {
	if len(text) > maxUnit {
		return ""
	}
	if code := unitCodes[text]; code != "" {
		return code
	}
	return unitCodes[unitKey(text)]
}

// maxUnit is the maximum number of bytes of a form, with its blanks.
const maxUnit = 100

// unitKey returns a form of a unit without the differences that do not count.
func unitKey(form string) string {
	key := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '.', r == '^':
			return -1
		case r == '²':
			return '2'
		}
		return unicode.ToLower(r)
	}, form)
	if strings.ContainsFunc(key, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		key = latinAlike.Replace(key)
	}
	return key
}

// latinAlike replaces Latin letters that look like Cyrillic ones.
var latinAlike = strings.NewReplacer("a", "а", "e", "е", "k", "к", "m", "м", "o", "о", "p", "р", "i", "і", "t", "т",
	"c", "с")

// EachUnit calls the function `visit` for each code and each of its forms, sorted by the code.
func EachUnit(visit func(code, form string)) {
	for _, code := range slices.Sorted(maps.Keys(UnitForms)) {
		visit(code, code)
		for form := range strings.SplitSeq(UnitForms[code], ", ") {
			visit(code, form)
		}
	}
}
