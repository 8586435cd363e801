// Package memory limits how many bytes requests hold in a process at the same
// time. So no number of requests, slow readers or large assets makes the process
// run out of memory.
//
// A Budget counts bytes that a client can hold for long, such as answers being sent and bodies being received.
// It never waits: if bytes do not fit, it refuses. Large amounts may use only three quarters of it, so that
// small ones still get through.
//
// A fair.Semaphore counts bytes that are held only while the process works on a request. Such work ends soon, so
// requests wait for a short time.
package memory

import (
	"bytes"
	"context"
	"hash/maphash"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/fair"
	"asset-registry/shared/telemetry"
)

// heapShare is the share of a limit for Go's heap. The rest is for stacks, the
// kernel's buffers and cached pages of files.
const heapShare = 0.8

// RespectLimit sets the garbage collector's limit to a share (heapShare) of a limit.
// This is the memory limit of the process's control group or the argument `bytes`,
// whichever is smaller. 0 bytes mean no limit. RespectLimit changes nothing if GOMEMLIMIT
// is set.
func RespectLimit(log *slog.Logger, bytes int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if _, err := memlimit.Set(memlimit.WithRatio(heapShare)); err != nil {
		log.Debug("no control group limits the memory", "error", err)
	}
	if share := int64(float64(bytes) * heapShare); share > 0 && share < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(share)
	}
}

// Limit returns how many bytes this process may use: the least of GOMEMLIMIT,
// the limit of its control group, and the machine's memory. If none is known, it
// returns 1 GiB.
func Limit() int64 {
	least := debug.SetMemoryLimit(-1) // math.MaxInt64 without a limit
	for _, limit := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if bytes, err := limit(); err == nil && bytes > 0 && bytes < uint64(least) {
			least = int64(bytes)
		}
	}
	if least == math.MaxInt64 {
		return 1 << 30
	}
	return least
}

// Bounds of GOGC. This variable says by how much the heap grows before a collection, in percent
// of the live heap with its stacks.
const (
	mostGrowth  = 400
	leastGrowth = 60
	garbage     = 32 << 20 // a small heap may grow by these bytes, but by mostGrowth percent at most
)

// RelaxCollector lets a heap grow further before a collection: a small one to five times its live size, a large one
// by 32 MiB or 60 percent, whichever is more. If the variable GOGC is set, RelaxCollector does nothing. In a process
// with a small live heap, a request then costs a tenth to a third less. In a process with many streams, a stream
// costs little more than its live memory. A memory limit still applies: near it, collections come more often.
func RelaxCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	growth := mostGrowth
	debug.SetGCPercent(growth)
	afterCollections(func() {
		next := growthFor(liveBytes())
		if change := next - growth; change > growth/10 || change < -growth/10 {
			growth = next
			debug.SetGCPercent(growth)
		}
	})
}

// growthFor returns GOGC for a live heap of the given number of bytes.
func growthFor(live uint64) int {
	return int(min(max(100*garbage/max(live, 1), leastGrowth), mostGrowth))
}

// liveBytes returns how many bytes the last collection found alive, with the stacks.
func liveBytes() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}}
	metrics.Read(samples)
	sum := uint64(0)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}

// afterCollections calls the function f after each collection, as long as the process runs. It makes an object to
// which nothing refers; after a collection the finalizer of the object runs, and makes the next object.
func afterCollections(f func()) {
	type object struct{ _ *int } // the pointer keeps it away from other tiny objects, which could keep it alive
	var next func(*object)
	next = func(*object) {
		f()
		runtime.SetFinalizer(&object{}, next)
	}
	runtime.SetFinalizer(&object{}, next)
}

// Limiter is a Budget, InFlight or a fair.Semaphore of bytes.
type Limiter interface {
	Used() int64    // bytes in use
	Size() int64    // bytes that may be in use
	Refused() int64 // requests that did not fit, since the start
}

