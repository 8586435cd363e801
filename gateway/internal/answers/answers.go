// Package answers keeps answers to readings of assets in memory, and never gives one that
// is stale (docs/architecture.md, "Answers from memory").
//
// The asset service says which assets a batch of writes changes, before it writes the
// batch, and again when the batch is done (Cache.Change). Three guards follow:
//
//   - The answers of these assets are dropped before the batch is written.
//   - A reading that was under way then is not kept: it may have read before the write.
//   - No reading that begins before the batch is done is kept: it may read before the
//     write too.
//
// So an answer in memory was read while nobody wrote its asset, and nobody has written the
// asset since. A test leaves out each guard and finds stale answers.
//
// The memory keeps only an asset that was asked for twice within about a minute. A caller
// that reads all assets once puts nothing into it.
package answers

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

// MaxBody is the most bytes of an answer that is kept.
const MaxBody = 64 << 10

// overhead is about the number of bytes that an answer takes beside its body.
const overhead = 512

// Form names the representation of an asset.
type Form struct {
	Version string // of the API: "2.5"
	Full    bool   // shows the fields that are hidden from callers without an API key
}

// Answer is the answer to a GET with status 200. It is never changed.
type Answer struct {
	Form         Form
	ContentType  string
	CacheControl string
	ETag         string // with its quotes
	Body         []byte
}

// Cache keeps answers. It is safe for concurrent use.
type Cache struct {
	kept   *otter.Cache[string, []*Answer] // by id; a few forms each
	recent *recent
	now    func() time.Time

	mu   sync.Mutex
	busy map[string]*activity // by id: the assets that are written or read for the memory

	found, missed, dropped, refused atomic.Int64
}

// activity is what goes on with an asset.
type activity struct {
	changes  int // batches that write the asset and are not done
	readings int // readings under way
	last     int // counts the changes since the first of these readings
}

// isWritten reports whether a batch writes the asset. A nil activity is none.
func (a *activity) isWritten() bool { return a != nil && a.changes > 0 }

// New returns a cache for answers of at most so many bytes together. Now tells the time.
func New(bytes int64, now func() time.Time) *Cache {
	return &Cache{
		kept: otter.Must(&otter.Options[string, []*Answer]{
			MaximumWeight: uint64(bytes),
			Weigher: func(id string, of []*Answer) uint32 {
				weight := len(id)
				for _, a := range of {
					weight += len(a.Body) + overhead
				}
				return uint32(weight)
			},
		}),
		recent: newRecent(),
		now:    now,
		busy:   map[string]*activity{},
	}
}

// Find returns the answer of an asset in a form. It returns nil if there is none.
func (m *Cache) Find(id string, f Form) *Answer {
	of, _ := m.kept.GetIfPresent(id)
	for _, a := range of {
		if a.Form == f {
			m.found.Add(1)
			return a
		}
	}
	m.missed.Add(1)
	return nil
}

// Reading is a reading of an asset whose answer may be kept.
type Reading struct {
	memory  *Cache
	id      string
	changes int // activity.last at the begin
}

// Begin says that a reading of an asset begins. The caller must end it. Begin returns nil
// if the answer shall not be kept: the asset is being written, or nobody has asked for it
// lately.
func (m *Cache) Begin(id string) *Reading {
	if !m.recent.again(id, m.now()) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[id].isWritten() {
		return nil
	}
	a := m.activity(id)
	a.readings++
	return &Reading{memory: m, id: id, changes: a.last}
}

// End says that the reading has ended, with an answer or with nil. The answer is kept if
// the asset was not written meanwhile.
func (r *Reading) End(answer *Answer) {
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.busy[r.id]
	a.readings--
	switch {
	case answer == nil || len(answer.Body) > MaxBody:
	case a.last != r.changes:
		m.refused.Add(1)
	default:
		m.keep(r.id, answer)
	}
	m.tidy(r.id, a)
}

// keep puts an answer beside those of other forms. The caller holds mu.
func (m *Cache) keep(id string, answer *Answer) {
	of, _ := m.kept.GetIfPresent(id)
	others := slices.DeleteFunc(slices.Clone(of), func(a *Answer) bool { return a.Form == answer.Form })
	m.kept.Set(id, append(others, answer))
}

// Change says that a batch will write some assets. When Change has returned, the memory
// has no answer of them, and keeps none until done is called. The caller must not write
// before, and must call done once nothing of the batch can be written any more.
func (m *Cache) Change(ids []string) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		a := m.activity(id)
		a.changes++
		a.last++
		if _, was := m.kept.Invalidate(id); was {
			m.dropped.Add(1)
		}
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, id := range ids {
			a := m.busy[id]
			a.changes--
			m.tidy(id, a)
		}
	}
}

// activity returns the activity of an asset, a new one if there is none. The caller holds
// mu.
func (m *Cache) activity(id string) *activity {
	a := m.busy[id]
	if a == nil {
		a = &activity{}
		m.busy[id] = a
	}
	return a
}

// tidy removes an activity that has ended. The caller holds mu.
func (m *Cache) tidy(id string, a *activity) {
	if a.changes == 0 && a.readings == 0 {
		delete(m.busy, id)
	}
}
