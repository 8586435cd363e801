package assetfilter

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
)

// Limits of the terms that one filter takes from one asset.
const (
	MaxTerm  = 512    // bytes of a term; longer terms are dropped
	MaxTerms = 20_000 // different terms; further terms are dropped
)

// OrganisationKey returns the scheme and the id of an organisation, joined by a hyphen, or "" if one of the two
// is missing.
func OrganisationKey(scheme string, id jsontext.Value) string {
	text := IDText(id)
	if scheme == "" || text == "" {
		return ""
	}
	return scheme + "-" + text
}

// IDText returns the id of an organisation as text. An id is a string or a number; for anything else IDText
// returns "".
func IDText(id jsontext.Value) string {
	switch id.Kind() {
	case '0':
		return string(id)
	case '"':
	default:
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, id)
	if err != nil {
		return ""
	}
	return string(text)
}

// Terms returns the terms of an asset, given as JSON, in the form that Set.Meets takes. An asset whose state is
// not one of Statuses has no terms.
func Terms(asset []byte) ([]string, error) {
	a, err := parse(asset)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(Statuses, client.Status(a.Status)) {
		return nil, nil
	}
	var terms []string
	for _, f := range All {
		known := map[string]bool{}
		f.Each(a, func(term, _, _ string) {
			if term != "" && len(term) <= MaxTerm && len(known) < MaxTerms {
				known[term] = true
			}
		})
		for term := range known {
			terms = append(terms, termOf(f.Name, term))
		}
	}
	slices.Sort(terms)
	return terms, nil
}

// termOf returns a filter's term with the filter's name in front, so that terms of different filters differ. No
// name contains a "=".
func termOf(name Name, term string) string { return string(name) + "=" + term }
