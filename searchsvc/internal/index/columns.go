package index

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/assetfilter"
)

// columns has the values of the assets of a segment. The indexes of its slices are the numbers of the assets. A
// segment never changes, so its columns never change.
type columns struct {
	tables     *tables
	positions  []int64
	published  []int64 // 0: never published
	areas      []int64 // area of all items of an asset together; 0: none
	quantities lists[float64]
	amounts    lists[amount]     // amounts of single items
	kinds      lists[kindAmount] // for each asset, and each code and measure of its items: the sum of the amounts
	facets     map[facetColumn]*facetValues
	names      sync.Map     // from namedValue to string: names of values of facets
	saids      sync.Map     // from namedValue to []said: how records describe codes
	nameless   atomic.Int64 // number of values without a name in the maps `names` and `saids`
}

// facetValues has the values of the assets of a segment in one column. If the column has at most mostSets
// different values, each value has a set of assets; otherwise each asset has the number of its value in a table.
type facetValues struct {
	totals []total
	none   *roaring.Bitmap   // the assets without a value
	sets   []*roaring.Bitmap // for each element of totals, the assets with its value; nil: the next two fields are used
	of     []uint32          // for each asset: the number of its value, noValue, or severalValues + an index of lists
	lists  []uint32          // for assets with several values: the number of values, then the numbers of the values
}

// total is the number of assets of a segment that have a value.
type total struct{ value, assets uint32 }

const (
	noValue       = 0       // not the number of any value
	severalValues = 1 << 31 // larger than the number of any value
	// mostSets is the largest number of sets in a column. More sets would need more memory than a column that stores
	// a number for each asset.
	mostSets = 32
)

// pairs is a function that calls the function `visit` for each value of each asset, in the same order each time.
type pairs func(visit func(asset, value uint32)) error

// newFacetValues makes a column from the values of assets. The first argument is the number of assets. The numbers of
// values must be less than the second argument.
func newFacetValues(assets, end int, all pairs) (*facetValues, error) {
	v := &facetValues{of: make([]uint32, assets), none: roaring.New()}
	counts, free := counterPool.zeros(end)
	defer free()
	err := all(func(asset, value uint32) {
		v.of[asset]++
		if counts[value]++; counts[value] == 1 {
			v.totals = append(v.totals, total{value: value})
		}
	})
	if err != nil {
		return nil, err
	}
	for n, values := range v.of {
		if values == 0 {
			v.none.Add(uint32(n))
		}
	}
	v.none.RunOptimize()
	for i, t := range v.totals {
		v.totals[i].assets = counts[t.value]
	}
	if len(v.totals) <= mostSets {
		return v, v.fillSets(counts, all)
	}
	return v, v.fillNumbers(all)
}

// fillSets makes the sets. The first argument is scratch memory with an element for each number of a value.
func (v *facetValues) fillSets(places []uint32, all pairs) error {
	v.of, v.sets = nil, make([]*roaring.Bitmap, len(v.totals))
	for i, t := range v.totals {
		v.sets[i], places[t.value] = roaring.New(), uint32(i)
	}
	err := all(func(asset, value uint32) { v.sets[places[value]].Add(asset) })
	for _, set := range v.sets {
		set.RunOptimize()
	}
	return err
}

// fillNumbers replaces the elements of v.of. Before the call, an element is the number of values that an asset has.
// After it, an element is what the field `of` describes: the value of the asset, or the place of its list.
func (v *facetValues) fillNumbers(all pairs) error {
	for n, values := range v.of { // make room for each list
		v.of[n] = noValue
		if values > 1 {
			v.of[n] = severalValues | uint32(len(v.lists))
			v.lists = append(v.lists, make([]uint32, 1+values)...)
		}
	}
	return all(func(asset, value uint32) {
		if v.of[asset] < severalValues {
			v.of[asset] = value
			return
		}
		list := v.listAt(v.of[asset])
		list[0]++
		list[list[0]] = value
	})
}

// listAt returns the part of v.lists that begins with the length of a list.
func (v *facetValues) listAt(several uint32) []uint32 { return v.lists[several&^severalValues:] }

// The method `each` calls the function `visit` for each value of each asset.
func (v *facetValues) each(visit func(asset, value uint32)) {
	for i, set := range v.sets {
		postings{many: set}.each(func(n uint32) { visit(n, v.totals[i].value) })
	}
	for n, value := range v.of {
		switch {
		case value == noValue:
		case value < severalValues:
			visit(uint32(n), value)
		default:
			list := v.listAt(value)
			for _, value := range list[1 : 1+list[0]] {
				visit(uint32(n), value)
			}
		}
	}
}

