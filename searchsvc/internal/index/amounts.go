package index

import (
	"cmp"
	"context"
	"slices"

	segment "github.com/blevesearch/scorch_segment_api/v2"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
)

// lists has a list of values for each asset of a segment.
type lists[T any] struct {
	spans  [][2]uint32 // for each asset: index of its first value, and index after its last value
	values []T
}

func newLists[T any](assets int) lists[T] { return lists[T]{spans: make([][2]uint32, assets)} }

// The method `of` returns the values of asset n.
func (l *lists[T]) of(n uint32) []T { return l.values[l.spans[n][0]:l.spans[n][1]] }

// set sets the values of asset n. It is called once for each asset.
func (l *lists[T]) set(n uint64, values []T) {
	first := uint32(len(l.values))
	l.values = append(l.values, values...)
	l.spans[n] = [2]uint32{first, uint32(len(l.values))}
}

// readLists reads the values of each asset from the terms of a field.
func readLists[T any](s segment.Segment, field string, valueOf func(term string) T) (lists[T], error) {
	type one struct {
		number uint32
		value  T
	}
	var all []one
	if err := eachTerm(s, field, func(term string, p postings) {
		value := valueOf(term)
		p.each(func(n uint32) { all = append(all, one{n, value}) })
	}); err != nil {
		return lists[T]{}, err
	}
	slices.SortStableFunc(all, func(a, b one) int { return cmp.Compare(a.number, b.number) })
	l := newLists[T](int(s.Count()))
	l.values = make([]T, len(all))
	for i, a := range all {
		l.values[i] = a.value
		if span := &l.spans[a.number]; span[1] == 0 {
			span[0] = uint32(i)
		}
		l.spans[a.number][1] = uint32(i + 1)
	}
	return l, nil
}

// hasQuantity reports whether an asset has a quantity in a range.
func (c *columns) hasQuantity(n uint32, in search.Quantities) bool {
	for _, value := range c.quantities.of(n) {
		if (in.From == nil || value >= *in.From) && (in.To == nil || value <= *in.To) {
			return true
		}
	}
	return false
}

// hasAmount reports whether an asset has an item with an amount in a range.
func (c *columns) hasAmount(n uint32, in search.Amounts) bool {
	return slices.ContainsFunc(c.amounts.of(n), func(a amount) bool { return in.Has(a.measure, a.amount) })
}

// amount is the area or the number of pieces of an item (search.AmountOf).
type amount struct {
	amount  int64
	measure search.Measure
}

// amountSize is the length in bytes of the term of an amount.
const amountSize = 9

func (a amount) term() string { return numberTerm(a.amount) + string(rune(a.measure)) }

func amountOf(term string) amount {
	if len(term) != amountSize {
		return amount{}
	}
	return amount{numberOf(term[:amountSize-1]), search.Measure(term[amountSize-1])}
}

// kindAmount is the sum of the amounts of those items of an asset that have the same code and the same measure.
type kindAmount struct {
	amount
	code uint32 // number of the code in the table of whole codes; noValue: the items have no code
}

// amounts adds two kinds of terms: the amount of each item, and the sum of the amounts for each code and measure.
func (a *asset) amounts(t *termSet) {
	type kind struct {
		code string
		of   search.Measure
	}
	var kinds []kind // in the order in which the record has them
	sums := map[kind]int64{}
	for i := range a.Items {
		item := &a.Items[i]
		quantity, ok := item.Number()
		if !ok {
			continue
		}
		measure, much, ok := search.AmountOf(item.Unit.Code, quantity)
		if !ok {
			continue
		}
		t.add(amountField, amount{much, measure}.term())
		k := kind{item.Classification.ID, measure}
		if _, isCode := assetfilter.CodePrefix(k.code); !isCode {
			k.code = ""
		}
		if sums[k] == 0 {
			kinds = append(kinds, k)
		}
		sums[k] = min(sums[k]+much, search.MaxAmount)
	}
	for _, k := range kinds {
		t.add(kindField, amount{sums[k], k.of}.term()+k.code)
	}
}

// readKinds reads the sums for each code, and adds up the area of each asset.
func (c *columns) readKinds(s segment.Segment) (err error) {
	codes := c.tables.of[facetColumn{search.ByClassification, wholeLevel}]
	c.kinds, err = readLists(s, kindField, func(term string) kindAmount {
		size := min(len(term), amountSize)
		k := kindAmount{amount: amountOf(term[:size])}
		if code := term[size:]; code != "" {
			k.code = codes.number(code)
		}
		return k
	})
	for n := range c.areas {
		for _, k := range c.kinds.of(uint32(n)) {
			if k.measure == search.Area {
				c.areas[n] = min(c.areas[n]+k.amount.amount, search.MaxAmount)
			}
		}
	}
	return err
}

// sum has the amount of all items with one code, for each measure. A 64-bit float represents even the area of
// Ukraine exactly.
type sum [search.Measures]float64

// addSums sets the fields Area and Pieces of each code of a facet. They are sums over the found assets.
func (v *view) addSums(ctx context.Context, level int, matches []match, to []search.Count) error {
	codes := v.values[facetColumn{search.ByClassification, wholeLevel}]
	sums := make([]sum, len(codes))
	for i := range matches {
		kinds := &matches[i].kinds
		err := each(ctx, matches[i].found, func(numbers []uint32) {
			for _, n := range numbers {
				for _, k := range kinds.of(n) {
					sums[k.code][k.measure] += float64(k.amount.amount)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	values := map[string]sum{}
	for code, one := range sums {
		if value, ok := levelOf(codes[code], level); ok && one != (sum{}) {
			all := values[value]
			all[search.Area] += one[search.Area]
			all[search.Number] += one[search.Number]
			values[value] = all
		}
	}
	for i := range to {
		all := values[to[i].Value]
		to[i].Area, to[i].Pieces = search.InUnits(all[search.Area]), search.InUnits(all[search.Number])
	}
	return nil
}

// levelOf returns the value that a whole code has in the facet of a level. If the code has no value in this
// facet, ok is false.
func levelOf(code string, level int) (value string, ok bool) {
	if level == wholeLevel {
		return code, true
	}
	prefix, _ := assetfilter.CodePrefix(code)
	if len(prefix) < level {
		return "", false
	}
	return prefix[:level], true
}
