package index

import (
	"context"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/searchsvc/internal/ukrainian"
)

// condition is met by the assets that have one of the terms in a field.
type condition struct {
	field string
	terms []string
}

// plan is a question in the terms of the index.
type plan struct {
	search.Query
	words   []condition // of wordField
	filters []condition
}

func newPlan(q search.Query) plan {
	p := plan{Query: q}
	for _, terms := range ukrainian.Words(q.Text) {
		for i := range terms {
			terms[i] = cut(terms[i], maxTerm)
		}
		p.words = append(p.words, condition{wordField, terms})
	}
	for _, property := range search.Properties {
		values := q.Filters.ValuesOf(property.Name)
		if len(values) == 0 {
			continue
		}
		c := condition{field: property.Field}
		for _, value := range values {
			if property.Term != nil {
				value = property.Term(value)
			}
			c.terms = append(c.terms, value)
		}
		p.filters = append(p.filters, c)
	}
	return p
}

// match is the outcome in one part.
type match struct {
	*part
	found *roaring.Bitmap
	words []*roaring.Bitmap // by word: the assets that have it, found or not
}

// match finds the assets of a part that meet all conditions.
func (p *part) match(ctx context.Context, q *plan) (match, error) {
	m := match{part: p}
	if err := ctx.Err(); err != nil {
		return m, err
	}
	for _, c := range q.words {
		set, err := p.having(c)
		if err != nil {
			return m, err
		}
		m.words = append(m.words, set)
		m.and(set)
	}
	for _, c := range q.filters {
		set, err := p.having(c)
		if err != nil {
			return m, err
		}
		m.and(set)
	}
	if m.found == nil {
		m.found = roaring.New()
		m.found.AddRange(0, uint64(p.count))
	}
	if p.deleted != nil {
		m.found.AndNot(p.deleted)
	}
	return m, m.ranges(ctx, q.Filters)
}

// and keeps the assets that are in a set.
func (m *match) and(set *roaring.Bitmap) {
	if m.found == nil {
		m.found = set.Clone()
		return
	}
	m.found.And(set)
}

// having returns the assets that have a term of a condition.
func (p *part) having(c condition) (*roaring.Bitmap, error) {
	r, err := newReader(p.segment, c.field)
	if err != nil {
		return nil, err
	}
	set := roaring.New()
	for _, term := range c.terms {
		found, err := r.postings(term)
		if err != nil {
			return nil, err
		}
		found.addTo(set)
	}
	return set, nil
}

// ranges keeps the assets that are in the ranges of filters.
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
	if f.Quantity.From == nil && f.Quantity.To == nil {
		return nil
	}
	return m.keep(ctx, func(n uint32) bool { return m.hasQuantity(n, f.Quantity) })
}

// keep keeps the found assets that are wanted.
func (m *match) keep(ctx context.Context, wanted func(n uint32) bool) error {
	kept := roaring.New()
	err := each(ctx, m.found, func(numbers []uint32) {
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

// has tells whether a time is in the range. 0 is no time, which is in no range.
func (s span) has(at int64) bool { return at != 0 && at >= s.from && at < s.until }

// each calls visit for the assets of a set, many at once and in their order, until ctx is
// done. visit may change the numbers.
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

// weights returns how much each word counts: a rare one counts more. The weight is a small
// whole number, so a change of an asset hardly ever changes the order of others.
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