// readFacetValues reads a column from the terms of a field of a segment.
func readFacetValues(s segment.Segment, field string, c facetColumn, t *table) (*facetValues, error) {
	all := func(visit func(asset, value uint32)) error {
		return eachTerm(s, field, func(term string, p postings) {
			if value, ok := c.valueOf(term); ok {
				number := t.number(value)
				p.each(func(n uint32) { visit(n, number) })
			}
		})
	}
	if err := terms(s, field, func(term string) error {
		if value, ok := c.valueOf(term); ok {
			t.number(value) // gives new values a number
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return newFacetValues(int(s.Count()), len(t.values), all)
}

// intersect adds, to the count of each value, the number of assets of a set that have the value.
func (v *facetValues) intersect(found *roaring.Bitmap, counts []uint32) {
	for i, set := range v.sets {
		counts[v.totals[i].value] += uint32(found.AndCardinality(set))
	}
}

// count changes the counts of the values that the assets have. It adds the argument `add` to each of these
// counts. If `add` is the largest uint32, each count wraps around and is one less.
func (v *facetValues) count(assets []uint32, counts []uint32, add uint32) {
	for _, n := range assets {
		value := v.of[n]
		if value < severalValues {
			counts[value] += add
			continue
		}
		list := v.listAt(value)
		for _, value := range list[1 : 1+list[0]] {
			counts[value] += add
		}
	}
}

// facetColumn identifies a column of a facet. The facet of classifications has a column for each level.
type facetColumn struct {
	name  search.FacetName
	level int // number of digits of the codes; 0: the values are not codes
}

// facetFields has the columns of all facets, each with the field whose terms are its values.
var facetFields = func() (all []facetField) {
	for _, p := range search.Properties {
		levels := p.Levels
		if levels == nil {
			levels = []int{0}
		}
		for _, level := range levels {
			all = append(all, facetField{facetColumn{p.Name, level}, p.Field})
		}
	}
	return all
}()

type facetField struct {
	facetColumn
	field string
}

// valueOf returns the value that a term has in a column. ok is false for a term of another column.
func (c facetColumn) valueOf(term string) (value string, ok bool) {
	switch whole, isWhole := strings.CutPrefix(term, assetfilter.WholeCode); {
	case c.level == 0:
		return term, c.name != search.ByLocality || !strings.HasPrefix(term, assetfilter.OtherName)
	case c.level == wholeLevel:
		return whole, isWhole
	default:
		return term, !isWhole && len(term) == c.level
	}
}

// table numbers the values of a column, beginning with 1. Values are added but never changed or removed, so a view
// can keep using the slice that it took.
type table struct {
	values  []string // the value with number n is at index n
	numbers map[string]uint32
}

func newTable() *table { return &table{values: []string{noValue: ""}, numbers: map[string]uint32{}} }

// number returns the number of a value. A new value gets the next number.
func (t *table) number(value string) uint32 {
	n, known := t.numbers[value]
	if !known {
		n = uint32(len(t.values))
		t.numbers[value] = n
		t.values = append(t.values, value)
	}
	return n
}

// tables has the table of each column. Only Index.Refresh reads and changes them.
type tables struct{ of map[facetColumn]*table }

func newTables() *tables {
	t := &tables{of: map[facetColumn]*table{}}
	for _, f := range facetFields {
		t.of[f.facetColumn] = newTable()
	}
	return t
}

// isOvergrown reports whether a table has far more values than there are assets. In such a table, most values belong
// to assets that no longer have them.
func (t *tables) isOvergrown(assets int64) bool {
	for _, one := range t.of {
		if int64(len(one.values)) > 2*assets+10_000 {
			return true
		}
	}
	return false
}

func newColumns(assets int, t *tables) *columns {
	return &columns{
		tables: t, positions: make([]int64, assets), published: make([]int64, assets),
		areas: make([]int64, assets), quantities: newLists[float64](assets), amounts: newLists[amount](assets),
		kinds: newLists[kindAmount](assets), facets: map[facetColumn]*facetValues{},
	}
}

// readColumns reads the columns of a segment.
func readColumns(s segment.Segment, t *tables) (*columns, error) {
	c := newColumns(int(s.Count()), t)
	if err := eachTerm(s, positionField, func(term string, p postings) {
		p.each(func(n uint32) { c.positions[n] = numberOf(term) })
	}); err != nil {
		return nil, err
	}
	if err := eachTerm(s, publishedField, func(term string, p postings) {
		p.each(func(n uint32) { c.published[n] = numberOf(term) })
	}); err != nil {
		return nil, err
	}
	var err error
	if c.quantities, err = readLists(s, quantityField, floatOf); err != nil {
		return nil, err
	}
	if c.amounts, err = readLists(s, amountField, amountOf); err != nil {
		return nil, err
	}
	if err := c.readKinds(s); err != nil {
		return nil, err
	}
	for _, f := range facetFields {
		values, err := readFacetValues(s, f.field, f.facetColumn, t.of[f.facetColumn])
		if err != nil {
			return nil, err
		}
		c.facets[f.facetColumn] = values
	}
	return c, nil
}

// dropped stands for the new number of an asset that a merge drops.
const dropped = math.MaxUint64

// mergeColumns makes the columns of a merged segment from the columns of the old segments. For each asset of each old
// segment, the argument `numbers` has the number of the asset in the new segment. If this number is the constant
// `dropped`, the new segment does not have the asset. Assets keep their order, segment after segment. The argument
// `values` has the values of the tables.
func mergeColumns(old []*columns, numbers [][]uint64, values map[facetColumn][]string) (*columns, error) {
	assets := 0
	for _, of := range numbers {
		for _, n := range of {
			if n != dropped {
				assets++
			}
		}
	}
	merged := newColumns(assets, old[0].tables)
	for i, c := range old {
		merged.copy(c, numbers[i])
	}
	for _, f := range facetFields {
		all := func(visit func(asset, value uint32)) error {
			for i, c := range old {
				c.facets[f.facetColumn].each(func(asset, value uint32) {
					if n := numbers[i][asset]; n != dropped {
						visit(uint32(n), value)
					}
				})
			}
			return nil
		}
		facet, err := newFacetValues(assets, len(values[f.facetColumn]), all)
		if err != nil {
			return nil, err
		}
		merged.facets[f.facetColumn] = facet
	}
	return merged, nil
}

// copy copies everything except the facets from the columns of an older segment.
func (c *columns) copy(old *columns, numbers []uint64) {
	for from, to := range numbers {
		if to == dropped {
			continue
		}
		c.positions[to], c.published[to] = old.positions[from], old.published[from]
		c.areas[to] = old.areas[from]
		c.quantities.set(to, old.quantities.of(uint32(from)))
		c.amounts.set(to, old.amounts.of(uint32(from)))
		c.kinds.set(to, old.kinds.of(uint32(from)))
	}
}

// postings is the set of assets of a segment that have a term.
type postings struct {
	one   uint32
	isOne bool
	many  *roaring.Bitmap // nil: no asset, or only one
}

// The method `each` calls the function `visit` for each asset.
func (p postings) each(visit func(uint32)) {
	if p.isOne {
		visit(p.one)
		return
	}
	if p.many == nil {
		return
	}
	var numbers [512]uint32
	for all := p.many.ManyIterator(); ; {
		n := all.NextMany(numbers[:])
		if n == 0 {
			return
		}
		for _, number := range numbers[:n] {
			visit(number)
		}
	}
}

// addTo adds the assets to a set.
func (p postings) addTo(set *roaring.Bitmap) {
	switch {
	case p.isOne:
		set.Add(p.one)
	case p.many != nil:
		set.Or(p.many)
	}
}

// countIn returns how many of the assets are in a set.
func (p postings) countIn(set *roaring.Bitmap) uint64 {
	switch {
	case p.many != nil:
		return p.many.AndCardinality(set)
	case p.isOne && set.Contains(p.one):
		return 1
	}
	return 0
}

// reader reads the postings of the terms of a field. It re-uses its memory: postings are valid until the next
// call.
type reader struct {
	dictionary segment.TermDictionary
	list       segment.PostingsList
	iterator   segment.PostingsIterator
}

func newReader(s segment.Segment, field string) (*reader, error) {
	dictionary, err := s.Dictionary(field)
	return &reader{dictionary: dictionary}, err
}

func (r *reader) postings(term string) (p postings, err error) {
	if r.list, err = r.dictionary.PostingsList([]byte(term), nil, r.list); err != nil {
		return postings{}, err
	}
	r.iterator = r.list.Iterator(false, false, false, r.iterator)
	found, ok := r.iterator.(segment.OptimizablePostingsIterator)
	if !ok {
		return postings{}, errIterator
	}
	if one, ok := found.DocNum1Hit(); ok {
		return postings{one: uint32(one), isOne: true}, nil
	}
	return postings{many: found.ActualBitmap()}, nil
}

// eachTerm calls the function `visit` for each term of a field, in the order of the terms.
func eachTerm(s segment.Segment, field string, visit func(term string, p postings)) error {
	r, err := newReader(s, field)
	if err != nil {
		return err
	}
	return terms(s, field, func(term string) error {
		p, err := r.postings(term)
		if err == nil {
			visit(term, p)
		}
		return err
	})
}

// terms goes through the terms of a field in their order, and calls the function `visit` with each. It stops when visit
// returns an error.
func terms(s segment.Segment, field string, visit func(term string) error) error {
	dictionary, err := s.Dictionary(field)
	if err != nil {
		return err
	}
	all := dictionary.AutomatonIterator(nil, nil, nil)
	for {
		entry, err := all.Next()
		if err != nil || entry == nil {
			return err
		}
		if err := visit(entry.Term); err != nil {
			return err
		}
	}
}
