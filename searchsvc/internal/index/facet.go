package index

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"asset-registry/searchsvc/internal/search"
)

// facets counts the found assets by the values of properties.
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
		if facets[i], err = v.facet(column, counts[i], most); err != nil {
			return nil, err
		}
	}
	return facets, nil
}

var counterPool pool[uint32]

// count returns for each column how many found assets have each value, by its number.
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

// addTo adds the found assets of a part to the counts. Where most are found, it takes the
// others from the totals of the part.
func (m *match) addTo(ctx context.Context, columns []facetColumn, counts [][]uint32) error {
	isMost := m.found.GetCardinality() > uint64(m.count)/2
	var byNumber []int // indexes of columns without sets
	for i, column := range columns {
		values := m.facets[column]
		if values.sets != nil {
			values.intersect(m.found, counts[i])
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
	found, add := m.found, uint32(1)
	if isMost {
		found, add = roaring.Flip(found, 0, uint64(m.count)), math.MaxUint32
	}
	return each(ctx, found, func(numbers []uint32) {
		for _, i := range byNumber {
			m.facets[columns[i]].count(numbers, counts[i], add)
		}
	})
}

// facet returns the first values of a column.
func (v *view) facet(column facetColumn, counts []uint32, most int) (search.Facet, error) {
	compare := func(a, b search.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	}
	if column.name == search.ByMonth || column.name == search.ByKyivMonth {
		compare = func(a, b search.Count) int { return cmp.Compare(b.Value, a.Value) }
	}
	first, values := firsts[search.Count]{most: most, compare: compare}, v.values[column]
	for value, count := range counts {
		if count > 0 && value != noValue {
			first.offer(search.Count{Value: values[value], Count: int64(count)})
		}
	}
	facet := search.Facet{Name: column.name, Values: first.sorted(), More: first.offered > most}
	for i := range facet.Values {
		name, err := v.nameOf(column, facet.Values[i].Value)
		if err != nil {
			return search.Facet{}, err
		}
		facet.Values[i].Name = name
	}
	return facet, nil
}

// mostNames bounds the spellings of one name that are compared.
const mostNames = 64

// nameOf returns the most common name of a value in the largest part that has one.
func (v *view) nameOf(column facetColumn, value string) (name string, err error) {
	field := search.PropertyOf(column.name).Names
	if field == "" || column.level != 0 && column.level != wholeLevel {
		return "", nil
	}
	var size uint32
	for i := range v.parts {
		p := &v.parts[i]
		if p.count <= size {
			continue
		}
		found, err := p.nameOf(field, value)
		if err != nil {
			return "", err
		}
		if found != "" {
			name, size = found, p.count
		}
	}
	return name, nil
}

// namedValue is a value whose name somebody has asked for.
type namedValue struct{ field, value string }

// nameOf is commonName, and remembers the name: a segment never changes.
func (p *part) nameOf(field, value string) (string, error) {
	asked := namedValue{field, value}
	if known, ok := p.names.Load(asked); ok {
		return known.(string), nil
	}
	name, err := commonName(p.segment, field, value)
	if err == nil {
		p.names.Store(asked, name)
	}
	return name, err
}

// commonName returns the name of a value that most assets of a segment have.
func commonName(s segment.Segment, field, value string) (name string, err error) {
	dictionary, err := s.Dictionary(field)
	if err != nil {
		return "", err
	}
	start, end := value+nameSeparator, value+"\x01"
	names := dictionary.AutomatonIterator(nil, []byte(start), []byte(end))
	var most uint64
	for range mostNames {
		entry, err := names.Next()
		if err != nil || entry == nil {
			return name, err
		}
		if entry.Count > most {
			name, most = strings.TrimPrefix(entry.Term, start), entry.Count
		}
	}
	return name, nil
}
