package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	segment "github.com/blevesearch/scorch_segment_api/v2"
	gocmp "github.com/google/go-cmp/cmp"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/testing/expect"
)

// TestMergedColumnsAreThoseOfTheFile merges all segments of an index in which many assets were replaced. The
// columns that the merge has made must equal the columns that are read from the merged file.
func TestMergedColumnsAreThoseOfTheFile(t *testing.T) {
	x := openIndex(t, t.TempDir())
	defer x.Close()
	r := rand.New(rand.NewPCG(1, 1))
	batch := 0
	add := func() {
		t.Helper()
		var list []simple
		for i := range 200 {
			list = append(list, random(r, r.IntN(1000), int64(1000*batch+i+1)))
		}
		batch++
		apply(t, x, stateAt(int64(1000*batch)), list...)
		expect.OK(t, x.setFormat(indexFormat))
		if err := x.Refresh(); err != nil { // afterwards the segments of the view are files
			t.Fatal(err)
		}
	}
	for range 9 {
		add()
	}
	// Scorch may merge by itself before the forced merge. Then the view lacks the segment of that merge, so try
	// again.
	var v *view
	var file segment.PersistedSegment
	var merged *columns
	for attempt := 0; merged == nil; attempt++ {
		if attempt == 20 {
			t.Fatalf("no columns were made for %s", filepath.Base(file.Path()))
		}
		add()
		expect.OK(t, x.scorch.ForceMerge(t.Context(), nil))
		x.merges.mu.Lock()
		made := maps.Clone(x.merges.made)
		x.merges.mu.Unlock()
		expect.OK(t, x.Refresh())
		v = x.acquire()
		defer v.release()
		expect.FatalIf(t, len(v.parts) != 1, "got %d segments after the merge, want 1", len(v.parts))
		file = v.parts[0].segment.(segment.PersistedSegment)
		merged = made[file.Path()]
	}
	expect.ErrorIf(t, v.parts[0].columns != merged, "the view has read the columns anew, want the merge's columns")
	read := expect.Get(readColumns(file, newTables()))(t)
	if diff := gocmp.Diff(contentOf(read), contentOf(merged)); diff != "" {
		t.Errorf("the columns differ (-read +merged):\n%s", diff)
	}
}

// contentOf returns the values that columns have, by asset.
func contentOf(c *columns) (all [][]string) {
	for n := range c.positions {
		quantities := slices.Sorted(slices.Values(c.quantities.of(uint32(n))))
		amounts := slices.SortedFunc(slices.Values(c.amounts.of(uint32(n))), func(a, b amount) int {
			return strings.Compare(a.term(), b.term())
		})
		var kinds []string
		for _, k := range c.kinds.of(uint32(n)) {
			kinds = append(kinds, c.tables.of[facetColumn{search.ByClassification, wholeLevel}].values[k.code]+k.term())
		}
		slices.Sort(kinds)
		all = append(all, []string{fmt.Sprint(c.positions[n], c.published[n], c.areas[n], quantities, amounts), fmt.Sprintf("%q", kinds)})
	}
	for _, f := range facetFields {
		values, totals := c.tables.of[f.facetColumn].values, map[uint32]uint32{}
		c.facets[f.facetColumn].each(func(asset, value uint32) {
			totals[value]++
			all[asset] = append(all[asset], fmt.Sprint(f.facetColumn, values[value]))
		})
		for _, t := range c.facets[f.facetColumn].totals {
			if totals[t.value] != t.assets {
				panic(fmt.Sprintf("%v %s: got a total of %d, want %d", f.facetColumn, values[t.value], t.assets, totals[t.value]))
			}
		}
	}
	for n := range all {
		slices.Sort(all[n])
	}
	return all
}
