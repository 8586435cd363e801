package assetfilter

import "strings"

// WholeCode stands before a whole code in the search index. The index also has the beginnings of a code, without this
// character.
const WholeCode = "="

// CodePrefix returns the digits with which a code and all codes below it begin. For example, the prefix of
// 04120000-5, 04120000 and 0412 is 0412. ok is false if the text is not a code.
func CodePrefix(code string) (prefix string, ok bool) {
	digits, check, hasCheck := strings.Cut(code, "-")
	if strings.Trim(digits, "0123456789") != "" || len(digits) < 2 || len(digits) > 8 {
		return "", false
	}
	if hasCheck && (len(digits) != 8 || len(check) != 1 || check[0] < '0' || check[0] > '9') {
		return "", false
	}
	if len(digits) < 8 {
		return digits, true
	}
	prefix = strings.TrimRight(digits, "0")
	return digits[:max(2, len(prefix))], true
}

// codeTerm returns the term of a filter for a code. The code itself and all codes below it have this term.
func codeTerm(code string) string {
	prefix, _ := CodePrefix(code)
	return prefix
}

// codeTerms returns the terms of an asset's code: the beginnings of its prefix that have two digits or more, the
// prefix itself, and the whole code with WholeCode in front.
func codeTerms(code string) []string {
	prefix, ok := CodePrefix(code)
	if !ok {
		return nil
	}
	terms := []string{WholeCode + code}
	for n := 2; n <= len(prefix); n++ {
		terms = append(terms, prefix[:n])
	}
	return terms
}
