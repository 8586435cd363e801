package index

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	index "github.com/blevesearch/bleve_index_api"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/ukrainian"
)

// Limits of one list of suggestions.
const (
	leastAsked = 2  // least letters of the last word
	mostBegun  = 64 // maximum number of words of titles that are read, and of values of a property
	nameWords  = 12 // words of a name that are compared with a question
	fromWords  = 4  // first words of a name with which a suggestion may begin
)

// suggestion is a text, and the number of assets that have it.
type suggestion struct {
	text  string
	count uint64
}

// Suggest returns texts that continue the last word of a question, the most frequent first: words of titles,
// names of regions and localities, codes with their names, and names of custodians. It counts only assets that
// can be found.
func (x *Index) Suggest(_ context.Context, text string) (all []string, err error) {
	v := x.acquire()
	if v == nil {
		return nil, nil
	}
	defer v.release()
	found, err := v.completions(text)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.text, b.text))
	})
	for _, s := range found {
		if s.count > 0 && !slices.Contains(all, s.text) && len(all) < search.MaxSuggestions {
			all = append(all, s.text)
		}
	}
	return all, nil
}

// completions returns all texts that may be suggested, in no particular order.
func (v *view) completions(text string) (found []suggestion, err error) {
	add := func(field, beginning string, write func(term string) string) {
		if err != nil || utf8.RuneCountInString(beginning) < leastAsked {
			return
		}
		terms, failed := v.begun(field, beginning)
		err = failed
		for _, s := range terms {
			found = append(found, suggestion{write(s.text), s.count})
		}
	}
	before, last := splitLast(text)
	add(exactField, last, func(term string) string { return before + term })
	add(custodianField, normalForm(text), nameIn)
	if before == "" {
		for _, name := range []search.FacetName{search.ByRegion, search.ByLocality} {
			add(search.PropertyOf(name).Names, last, nameIn)
		}
		property := search.PropertyOf(search.ByClassification)
		if utf8.RuneCountInString(last) < leastAsked {
			return found, err
		}
		add(property.Field, assetfilter.WholeCode+last, func(term string) string {
			code := strings.TrimPrefix(term, assetfilter.WholeCode)
			name, failed := v.saidName(property.Names, code) // searches do not find the names in the operator's lists
			err = cmp.Or(err, failed)
			return strings.TrimSpace(code + " " + name)
		})
	}
	return found, err
}

// splitLast splits a question before its last word. It returns the text before the last word, and the normal form of
// the last word.
func splitLast(text string) (before, last string) {
	text = strings.TrimLeft(text, " ")
	at := strings.LastIndexByte(text, ' ') + 1
	asked := ukrainian.Ask(text[at:])
	if len(asked) != 1 {
		return "", ""
	}
	return text[:at], asked[0].Text
}

// nameTerms returns the terms from which suggestions take a name. Each term begins with the normal form of the name,
// or of its end from the second, third or fourth word on. Each term ends with the name itself. A name that is too long
// for a term has no terms.
func nameTerms(name string) (terms []string) {
	if name = strings.TrimSpace(name); len(name) > maxKey-maxTerm-len(nameSeparator) {
		return nil
	}
	rest := normalForm(name)
	for range fromWords {
		if rest != "" {
			terms = append(terms, cut(rest, maxTerm)+nameSeparator+name)
		}
		_, rest, _ = strings.Cut(rest, " ")
	}
	return terms
}

// normalForm returns the first words of a text in their normal form.
func normalForm(text string) string {
	var words []string
	for w := range ukrainian.Written(text, nameWords) {
		words = append(words, w.Text)
	}
	return strings.Join(words, " ")
}

// nameIn returns the name from a term that has a value and its name.
func nameIn(term string) string {
	_, name, _ := strings.Cut(term, nameSeparator)
	return name
}

// begun returns terms of a field that begin with a text. For each term, it also returns the number of assets that
// have the term.
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
			count, err := v.parts[i].living(r, entry)
			if err != nil {
				return nil, err
			}
			all[at].count += count
		}
	}
	return all, nil
}

// living returns how many assets of the segment have a term. Assets that are not in the view do not count.
func (p *part) living(r *reader, entry *index.DictEntry) (uint64, error) {
	if p.deleted == nil || p.deleted.IsEmpty() {
		return entry.Count, nil
	}
	list, err := r.dictionary.PostingsList([]byte(entry.Term), p.deleted, nil)
	if err != nil {
		return 0, err
	}
	return list.Count(), nil
}
