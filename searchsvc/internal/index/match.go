package index

import (
	"context"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/ukrainian"
)

// condition is met by the assets that have at least one of the terms in a field.
type condition struct {
	field string
	terms []string
	begin bool             // each element of `terms` is the beginning of terms, and stands for at most mostEndings
	of    search.FacetName // the property whose filter this condition is; "": the condition is no filter
	in    *roaring.Bitmap  // only these assets may meet the condition; nil: all assets may
}

// mostEndings is the largest number of terms that a beginning stands for in one segment.
const mostEndings = 64

// asked is a word of a question. It is met by the assets that meet at least one of its phrases.
type asked struct {
	phrases []phrase
	isFixed bool   // the word must not be missing
	isRange bool   // the word is one of a range, so it only has to stand in titles (plan.within)
	exact   string // the word as the question spells it; "" if the search looks for other words instead
}

// plan is a question, translated into terms of the index.
type plan struct {
	search.Query
	reading search.Reading
	within  search.Range // the range that the words have; zero: none
	words   []asked
	pairs   [][]string // for each pair of neighbouring words: the terms of the pair in pairField
	filters []condition
	weigh   []int64 // weight of each word, for the order by relevance
	literal *plan   // the words as they were asked, if the reading has search.ByAlso; its assets come first
	matches []match // of a literal plan
}

// newPlan returns the plan of a question. If the reading has no words, it uses the words of the question's text.
func newPlan(q search.Query, r search.Reading) plan {
	p := plan{Query: q, reading: r}
	if in, ok := q.Range(); ok {
		p.within, p.Text = in, in.Rest
	}
	if r.Has(search.ByAlso) {
		literal := newPlan(q, search.Reading{})
		p.literal = &literal
	}
	if len(r.Words) > 0 {
		p.addReading(r)
	} else {
		words := ukrainian.Ask(p.Text)
		rest := len(words)
		words = append(words, ukrainian.Ask(p.within.Words)...)
		for i, key := range ukrainian.Former(words, q.Filters.ValuesOf(search.ByRegion)) {
			words[i].Keys = slices.Concat(words[i].Keys, []string{key})
		}
		for i, a := range words {
			p.words = append(p.words, asked{phrases: phrasesOf(a), exact: a.Text, isRange: i >= rest})
			if i > 0 {
				p.pairs = append(p.pairs, pairsOf(words[i-1].Keys, a.Keys))
			}
		}
	}
	for _, property := range search.Properties {
		values := q.Filters.ValuesOf(property.Name)
		if len(values) == 0 {
			continue
		}
		c := condition{field: property.Field, of: property.Name}
		for _, value := range values {
			c.terms = append(c.terms, property.Terms(value)...)
		}
		p.filters = append(p.filters, c)
	}
	return p
}

// addReading adds the words of a reading.
func (p *plan) addReading(r search.Reading) {
	var before []string // keys of the previous word
	for _, w := range r.Words {
		if w.Out {
			continue
		}
		a := asked{isFixed: w.Fixed}
		by := w.By
		if len(by) == 0 {
			by, a.exact = []string{w.Text}, w.Text
		}
		for _, text := range by {
			a.phrases = append(a.phrases, newPhrases(text)...)
		}
		var keys []string
		for _, made := range a.phrases {
			keys = append(keys, made[0].terms...)
		}
		if p.words = append(p.words, a); before != nil && len(keys)*len(before) <= 100 {
			p.pairs = append(p.pairs, pairsOf(before, keys))
		}
		before = keys
	}
}

// match is the result of a search in one segment.
type match struct {
	*part
	found *roaring.Bitmap
	apart map[search.FacetName]*roaring.Bitmap // for each property: the assets found without the filter by it
	words []*roaring.Bitmap                    // for each word of the question: all assets that have the word
	exact *match                               // of the plan's literal plan; nil: it has none
}

// join adds the assets of a literal plan to the found ones.
func (m *match) join(literal *match) {
	m.exact = literal
	m.found.Or(literal.found)
	for name, found := range m.apart {
		found.Or(literal.apart[name])
	}
}

