package index

import (
	"path/filepath"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	zap "github.com/blevesearch/zapx/v17"
)

// merges has the columns of merged segments that no view uses yet. The columns are made from the columns of the old
// segments, because this is much faster than reading the merged file.
type merges struct {
	mu   sync.Mutex
	made map[string]*columns // the keys are the paths of the merged files
}

// mostMerges is the maximum number of merged segments whose columns wait until a view takes them. At this number, the
// method `put` drops all waiting columns, and views read these columns from the files.
const mostMerges = 8

func (m *merges) put(path string, c *columns) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil || len(m.made) >= mostMerges {
		m.made = map[string]*columns{}
	}
	m.made[path] = c
}

// take returns the columns of a segment and removes them from merges. It returns nil if merges does not have
// them.
func (m *merges) take(s segment.Segment) *columns {
	file, ok := s.(segment.PersistedSegment)
	if !ok {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.made[file.Path()]
	delete(m.made, file.Path())
	return c
}

// format is scorch's file format. After each merge of segments, it also calls Index.merged.
type format struct{ zap.ZapPlugin }

// useFormat makes scorch use the type format, for all indexes.
func useFormat() { scorch.RegisterSegmentPlugin(&format{}, true) }

// MergeUsing implements scorch.SegmentPlugin.
func (f *format) MergeUsing(
	old []segment.Segment, drops []*roaring.Bitmap, path string, stop chan struct{}, s segment.StatsReporter,
	config map[string]any,
) (numbers [][]uint64, size uint64, err error) {
	numbers, size, err = f.ZapPlugin.MergeUsing(old, drops, path, stop, s, config)
	if x := watchedAt(filepath.Dir(path)); x != nil && err == nil {
		x.merged(path, old, numbers)
	}
	return numbers, size, err
}

// merged makes the columns of a merged segment, if the current view has the columns of all old segments.
func (x *Index) merged(path string, segments []segment.Segment, numbers [][]uint64) {
	v := x.acquire()
	if v == nil {
		return // the index is being built
	}
	defer v.release()
	known := map[segment.Segment]*columns{}
	for i := range v.parts {
		known[v.parts[i].segment] = v.parts[i].columns
	}
	old := make([]*columns, len(segments))
	for i, s := range segments {
		if old[i] = known[s]; old[i] == nil {
			return
		}
	}
	if c, err := mergeColumns(old, numbers, v.values); err == nil {
		x.merges.put(path, c)
	}
}
