package index

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/ukrainian"
)

// Limits of one list of suggestions.
const (
	leastAsked = 2  // least letters of the last word
	mostBegun  = 64 // terms of a field that are kept in a segment
	nameWords  = 12 // words of a name that are compared with a question
	fromWords  = 4  // first words of a name with which a suggestion may begin, and last words that may begin a place

	suggestWork = mostWork / 12 // the largest work of one list
)

// suggestion is a text, and the number of assets that have it.
type suggestion struct {
	text  string
	count uint64
	word  string // the last word of the text, if it comes from a title
}

// Suggest returns texts that continue the last words of a question, the most frequent first: words of titles,
// names of regions and localities, codes with their names, and names of custodians. Each text finds an asset that meets
// the filters, without second tries. Forms of one word are one suggestion. If nothing continues the question, Suggest
// reads it in the other layout of the keyboard.
func (x *Index) Suggest(ctx context.Context, q search.Query) (all []string, err error) {
	v := x.acquire()
	if v == nil {
		return nil, nil
	}
	defer v.release()
	words := &vocabulary{view: v, left: suggestWork}
	for _, q.Text = range meaning.Layouts(q.Text) {
		if all, err = v.suggest(ctx, q, words); len(all) > 0 || err != nil {
			break
		}
	}
	return all, orLate(cmp.Or(err, words.err))
}

// suggest returns the suggestions for a question, which is read in one layout.
func (v *view) suggest(ctx context.Context, q search.Query, words *vocabulary) (all []string, err error) {
	found, err := v.completions(ctx, q, words)
	slices.SortFunc(found, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.text, b.text))
	})
	var forms []string // keys of the words that are suggested
	for _, s := range found {
		keys := slices.Concat(ukrainian.Words(s.word)...)
		isForm := slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(forms, key) })
		if err != nil || len(all) == search.MaxSuggestions || isForm || slices.Contains(all, s.text) {
			continue
		}
		q.Text = s.text
		p, isGood := newPlan(q, search.Reading{}), false
		if isGood, err = v.finds(ctx, &p, words); isGood {
			all, forms = append(all, s.text), append(forms, keys...)
		}
	}
	return all, err
}

// finds reports whether a plan finds an asset. It finds nothing if too little work is left.
func (v *view) finds(ctx context.Context, p *plan, words *vocabulary) (bool, error) {
	for i := range v.parts {
		if !words.spend(v.cost(p) / int64(len(v.parts))) {
			break
		}
		if m, err := v.parts[i].match(ctx, p); err != nil || !m.found.IsEmpty() {
			return err == nil, err
		}
	}
	return false, nil
}

// completions returns all texts that may be suggested, in no particular order.
func (v *view) completions(ctx context.Context, q search.Query, words *vocabulary) (found []suggestion, err error) {
	text := q.Text
	add := func(at int, field, beginning string, write func(term string) string) {
		if err != nil || utf8.RuneCountInString(beginning) < leastAsked || len(words.begins(field, beginning, 1)) == 0 {
			return
		}
		q.Text = text[:at]
		p := newPlan(q, search.Reading{})
		if !words.spend(v.cost(&p)) {
			return
		}
		within, _, failed := v.match(ctx, &p)
		if err = failed; err == nil {
			err = words.begun(&found, within, field, beginning, func(term string) string { return text[:at] + write(term) })
		}
	}
	add(0, custodianField, normalForm(text), nameIn)
	last := strings.LastIndexByte(text, ' ') + 1
	for at, n := last, 0; n < fromWords; n++ { // a name of a place may have several words
		for _, name := range []search.FacetName{search.ByRegion, search.ByLocality} {
			add(at, search.PropertyOf(name).Names, normalForm(text[at:]), nameIn)
		}
		at = strings.LastIndexByte(text[:max(at-1, 0)], ' ') + 1
	}
	asked := ukrainian.Ask(text[last:])
	if len(asked) != 1 || utf8.RuneCountInString(asked[0].Text) < leastAsked {
		return found, err
	}
	if property := search.PropertyOf(search.ByClassification); last == 0 {
		add(0, property.Field, assetfilter.WholeCode+asked[0].Text, func(term string) string {
			code := strings.TrimPrefix(term, assetfilter.WholeCode)
			name, failed := v.saidName(property.Names, code) // searches do not find the names in the operator's lists
			err = cmp.Or(err, failed)
			return strings.TrimSpace(code + " " + name)
		})
	}
	add(last, exactField, asked[0].Text, func(term string) string { return term })
	return found, err
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

// begun adds the texts of a field's terms that begin with a text, and that assets of the given matches have. Each
// segment gets an equal share of the work that is left.
func (v *vocabulary) begun(
	found *[]suggestion, within []match, field, beginning string, write func(term string) string,
) error {
	from, until := beginningOf(cut(beginning, maxTerm))
	first := len(*found)
	for i, r := range v.readers(field) {
		terms, kept := r.dictionary.AutomatonIterator(anything{}, from, until), 0
		for least := v.left - v.left/int64(len(within)-i); kept < mostBegun && v.left > least; {
			entry, err := terms.Next()
			if err != nil || entry == nil || !v.spend(lookupWork+int64(entry.Count)/assetsAMove) {
				v.err = cmp.Or(v.err, err)
				break
			}
			having, err := r.postings(entry.Term)
			if err != nil {
				return err
			}
			living := roaring.New()
			having.addTo(living)
			count := living.AndCardinality(within[i].found)
			if count == 0 {
				continue
			}
			kept++
			s := suggestion{text: write(entry.Term), count: count}
			if field == exactField {
				s.word = entry.Term
			}
			if at := slices.IndexFunc((*found)[first:], func(f suggestion) bool { return f.text == s.text }); at >= 0 {
				(*found)[first+at].count += count
			} else {
				*found = append(*found, s)
			}
		}
	}
	return v.err
}
