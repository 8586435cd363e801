package search

import (
	"net/url"
	"slices"
	"strings"

	"asset-registry/shared/nearest"
)

// Unknown is a parameter that a search does not have.
type Unknown struct{ Name, Nearest string }

// Params returns the parameters of a search, in the order in which documents list them.
func Params() []string {
	all := append([]string{textParam, exactParam}, FilterParams()...)
	return append(all, sortParam, limitParam, afterParam, facetsParam, facetLimitParam)
}

// maxUnknown is the largest number of unknown parameters that an answer names.
const maxUnknown = 10

// FindUnknown returns the first ten parameters that a route does not have, sorted by name, each with the most
// similar parameter that the route has. It leaves out opt_*, acc_token and _, which all routes have.
func FindUnknown(values url.Values, known []string) (all []Unknown) {
	var names []string
	for name := range values {
		if strings.HasPrefix(name, "opt_") || name == "acc_token" || name == "_" || slices.Contains(known, name) {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), maxUnknown)] {
		all = append(all, Unknown{name, nearest.To(name, known)})
	}
	return all
}