// Measure registers metrics of limiters, by their names, until the function `stop` is called.
func Measure(meter metric.Meter, limiters map[string]Limiter) (stop func()) {
	observed := telemetry.Observe(meter)
	used := observed.Gauge("registry.memory.used", "By", "Memory that requests hold, by limiter.")
	size := observed.Gauge("registry.memory.size", "By", "Memory that requests may hold, by limiter.")
	refused := observed.Counter("registry.memory.refused", "{request}",
		"Requests that were refused for lack of memory, by limiter.")
	return observed.Read(func(_ context.Context, o metric.Observer) {
		for name, l := range limiters {
			attributes := metric.WithAttributes(attribute.String("part", name))
			o.ObserveInt64(used, l.Used(), attributes)
			o.ObserveInt64(size, l.Size(), attributes)
			o.ObserveInt64(refused, l.Refused(), attributes)
		}
	})
}

// InFlight is a Budget for answers that are being sent. Equal large answers share
// their bytes. It is safe for concurrent use.
type InFlight struct {
	*Budget
	seed maphash.Seed

	mu     sync.Mutex
	shared map[uint64]*shared

	held fair.Held
}

// shared is a large answer.
type shared struct {
	body    []byte
	readers int // clients to which the answer is being sent
}

// NewInFlight returns InFlight with a budget of size bytes.
func NewInFlight(size int64) *InFlight {
	return &InFlight{Budget: NewBudget(size), seed: maphash.MakeSeed(), shared: map[uint64]*shared{}}
}

// Keep holds the body of an answer to a caller until the function `release` is called. It returns the bytes to send.
// They may belong to an equal answer, so the argument `body` must not be used any more. While the body does not fit,
// Keep ends answers whose clients take nothing. If it still does not fit, Keep returns false.
func (a *InFlight) Keep(by string, answer fair.Answer, body []byte) (kept []byte, release func(), ok bool) {
	for {
		if kept, release, ok = a.keep(body); ok {
			return kept, a.held.Add(by, answer, release), true
		}
		if !a.held.Take() {
			return nil, nil, false
		}
	}
}

func (a *InFlight) keep(body []byte) (kept []byte, release func(), ok bool) {
	n := int64(cap(body))
	if n <= Small {
		return body, func() { a.Release(n) }, a.Hold(n)
	}
	key := maphash.Bytes(a.seed, body)
	a.mu.Lock()
	defer a.mu.Unlock()
	equal := a.shared[key]
	if equal != nil && !bytes.Equal(equal.body, body) { // another answer with the same hash
		return body, func() { a.Release(n) }, a.Hold(n)
	}
	if equal == nil {
		if !a.Hold(n) {
			return nil, nil, false
		}
		equal = &shared{body: body}
		a.shared[key] = equal
	}
	equal.readers++
	return equal.body, func() { a.leave(key, equal) }, true
}

// leave ends the sending of a shared answer to one client.
func (a *InFlight) leave(key uint64, of *shared) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of.readers--; of.readers == 0 {
		delete(a.shared, key)
		a.Release(int64(cap(of.body)))
	}
}

// Small is the maximum number of bytes that count as a small amount. Small amounts may use all of a budget, and need no
// fair.Semaphore.
const Small = 64 << 10

// largeShare is the number of quarters of a budget that all amounts above Small may use together.
const largeShare = 3

// Budget limits the bytes that are held at the same time. It is safe for concurrent use.
type Budget struct {
	size    int64
	used    atomic.Int64
	refused atomic.Int64
}

// NewBudget returns a budget of size bytes.
func NewBudget(size int64) *Budget { return &Budget{size: size} }

// Hold reserves n bytes until Release. If they do not fit, it reserves nothing
// and returns false.
func (b *Budget) Hold(n int64) bool {
	most := b.size
	if n > Small {
		most = b.size / 4 * largeShare
	}
	if b.used.Add(n) > most {
		b.used.Add(-n)
		b.refused.Add(1)
		return false
	}
	return true
}

// Release gives back n bytes that Hold reserved.
func (b *Budget) Release(n int64) { b.used.Add(-n) }

// IsCrowded reports whether more than half of the budget is in use.
func (b *Budget) IsCrowded() bool { return b.used.Load() > b.size/2 }

// Used returns how many bytes are held.
func (b *Budget) Used() int64 { return b.used.Load() }

// Size returns how many bytes may be held.
func (b *Budget) Size() int64 { return b.size }

// Refused returns how often Hold returned false.
func (b *Budget) Refused() int64 { return b.refused.Load() }
