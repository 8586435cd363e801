package search

import "strings"

// CodePrefix returns the digits with which the codes below a code begin: 0412 for
// 04120000-5, 04120000 and 0412. ok is false if the text is no code.
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

// CodeLevel returns the number of digits by which the facet of classifications counts: the
// next level below the longest filter.
func (f Filters) CodeLevel() int {
	longest := 0
	for _, code := range f.Classifications {
		if prefix, ok := CodePrefix(code); ok {
			longest = max(longest, len(prefix))
		}
	}
	levels := PropertyOf(ByClassification).Levels
	for _, level := range levels {
		if level > longest {
			return level
		}
	}
	return levels[len(levels)-1]
}
