package index

import (
	"cmp"
	"context"
	"reflect"
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
	leastAsked = 2   // least letters of the last word
	mostBegun  = 64  // terms of a field that are kept in a segment, at most
	inAll      = 128 // terms of a field that are kept in all segments together
	nameWords  = 12  // words of a name that are compared with a question
	fromWords  = 4   // first words of a name with which a suggestion may begin, and last words that may begin a place
	manyTested = 512 // assets whose columns are compared with ranges at a time

	suggestWork = mostWork / 12 // the largest work of one list
	testWork    = 100           // comparing the columns of manyTested assets
	seekWork    = 100           // finding the first term of a range
	shareOfWork = 8             // a text is tested with one of so many parts of the work that is left
)

// suggestion is a text, and the number of assets that have it. The numbers do not regard ranges.
type suggestion struct {
	text  string
	count uint64
	word  string // the last word of the text, if it comes from a title
	after *found // the assets that the text before the beginning finds
}

// found has the assets that a question finds, ranges aside.
type found struct {
	plan
	sets  []match // for each segment
	isAll []bool  // for each segment: it finds all assets
}

// suggester makes one list of suggestions.
type suggester struct {
	*view
	*vocabulary
	q       search.Query
	byText  map[string]*found // for texts before a beginning
	matched map[[2]string]int // for the field and the text of a suggestion: its index in `all`
	all     []suggestion
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

func (v *view) suggester(q search.Query, words *vocabulary) *suggester {
	return &suggester{view: v, vocabulary: words, q: q, byText: map[string]*found{}, matched: map[[2]string]int{}}
}

// suggest returns the suggestions for a question, which is read in one layout.
func (v *view) suggest(ctx context.Context, q search.Query, words *vocabulary) (all []string, err error) {
	s := v.suggester(q, words)
	if err := s.complete(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(s.all, func(a, b suggestion) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.text, b.text))
	})
	var forms []string // keys of the words that are suggested
	for _, one := range s.all {
		keys := slices.Concat(ukrainian.Words(one.word)...)
		isForm := slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(forms, key) })
		if isForm || slices.Contains(all, one.text) {
			continue
		}
		isGood, err := s.finds(ctx, one.text, one.after)
		if err != nil {
			return nil, err
		}
		if isGood {
			all, forms = append(all, one.text), append(forms, keys...)
		}
		if len(all) == search.MaxSuggestions {
			break
		}
	}
	return all, nil
}

// planOf returns the plan of a text with the filters, and the ranges, which the plan does not have.
func (s *suggester) planOf(text string) (p plan, ranges []search.Filters) {
	q := s.q
	q.Text = text
	p = newPlan(q, search.Reading{})
	ranges = []search.Filters{q.Filters, {Quantity: p.within.Quantities}}
	p.within, p.Filters = search.Range{}, search.Filters{}
	return p, ranges
}

// before returns the assets that a text before a beginning finds. It returns nil if too little work is left.
func (s *suggester) before(ctx context.Context, text string) (*found, error) {
	if f, ok := s.byText[text]; ok {
		return f, nil
	}
	p, _ := s.planOf(text)
	if !s.spend(s.cost(&p)) {
		return nil, nil
	}
	f := &found{plan: p}
	var err error
	f.sets, _, err = s.match(ctx, &p)
	for _, m := range f.sets {
		f.isAll = append(f.isAll, m.found.GetCardinality() == uint64(m.count))
	}
	s.byText[text] = f
	return f, err
}

