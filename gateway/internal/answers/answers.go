// Package answers keeps the answers to reads of assets in memory, and never returns a stale answer
// (docs/architecture.md, "Answers from memory").
//
// Before the asset service writes a batch, it announces which assets the batch changes (Cache.Change). It also
// says when the batch is done. This allows three guards:
//
//   - The answers of these assets are dropped before the batch is written.
//   - If a read began before the announcement, its answer is not kept: the answer may be from before the write.
//   - If a read begins before the batch is done, its answer is not kept either, for the same reason.
//
// So an answer in memory was read while nobody wrote its asset, and nobody has written the asset since. A test
// switches off each guard in turn, and then finds stale answers.
//
// The memory keeps an asset only if it was asked for twice within about a minute. So a caller that reads every
// asset once puts nothing into the memory.
package answers

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// MaxBody is the size in bytes of the largest body that is kept.
const MaxBody = 64 << 10

// overhead is about how many bytes an answer takes in addition to its body.
const overhead = 512

// Form names the representation of an asset.
type Form struct {
	Version string // version of the API: "2.5"
	Full    bool   // with the fields that are hidden from callers without an API key
}

// Answer is the answer to a GET with status 200. Nobody may change it.
type Answer struct {
	Form         Form
	ContentType  string
	CacheControl string
	ETag         string // with its quotes
	Body         []byte
}

// Cache keeps answers. It is safe for concurrent use.
type Cache struct {
	kept   *otter.Cache[string, []*Answer] // the keys are ids of assets; an asset has an answer for each form
	recent *recent
	now    func() time.Time

	mu   sync.Mutex
	busy map[string]*activity // assets that are written, or read for the memory; the keys are ids

	found, missed, dropped, refused atomic.Int64
}

// activity counts the unfinished reads and writes of an asset.
type activity struct {
	changes  int // number of batches that write the asset and are not done
	readings int // number of reads that are not finished
	last     int // number of changes that were announced since the activity was created
}

// isWritten reports whether a batch writes the asset. A nil activity means that nothing happens to the asset.
func (a *activity) isWritten() bool { return a != nil && a.changes > 0 }

// New returns a cache for answers that take up to the given number of bytes in all. The argument `now` is the
// clock.
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

// Find returns the answer of an asset in a form, or nil if the memory does not have it.
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

// Reading is one read of an asset. The cache may keep the answer to the read.
type Reading struct {
	memory  *Cache
	id      string
	changes int // value of activity.last when the read began
}

// Begin begins a read of an asset. If it returns a Reading, the caller must end the Reading. It returns nil if
// the answer must not be kept: the asset is being written, or nobody else has asked for it lately.
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

// End ends the read. The argument `answer` is nil if the read has failed. The answer is kept if no batch has
// changed the asset meanwhile.
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

// keep stores an answer. It does not remove the answers of the asset in other forms. The caller holds mu.
func (m *Cache) keep(id string, answer *Answer) {
	of, _ := m.kept.GetIfPresent(id)
	others := slices.DeleteFunc(slices.Clone(of), func(a *Answer) bool { return a.Form == answer.Form })
	m.kept.Set(id, append(others, answer))
}

// Change announces that a batch will write some assets. After Change has returned, the memory has no answers of
// these assets, and keeps none until the function `done` is called. The caller must not write before Change has
// returned. It must call done when nothing of the batch can be written any more.
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

// activity returns the activity of an asset, and creates it if necessary. The caller holds mu.
func (m *Cache) activity(id string) *activity {
	a := m.busy[id]
	if a == nil {
		a = &activity{}
		m.busy[id] = a
	}
	return a
}

// tidy removes the activity of an asset once nothing happens to the asset. The caller holds mu.
func (m *Cache) tidy(id string, a *activity) {
	if a.changes == 0 && a.readings == 0 {
		delete(m.busy, id)
	}
}

// Measure adds the metrics of the memory to a meter, until the function `unregister` is called.
func (m *Cache) Measure(meter metric.Meter) (unregister func()) {
	observed := telemetry.Observe(meter)
	lookups := observed.Counter("registry.answers.lookups", "{request}",
		"Readings of assets by result: hit (answered from memory) or miss.")
	dropped := observed.Counter("registry.answers.dropped", "{asset}",
		"Assets whose answers were dropped because somebody changed them.")
	refused := observed.Counter("registry.answers.refused", "{request}",
		"Answers that were not kept because the asset changed while it was read.")
	held := observed.Gauge("registry.answers.held", "By", "Bytes of the answers in memory.")
	hit := metric.WithAttributes(attribute.String("result", "hit"))
	miss := metric.WithAttributes(attribute.String("result", "miss"))
	return observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(lookups, m.found.Load(), hit)
		o.ObserveInt64(lookups, m.missed.Load(), miss)
		o.ObserveInt64(dropped, m.dropped.Load())
		o.ObserveInt64(refused, m.refused.Load())
		o.ObserveInt64(held, int64(m.kept.WeightedSize()))
	})
}

// slots is the maximum number of assets that recent remembers.
const slots = 1 << 16

// recent remembers which assets were asked for within about a minute. The hash of an asset's id selects a slot,
// and a slot remembers only the last asset.
type recent struct {
	seed maphash.Seed
	slot [slots]atomic.Uint64 // 48 bits of the hash of an id, and 16 bits of the minute
}

func newRecent() *recent { return &recent{seed: maphash.MakeSeed()} }

// The method `again` reports whether somebody asked for the asset in this minute or in the minute before. It notes that
// somebody asks now.
func (r *recent) again(id string, now time.Time) bool {
	const bits = 16 // number of bits for the minute
	hash, minute := maphash.String(r.seed, id), uint16(now.Unix()/60)
	old := r.slot[hash%slots].Swap(hash&^(1<<bits-1) | uint64(minute))
	return old>>bits == hash>>bits && minute-uint16(old) <= 1
}
