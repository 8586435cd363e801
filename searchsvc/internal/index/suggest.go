package index

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/searchsvc/internal/ukrainian"
)

// The bounds of one list of suggestions.
const (
	leastAsked   = 2  // letters of the last word
	mostBegun    = 64 // words of titles, and values of a property, that are looked at
	leastForPage = 1  // assets that a suggestion finds
)

// suggestion is a text with the assets that have it.
type suggestion struct {
	text  string
	count uint64
}

// Suggest returns texts that begin with the last word of a question, the most frequent first: words of
// titles, names of regions and localities, and codes with their names.
func (x *Index) Suggest(_ context.Context, text string) (all []string, err error) {
	v := x.acquire()
	if v == nil {
		return nil, nil
	}
	defer v.release()
	before, last := splitLast(text)
	if len([]rune(last)) < leastAsked {
		return nil, nil
	}
	var found []suggestion
	words, err := v.begun(exactField, last)
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		found = append(found, suggestion{before + w.text, w.count})
	}
	if before == "" {
		for _, name := range []search.FacetName{search.ByRegion, search.ByLocality, search.ByClassification} {
			values, err := v.begun(search.PropertyOf(name).Names, last)
			if err != nil {
				return nil, err
			}
			for _, value := range values {
				found = append(found, suggestion{nameOf(name, value.text), value.count})
			}
		}
	}
	slices.SortFunc(found, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.text, b.text))
	})
	for _, s := range found {
		if s.count >= leastForPage && !slices.Contains(all, s.text) && len(all) < search.MaxSuggestions {
			all = append(all, s.text)
		}
	}
	return all, nil
}

// splitLast returns a question up to its last word, and this word in its normal form.
func splitLast(text string) (before, last string) {
	text = strings.TrimLeft(text, " ")
	at := strings.LastIndexByte(text, ' ') + 1
	asked := ukrainian.Ask(text[at:])
	if len(asked) != 1 {
		return "", ""
	}
	return text[:at], asked[0].Text
}

// nameOf returns how people write a value of a property with a name.
func nameOf(property search.FacetName, term string) string {
	value, name, _ := strings.Cut(term, nameSeparator)
	if property == search.ByClassification {
		return value + " " + name
	}
	return name
}

// begun returns terms of a field that begin so, with the assets that have them.
func (v *view) begun(field, beginning string) (all []suggestion, err error) {
	from, until := beginningOf(cut(beginning, maxTerm))
	for i := range v.parts {
		r, err := newReader(v.parts[i].segment, field)
		if err != nil {
			return nil, err
		}
		terms := r.dictionary.AutomatonIterator(anything{}, from, until)
		for range mostBegun {
			entry, err := terms.Next()
			if err != nil {
				return nil, err
			}
			if entry == nil {
				break
			}
			at := slices.IndexFunc(all, func(s suggestion) bool { return s.text == entry.Term })
			if at < 0 {
				at = len(all)
				all = append(all, suggestion{text: entry.Term})
			}
			all[at].count += entry.Count
		}
	}
	return all, nil
}
