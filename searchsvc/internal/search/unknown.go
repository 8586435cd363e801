package search

import (
	"net/url"
	"slices"
	"strings"
)

// Unknown is a parameter that a search does not have.
type Unknown struct{ Name, Nearest string }

// Params returns the parameters of a search, in the order of documents.
func Params() []string {
	all := append([]string{textParam, exactParam}, FilterParams()...)
	return append(all, sortParam, limitParam, afterParam, facetsParam, facetLimitParam)
}

// FindUnknown returns the parameters that a route does not have, in the order of their names,
// each with the nearest one that it has. Those of all routes are opt_*, acc_token and _.
func FindUnknown(values url.Values, known []string) (all []Unknown) {
	for name := range values {
		if strings.HasPrefix(name, "opt_") || name == "acc_token" || name == "_" || slices.Contains(known, name) {
			continue
		}
		all = append(all, Unknown{name, nearest(name, known)})
	}
	slices.SortFunc(all, func(a, b Unknown) int { return strings.Compare(a.Name, b.Name) })
	return all
}

const comparedLength = 32 // characters of a name that are compared

// nearest returns the name of a list with the fewest other letters.
func nearest(name string, known []string) (best string) {
	letters := []rune(strings.ToLower(name))
	letters = letters[:min(len(letters), comparedLength)]
	least := 2 * comparedLength
	for _, other := range known {
		if n := distance(letters, []rune(other)); n < least {
			best, least = other, n
		}
	}
	return best
}

// distance returns how many letters have to be changed, added, left out, or swapped with their
// neighbour.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := range a {
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			n := min(rows[i][j]+cost, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				n = min(n, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = n
		}
	}
	return rows[len(a)][len(b)]
}
