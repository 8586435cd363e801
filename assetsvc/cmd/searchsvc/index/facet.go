package index

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	segment "github.com/blevesearch/scorch_segment_api/v2"

	"asset-registry/assetsvc/cmd/searchsvc/search"
)

// facet counts the found assets by the values of a property.
func (v *view) facet(ctx context.Context, q *plan, name search.FacetName, matches []match) (search.Facet, error) {
	column := facetColumn{name: name}
	if name == search.ByClassification {
		column.level = q.Filters.CodeLevel()
	}
	compare := func(a, b search.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	}
	if name == search.ByMonth {
		compare = func(a, b search.Count) int { return cmp.Compare(b.Value, a.Value) }
	}
	most := cmp.Or(q.FacetLimit, search.DefaultFacetLimit)
	first := firsts{most: most, compare: compare}
	if err := v.count(ctx, column, matches, first.offer); err != nil {
		return search.Facet{}, err
	}
	facet := search.Facet{Name: name, Values: first.sorted(), More: first.offered > most}
	for i := range facet.Values {
		value, err := v.nameOf(column, facet.Values[i].Value)
		if err != nil {
			return search.Facet{}, err
		}
		facet.Values[i].Name = value
	}
	return facet, nil
}

// firsts keeps the first counts of an order. It sorts a few at a time, because there may be
// as many values as assets.
type firsts struct {
	most    int
	compare func(a, b search.Count) int
	kept    []search.Count // the first of those that were sorted, then further ones
	full    bool           // most of kept are sorted
	offered int
}

func (f *firsts) offer(c search.Count) {
	f.offered++
	if f.full && f.compare(c, f.kept[f.most-1]) > 0 {
		return
	}
	if f.kept = append(f.kept, c); len(f.kept) >= 2*f.most {
		f.sorted()
	}
}

func (f *firsts) sorted() []search.Count {
	slices.SortFunc(f.kept, f.compare)
	f.full = len(f.kept) >= f.most
	f.kept = f.kept[:min(len(f.kept), f.most)]
	return f.kept
}

// counters is memory for the counts of a column, all zero.
var counters = sync.Pool{New: func() any { return new([]uint32) }}

// zeros returns n counts of zero, and what gives them back.
func zeros(n int) (counts []uint32, free func()) {
	kept := counters.Get().(*[]uint32)
	if cap(*kept) < n {
		*kept = make([]uint32, n+n/4)
	}
	counts = (*kept)[:n]
	return counts, func() {
		clear(counts)
		counters.Put(kept)
	}
}

// count calls visit for each value that found assets have in a column.
func (v *view) count(ctx context.Context, column facetColumn, matches []match, visit func(search.Count)) error {
	all := v.sets[column]
	bySet, freeSets := zeros(len(all.members))
	defer freeSets()
	for _, m := range matches {
		values := m.facets[column]
		if err := each(ctx, m.found, func(n uint32) { bySet[values[n]]++ }); err != nil {
			return err
		}
	}
	byValue, freeValues := zeros(len(all.values))
	defer freeValues()
	for set, count := range bySet {
		if count == 0 {
			continue
		}
		for _, value := range all.members[set] {
			byValue[value] += count
		}
	}
	for value, count := range byValue {
		if count > 0 {
			visit(search.Count{Value: all.values[value], Count: int64(count)})
		}
	}
	return nil
}

// nameFields are the fields with the names of values.
var nameFields = map[search.FacetName]string{
	search.ByRegion: regionNames, search.ByLocality: localityNames, search.ByCustodian: custodianNames,
}

// mostNames bounds the spellings of one name that are compared.
const mostNames = 64

// nameOf returns the most common name of a value in the largest part that has one.
func (v *view) nameOf(column facetColumn, value string) (name string, err error) {
	field := nameFields[column.name]
	if column.level == 8 {
		field = codeNames
	}
	if field == "" {
		return "", nil
	}
	var size uint32
	for i := range v.parts {
		p := &v.parts[i]
		if p.count <= size {
			continue
		}
		found, err := commonName(p.segment, field, value)
		if err != nil {
			return "", err
		}
		if found != "" {
			name, size = found, p.count
		}
	}
	return name, nil
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
