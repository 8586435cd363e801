package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Bounds of GOGC, which says how far the heap grows before a collection, in percent of the
// live heap with its stacks.
const (
	mostGrowth  = 400
	leastGrowth = 60
	garbage     = 32 << 20 // bytes that a heap may grow by, if leastGrowth does not let it grow further
)

// RelaxCollector lets a small heap grow to five times its live size before a collection, a
// large one by 32 MiB or 60 percent. The variable GOGC switches it off. A request so costs a
// process with a small live heap a tenth to a third less. A stream costs a process with many
// little more than its live memory. A memory limit still counts: near it, collections come
// more often.
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

// growthFor returns GOGC for a live heap.
func growthFor(live uint64) int {
	return int(min(max(100*garbage/max(live, 1), leastGrowth), mostGrowth))
}

// liveBytes returns what the last collection found alive, with the stacks.
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

// afterCollections calls f after each collection, as long as the process runs: the finalizer
// of an object that nothing refers to runs then, and makes the next such object.
func afterCollections(f func()) {
	type object struct{ _ *int } // no tiny object, which others would keep
	var next func(*object)
	next = func(*object) {
		f()
		runtime.SetFinalizer(&object{}, next)
	}
	runtime.SetFinalizer(&object{}, next)
}
