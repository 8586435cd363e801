package index

import (
	"cmp"
	"context"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"asset-registry/searchsvc/internal/search"
)

// facets counts the values that the found assets have in each property that the question asks for.
func (v *view) facets(ctx context.Context, q *plan, matches []match) ([]search.Facet, error) {
	if len(q.Facets) == 0 {
		return nil, nil
	}
	columns := make([]facetColumn, len(q.Facets))
	for i, name := range q.Facets {
		columns[i].name = name
		if search.PropertyOf(name).Levels != nil {
			columns[i].level = q.Filters.CodeLevel()
		}
	}
	counts, free, err := v.count(ctx, columns, matches)
	if err != nil {
		return nil, err
	}
	defer free()
	most := cmp.Or(q.FacetLimit, search.DefaultFacetLimit)
	facets := make([]search.Facet, len(columns))
	for i, column := range columns {
		chosen := q.Filters.ValuesOf(column.name)
		if facets[i], err = v.facet(column, counts[i], most, chosen); err != nil {
			return nil, err
		}
		for _, m := range matches {
			facets[i].None += int64(cmp.Or(m.apart[column.name], m.found).AndCardinality(m.facets[column].none))
		}
		if q.Sums && column.name == search.ByClassification {
			if err := v.addSums(ctx, column.level, matches, facets[i].Values); err != nil {
				return nil, err
			}
		}
	}
	return facets, nil
}

var counterPool pool[uint32]

// count counts, for each value of each column, the found assets that have the value. It returns a slice for each
// column. The element at index n is the count of the value with the number n.
func (v *view) count(ctx context.Context, columns []facetColumn, matches []match) (
	counts [][]uint32, free func(), err error,
) {
	counts = make([][]uint32, len(columns))
	frees := make([]func(), len(columns))
	for i, column := range columns {
		counts[i], frees[i] = counterPool.zeros(len(v.values[column]))
	}
	free = func() {
		for _, f := range frees {
			f()
		}
	}
	for i := range matches {
		if err := matches[i].addTo(ctx, columns, counts); err != nil {
			free()
			return nil, nil, err
		}
	}
	return counts, free, nil
}

// addTo adds the found assets of a segment to the counts of each column.
func (m *match) addTo(ctx context.Context, columns []facetColumn, counts [][]uint32) error {
	var others []facetColumn
	var ofOthers [][]uint32
	for i, column := range columns {
		apart := m.apart[column.name]
		if apart == nil {
			others, ofOthers = append(others, column), append(ofOthers, counts[i])
		} else if err := m.add(ctx, apart, columns[i:i+1], counts[i:i+1]); err != nil {
			return err
		}
	}
	return m.add(ctx, m.found, others, ofOthers)
}

// add adds the found assets of a segment to the counts. If most assets of the segment are found, it adds the totals of
// the segment instead, and then subtracts the assets that are not found.
func (m *match) add(ctx context.Context, found *roaring.Bitmap, columns []facetColumn, counts [][]uint32) error {
	isMost := found.GetCardinality() > uint64(m.count)/2
	var byNumber []int // indexes of the columns that have no sets (facetValues)
	for i, column := range columns {
		values := m.facets[column]
		if values.sets != nil {
			values.intersect(found, counts[i])
			continue
		}
		byNumber = append(byNumber, i)
		if isMost {
			for _, all := range values.totals {
				counts[i][all.value] += all.assets
			}
		}
	}
	if len(byNumber) == 0 {
		return ctx.Err()
	}
	add := uint32(1)
	if isMost {
		found, add = roaring.Flip(found, 0, uint64(m.count)), math.MaxUint32
	}
	return each(ctx, found, func(numbers []uint32) {
		for _, i := range byNumber {
			m.facets[columns[i]].count(numbers, counts[i], add)
		}
	})
}

// facet returns the first values of a column, and the values that the question chooses as a filter.
func (v *view) facet(column facetColumn, counts []uint32, most int, chosen []string) (search.Facet, error) {
	compare := func(a, b search.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	}
	if column.name == search.ByMonth || column.name == search.ByKyivMonth {
		compare = func(a, b search.Count) int { return cmp.Compare(b.Value, a.Value) }
	}
	first, values := firsts[search.Count]{most: most, compare: compare}, v.values[column]
	facet := search.Facet{Name: column.name}
	for _, value := range chosen {
		facet.Chosen = append(facet.Chosen, search.Count{Value: value})
	}
	for value, count := range counts {
		if count == 0 || value == noValue {
			continue
		}
		facet.All += int64(count)
		first.offer(search.Count{Value: values[value], Count: int64(count)})
		for i := range facet.Chosen {
			if facet.Chosen[i].Value == values[value] {
				facet.Chosen[i].Count = int64(count)
			}
		}
	}
	facet.Values, facet.More = first.sorted(), first.offered > most
	for _, list := range [][]search.Count{facet.Values, facet.Chosen} {
		for i := range list {
			name, err := v.nameOf(column.name, list[i].Value)
			if err != nil {
				return search.Facet{}, err
			}
			list[i].Name, list[i].NameEn = name.Uk, name.En
		}
	}
	return facet, nil
}
