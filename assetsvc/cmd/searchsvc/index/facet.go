package index

import (
	"cmp"
	"context"
	"slices"
	"strings"

	segment "github.com/blevesearch/scorch_segment_api/v2"

	"asset-registry/assetsvc/cmd/searchsvc/search"
)

// facet counts the found assets by the values of a property.
func (v *view) facet(ctx context.Context, q *plan, name search.FacetName, matches []match) (search.Facet, error) {
	column := facetColumn{name: name}
	if name == search.ByClassification {
		column.level = q.Filters.CodeLevel()
	}
	counts, err := v.counts(ctx, column, matches)
	if err != nil {
		return search.Facet{}, err
	}
	compare := func(a, b search.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	}
	if name == search.ByMonth {
		compare = func(a, b search.Count) int { return cmp.Compare(b.Value, a.Value) }
	}
	slices.SortFunc(counts, compare)
	most := cmp.Or(q.FacetLimit, search.DefaultFacetLimit)
	facet := search.Facet{Name: name, Values: counts[:min(len(counts), most)], More: len(counts) > most}
	for i := range facet.Values {
		if facet.Values[i].Name, err = v.nameOf(column, facet.Values[i].Value); err != nil {
			return search.Facet{}, err
		}
	}
	return facet, nil
}

// counts counts the found assets by the values of a column.
func (v *view) counts(ctx context.Context, column facetColumn, matches []match) ([]search.Count, error) {
	sets := v.sets[column]
	bySet := make([]uint32, len(sets))
	for _, m := range matches {
		values := m.facets[column]
		if err := each(ctx, m.found, func(n uint32) { bySet[values[n]]++ }); err != nil {
			return nil, err
		}
	}
	places := map[string]int{}
	var counts []search.Count
	for set, count := range bySet {
		if count == 0 {
			continue
		}
		for _, value := range sets[set] {
			at, ok := places[value]
			if !ok {
				at = len(counts)
				places[value] = at
				counts = append(counts, search.Count{Value: value})
			}
			counts[at].Count += int64(count)
		}
	}
	return counts, nil
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