// finds reports whether a text finds an asset. It shares the assets that the beginning of the text finds. It reports
// false if too little work is left.
func (s *suggester) finds(ctx context.Context, text string, after *found) (bool, error) {
	p, ranges := s.planOf(text)
	n := len(after.words)
	if len(p.words) < n || !reflect.DeepEqual(p.words[:n], after.words) { // the last words are read otherwise than before
		var err error
		if after, err = s.before(ctx, ""); after == nil || err != nil {
			return false, err
		}
		n = 0
	}
	p.words = p.words[n:]
	for i := range s.parts {
		if !s.spend(s.cost(&p) / int64(len(s.parts))) {
			break
		}
		m := match{part: &s.parts[i], found: after.sets[i].found}
		for _, w := range p.words {
			if w.isRange {
				continue
			}
			for _, made := range w.phrases {
				for i := range made {
					made[i].in = m.found
				}
			}
			set, err := m.meeting(w, wordField)
			if err != nil {
				return false, err
			}
			set.And(m.found)
			m.found = set
		}
		if is, err := s.hasOneIn(ctx, m, ranges); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// hasOneIn reports whether one of the found assets is in all ranges. It compares some of them at a time, until its
// share of the work is done.
func (s *suggester) hasOneIn(ctx context.Context, m match, ranges []search.Filters) (bool, error) {
	numbers, all := make([]uint32, manyTested), m.found.ManyIterator()
	for least := s.left - s.left/shareOfWork; s.left > least && s.spend(testWork); {
		some := match{part: m.part, found: roaring.New()}
		n := all.NextMany(numbers)
		some.found.AddMany(numbers[:n])
		for _, in := range ranges {
			if err := some.ranges(ctx, in); err != nil {
				return false, err
			}
		}
		if n == 0 || !some.found.IsEmpty() {
			return n > 0, nil
		}
	}
	return false, nil
}

// complete finds all texts that may be suggested, in no particular order.
func (s *suggester) complete(ctx context.Context) (err error) {
	text := s.q.Text
	add := func(at int, field, beginning string, write func(term string) string) {
		if err == nil && utf8.RuneCountInString(beginning) >= leastAsked {
			err = s.begun(ctx, text[:at], field, beginning, write)
		}
	}
	add(0, custodianField, normalForm(text), nameIn)
	last := strings.LastIndexByte(text, ' ') + 1
	for at, n := last, 0; ; n++ { // a name of a place may have several words
		for _, name := range []search.FacetName{search.ByRegion, search.ByLocality} {
			add(at, search.PropertyOf(name).Names, normalForm(text[at:]), nameIn)
		}
		if at == 0 || n == fromWords-1 {
			break
		}
		at = strings.LastIndexByte(text[:at-1], ' ') + 1
	}
	asked := ukrainian.Ask(text[last:])
	if len(asked) != 1 || utf8.RuneCountInString(asked[0].Text) < leastAsked {
		return err
	}
	if property := search.PropertyOf(search.ByClassification); last == 0 {
		add(0, property.Field, assetfilter.WholeCode+asked[0].Text, func(term string) string {
			code := strings.TrimPrefix(term, assetfilter.WholeCode)
			name, failed := s.saidName(property.Names, code) // searches do not find the names in the operator's lists
			err = cmp.Or(err, failed)
			return strings.TrimSpace(code + " " + name)
		})
	}
	add(last, exactField, asked[0].Text, func(term string) string { return term })
	return err
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

// begun adds the texts of a field's terms that have a beginning, and that assets with the words `before` have. Each
// segment gets an equal share of half of the work that is left: the other half is for the tests of the texts.
func (s *suggester) begun(ctx context.Context, before, field, beginning string, write func(string) string) error {
	var after *found
	from, until := beginningOf(cut(beginning, maxTerm))
	for i, r := range s.readers(field) {
		if !s.spend(seekWork) {
			break
		}
		terms, kept := r.dictionary.AutomatonIterator(anything{}, from, until), 0
		for least := s.left - s.left/2/int64(len(s.parts)-i); kept < min(mostBegun, 1+inAll/len(s.parts)) && s.left > least; {
			entry, err := terms.Next()
			if err != nil || entry == nil || !s.spend(lookupWork+int64(entry.Count)/assetsAMove) {
				s.err = cmp.Or(s.err, err)
				break
			}
			if after == nil {
				if after, err = s.before(ctx, before); after == nil || err != nil {
					return err
				}
			}
			count := entry.Count
			if !after.isAll[i] {
				having, err := r.postings(entry.Term)
				if err != nil {
					return err
				}
				count = having.countIn(after.sets[i].found)
			}
			if count == 0 {
				continue
			}
			kept++
			text := before + write(entry.Term)
			key := [2]string{field, text}
			at, isKnown := s.matched[key]
			if !isKnown {
				at = len(s.all)
				s.matched[key], s.all = at, append(s.all, suggestion{text: text, after: after})
			}
			if s.all[at].count += count; field == exactField {
				s.all[at].word = entry.Term
			}
		}
	}
	return s.err
}
