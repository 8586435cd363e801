package asset

import (
	"fmt"
	"strings"
)

// The bounds of the searches for a nearest value. They bound the time that a
// client can make one request take.
const (
	comparedLength = 32 // characters compared; no field name or code is longer
	maxNearest     = 50 // searches in one request
)

// nearest returns the end of an error that suggests the nearest value of a list,
// "" for an empty list and after maxNearest searches.
func (w *walk) nearest(sent string, of []string) string {
	if w.compared >= maxNearest || len(of) == 0 {
		return ""
	}
	w.compared++
	return fmt.Sprintf(": the nearest is '%s'", nearest(sent, of))
}

// nearest returns the value of a list with the smallest edit distance to sent. It
// ignores case. Among equally near values, the one with the longest common
// beginning wins.
func nearest(sent string, of []string) string {
	text := compared(sent)
	best, least, longest := "", comparedLength+1, 0
	for _, candidate := range of {
		other := compared(candidate)
		d, same := distance(text, other), 0
		for same < min(len(text), len(other)) && text[same] == other[same] {
			same++
		}
		if d < least || d == least && same > longest {
			best, least, longest = candidate, d, same
		}
	}
	return best
}

// compared returns the first comparedLength characters of a text, in lower case.
func compared(text string) []rune {
	n := 0
	for i := range text {
		if n++; n > comparedLength {
			text = text[:i]
			break
		}
	}
	return []rune(strings.ToLower(text))
}

// distance returns the Levenshtein distance of two texts.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1) // the distances from a's characters so far to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