// match finds the assets of a segment that meet all conditions of a plan.
func (p *part) match(ctx context.Context, q *plan) (match, error) {
	m := match{part: p}
	if err := ctx.Err(); err != nil {
		return m, err
	}
	for _, w := range q.words {
		set, err := p.meeting(w, wordField)
		if err != nil {
			return m, err
		}
		m.words = append(m.words, set)
	}
	m.combine(q)
	if err := m.within(ctx, q); err != nil {
		return m, err
	}
	if err := m.addApart(ctx, q); err != nil {
		return m, err
	}
	return m, m.filter(ctx, q, "")
}

// within keeps the assets in the range that the words of a question have. If the words are read as they are written, it
// also keeps the assets whose titles have all of them.
func (m *match) within(ctx context.Context, q *plan) error {
	if q.within.Words == "" {
		return nil
	}
	titled := match{part: m.part, found: roaring.New()}
	if len(q.reading.Words) == 0 {
		titled.found = nil
		for _, w := range q.words {
			set, err := m.meeting(w, titleField)
			if err != nil {
				return err
			}
			titled.and(set)
		}
	}
	err := m.ranges(ctx, search.Filters{Quantity: q.within.Quantities})
	m.found.Or(titled.found)
	return err
}

// all returns the found assets. If no condition has been applied yet, these are all assets.
func (m *match) all() *roaring.Bitmap {
	if m.found == nil {
		m.found = roaring.New()
		m.found.AddRange(0, uint64(m.count))
	}
	return m.found
}

// addApart sets m.apart for each facet whose counts must ignore the filter by its own property (search.Query.Apart).
func (m *match) addApart(ctx context.Context, q *plan) error {
	for _, name := range q.Facets {
		if !q.Apart || search.PropertyOf(name).Levels != nil || len(q.Filters.ValuesOf(name)) == 0 {
			continue
		}
		without := match{part: m.part}
		if m.found != nil {
			without.found = m.found.Clone()
		}
		if err := without.filter(ctx, q, name); err != nil {
			return err
		}
		if m.apart == nil {
			m.apart = map[search.FacetName]*roaring.Bitmap{}
		}
		m.apart[name] = without.found
	}
	return nil
}

// filter keeps the found assets that meet all filters. It ignores the filter by the property in the argument
// `without`.
func (m *match) filter(ctx context.Context, q *plan, without search.FacetName) error {
	for _, c := range q.filters {
		if c.of == without {
			continue
		}
		set, err := m.having(c)
		if err != nil {
			return err
		}
		m.and(set)
	}
	if m.deleted != nil {
		m.all().AndNot(m.deleted)
	}
	return m.ranges(ctx, q.Filters)
}

// meeting returns the assets that meet a word. In conditions on wordField, it replaces wordField by the given field.
func (p *part) meeting(w asked, field string) (*roaring.Bitmap, error) {
	set := roaring.New()
	for _, made := range w.phrases {
		var all *roaring.Bitmap
		for _, c := range made {
			if c.field == wordField {
				c.field = field
			}
			one, err := p.having(c)
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = one
			} else {
				all.And(one)
			}
		}
		set.Or(all)
	}
	return set, nil
}

// mayMiss says how many words may be missing: one of every five words, but always at least one. For example, of 9
// words one may be missing, and of 10 words two.
const mayMiss = 5

// combine keeps the assets that have all words. If words may be missing, it also keeps the assets in which no
// more words than allowed are missing.
func (m *match) combine(q *plan) {
	free := 0
	for i, w := range q.words {
		if w.isRange {
			continue
		}
		if w.isFixed || !q.reading.Has(search.ByMissing) {
			m.and(m.words[i])
		} else {
			free++
		}
	}
	if free == 0 {
		return
	}
	all := m.all()
	missing := make([]*roaring.Bitmap, 1+max(1, free/mayMiss)) // at index n: the assets that miss at most n words
	for i := range missing {
		missing[i] = all.Clone()
	}
	for i, w := range q.words {
		if w.isFixed {
			continue
		}
		for n := len(missing) - 1; n >= 0; n-- {
			less := missing[max(0, n-1)]
			if missing[n] = roaring.And(missing[n], m.words[i]); n > 0 {
				missing[n].Or(less)
			}
		}
	}
	m.found = missing[len(missing)-1]
}

