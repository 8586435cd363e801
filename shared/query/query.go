// Package query reads the query string of a question (docs/contract.md, "Requests and answers").
package query

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/shared/fault"
	"asset-registry/shared/nearest"
)

// Params are the parameters of a route. All routes have opt_*, acc_token and _, too.
type Params struct {
	Names  []string
	Lists  []string // those of Names that a request may repeat
	IsPage bool     // another parameter is a fault only if its name is similar to one of Names: sites add some to links
}

// Whole is the name of a fault in a part of a query string whose name cannot be read.
const Whole = "query"

// Twice is the description of a parameter that may stand once.
const Twice = "The parameter may stand once."

// maxFaults is the largest number of unreadable parts, and of unknown parameters, that an answer names.
const maxFaults = 10

// Read returns the parameters of a query string that can be read, without empty ones, and every fault: parts that are
// malformed or not UTF-8, unknown parameters, and repeated ones.
func Read(raw string, of Params) (url.Values, []fault.Detail) {
	values, faults := url.Values{}, []fault.Detail(nil)
	add := func(name, description string) {
		faults = append(faults, fault.Detail{Location: fault.Query, Name: name, Description: description})
	}
	for part := range strings.SplitSeq(raw, "&") {
		if len(faults) == maxFaults {
			break
		}
		pair, err := url.ParseQuery(part)
		key, value, _ := strings.Cut(part, "=")
		name, unreadable := url.QueryUnescape(key)
		if unreadable != nil || !utf8.ValidString(name) || strings.Contains(key, ";") {
			name = Whole
		}
		switch {
		case err != nil:
			add(name, "The query string is malformed: a % needs two hexadecimal digits, and & separates parameters.")
		case value == "":
		case !utf8.ValidString(pair.Get(name)) || !pair.Has(name):
			add(name, "could not decode params: the query string is not valid UTF-8")
		default:
			values[name] = append(values[name], pair[name]...)
		}
	}
	unknown := 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		near := nearest.To
		if of.IsPage {
			near = nearest.Near
		}
		switch {
		case strings.HasPrefix(name, "opt_") || name == "acc_token" || name == "_":
		case !slices.Contains(of.Names, name):
			if unknown == maxFaults {
				continue
			}
			if other := near(name, of.Names); other != "" {
				unknown++
				add(name, "There is no such parameter; the nearest is "+other+".")
			}
		case len(values[name]) > 1 && !slices.Contains(of.Lists, name):
			add(name, Twice)
		}
	}
	return values, faults
}
