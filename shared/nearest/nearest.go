// Package nearest finds, for a misspelled name, the name that was probably meant.
package nearest

import "strings"

// comparedLength is the number of characters that are compared. No name of a field, a
// parameter or a code is longer. The number limits the time of a comparison.
const comparedLength = 32

// To returns the value of a list with the smallest edit distance to the sent text, or "" for an empty list. It
// ignores case, and compares only the first 32 characters of a text. Among equally near values, it prefers the value
// with the longest common beginning.
func To(sent string, of []string) string {
	best, _ := search(compared(sent), of)
	return best
}

// Near returns the same value as To if this value is probably meant. It is probably meant if its edit distance
// to the sent text is at most a third of the length of the sent text. Otherwise Near returns "".
func Near(sent string, of []string) string {
	text := compared(sent)
	if best, distance := search(text, of); 3*distance <= len(text) {
		return best
	}
	return ""
}

// search returns the result of the function To, and the distance of this result from the text.
func search(text []rune, of []string) (best string, least int) {
	least = comparedLength + 1
	longest := 0
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
	return best, least
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

// Distance returns the edit distance of two texts: the least number of letters that are added, left out or replaced, or
// swapped with their neighbours, to make one text of the other.
func Distance(a, b string) int { return distance([]rune(a), []rune(b)) }

func distance(a, b []rune) int {
	// The elements are distances of each beginning of text b from beginnings of text a: from the part of text a that
	// was read so far (row), from the part without its last letter (before), and with the next letter (next).
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		next[0] = i + 1
		for j := range b {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