// The method `and` is the operation AND: it removes the found assets that are not in a set.
func (m *match) and(set *roaring.Bitmap) {
	if m.found == nil {
		m.found = set.Clone()
		return
	}
	m.found.And(set)
}

// having returns the assets that have at least one of the terms of a condition.
func (p *part) having(c condition) (*roaring.Bitmap, error) {
	r, err := newReader(p.segment, c.field)
	if err != nil {
		return nil, err
	}
	set := roaring.New()
	terms := c.terms
	if c.begin {
		terms = nil
		for _, begin := range c.terms {
			found, err := r.begins(begin, mostEndings)
			if err != nil {
				return nil, err
			}
			terms = append(terms, found...)
		}
	}
	for _, term := range terms {
		found, err := r.postings(term)
		if err != nil {
			return nil, err
		}
		if c.in != nil && found.many != nil {
			found.many = roaring.And(found.many, c.in)
		}
		found.addTo(set)
	}
	return set, nil
}

// ranges keeps the assets that are in the ranges of the question's filters.
func (m *match) ranges(ctx context.Context, f search.Filters) error {
	if in := spanOf(f.Published); in.isBounded {
		if err := m.keep(ctx, func(n uint32) bool { return in.has(m.published[n]) }); err != nil {
			return err
		}
	}
	if in := spanOf(f.Modified); in.isBounded {
		if err := m.keep(ctx, func(n uint32) bool { return in.has(m.positions[n]) }); err != nil {
			return err
		}
	}
	m.all()
	switch in := f.Quantity; {
	case in.Unit != "":
		amounts := in.Amounts()
		return m.keep(ctx, func(n uint32) bool { return m.hasAmount(n, amounts) })
	case in.From != nil || in.To != nil:
		return m.keep(ctx, func(n uint32) bool { return m.hasQuantity(n, in) })
	}
	return nil
}

// keep removes the found assets for which the function `wanted` returns false.
func (m *match) keep(ctx context.Context, wanted func(n uint32) bool) error {
	kept := roaring.New()
	err := each(ctx, m.all(), func(numbers []uint32) {
		in := numbers[:0]
		for _, n := range numbers {
			if wanted(n) {
				in = append(in, n)
			}
		}
		kept.AddMany(in)
	})
	m.found = kept
	return err
}

// span is a range of microseconds since the epoch.
type span struct {
	isBounded   bool
	from, until int64
}

func spanOf(t search.Times) span {
	s := span{isBounded: !t.From.IsZero() || !t.Until.IsZero(), from: -1 << 63, until: 1<<63 - 1}
	if !t.From.IsZero() {
		s.from = t.From.UnixMicro()
	}
	if !t.Until.IsZero() {
		s.until = t.Until.UnixMicro()
	}
	return s
}

// The method `has` reports whether a time is in the range. 0 stands for no time, which is in no range.
func (s span) has(at int64) bool { return at != 0 && at >= s.from && at < s.until }

// The function `each` calls the function `visit` with the assets of a set, in the order of their numbers. Each call
// gets up to 4096 assets. The function `visit` may change the slice that it gets. each stops when ctx is done.
func each(ctx context.Context, set *roaring.Bitmap, visit func(numbers []uint32)) error {
	var numbers [4096]uint32
	for all := set.ManyIterator(); ; {
		n := all.NextMany(numbers[:])
		if n == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		visit(numbers[:n])
	}
}

// weights returns the weight of each word of the question. A rare word has a larger weight. The weight is a small
// whole number, so the change of one asset hardly ever changes the order of the others.
func weights(matches []match, words int, assets int64) []int64 {
	weights := make([]int64, words)
	for w := range weights {
		var having uint64
		for _, m := range matches {
			having += m.words[w].GetCardinality()
		}
		weights[w] = int64(1 + bits.Len64(uint64(assets)/max(1, having)))
	}
	return weights
}
