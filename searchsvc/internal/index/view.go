package index

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	zap "github.com/blevesearch/zapx/v17"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/shared/replica"
)

var errIterator = errors.New("the segments of the index have no sets of assets")

// view is one state of the index, with the columns of its segments. Searches that run at the same time share it.
type view struct {
	refs     atomic.Int64 // number of uses: one for each search, and one for the index
	snapshot *scorch.IndexSnapshot
	tables   *tables // for each column, the table that gives a number to each of its values
	parts    []part
	values   map[facetColumn][]string // values of each table, without values that were added after the view was made
	position client.Position          // the view has all changes up to this position
	assets   int64
	names    codenames.Lists // supplied by the operator
}

// part is a segment of a view.
type part struct {
	id      uint64
	segment segment.Segment
	deleted *roaring.Bitmap // assets that are not in the view; nil: none
	count   uint32          // number of assets, including the deleted ones
	*columns
}

// newView makes a view of a snapshot. The last release of the view closes the snapshot. newView reuses the columns
// that `old` or `merges` already has. At the end it releases `old`.
func newView(snapshot *scorch.IndexSnapshot, old *view, merges *merges) (*view, error) {
	v := &view{snapshot: snapshot, tables: newTables(), values: map[facetColumn][]string{}}
	v.refs.Store(1)
	for _, s := range snapshot.Segments() {
		p := part{id: s.Id(), segment: s.Segment(), deleted: s.Deleted(), count: uint32(s.FullSize())}
		v.assets += int64(s.Count())
		v.parts = append(v.parts, p)
	}
	before := map[uint64]part{}
	if old != nil {
		defer old.release()
		if !old.tables.isOvergrown(v.assets) {
			v.tables = old.tables
		}
		for _, p := range old.parts {
			before[p.id] = p
		}
	}
	for i := range v.parts {
		p := &v.parts[i]
		if err := v.complete(p, before[p.id], merges); err != nil {
			return nil, fmt.Errorf("read the index: %w", err)
		}
	}
	for column, table := range v.tables.of {
		v.values[column] = table.values
	}
	return v, v.readPosition()
}

// complete sets the columns of a segment. The argument `was` is the same segment in the older view, or zero. If `was`
// or `merges` has the columns, complete uses them. Otherwise it reads them from the segment.
func (v *view) complete(p *part, was part, merges *merges) (err error) {
	p.columns = cmp.Or(was.columns, merges.take(p.segment))
	if p.columns == nil || p.columns.tables != v.tables {
		p.columns, err = readColumns(p.segment, v.tables)
	}
	if file, ok := p.segment.(*zap.Segment); ok && p.segment != was.segment { // the file is newly mapped
		err = errors.Join(err, readSingly(file.Data()))
	}
	return err
}

func (v *view) readPosition() error {
	text, err := v.snapshot.GetInternal(stateKey)
	if err != nil || text == nil {
		return err
	}
	var state replica.State
	err = json.Unmarshal(text, &state)
	v.position = state.Position
	return err
}

// release ends one use of the view.
func (v *view) release() {
	if v.refs.Add(-1) == 0 {
		_ = v.snapshot.Close() // only decrements a counter, so it does not fail
	}
}

// positionOf returns the position of an asset in the index.
func (v *view) positionOf(id string) (position int64, ok bool) {
	for i := range v.parts {
		p := &v.parts[i]
		r, err := newReader(p.segment, idField)
		if err != nil {
			continue
		}
		found, err := r.postings(id)
		if err != nil {
			continue
		}
		found.each(func(n uint32) {
			if p.deleted == nil || !p.deleted.Contains(n) {
				position, ok = p.positions[n], true
			}
		})
	}
	return position, ok
}
