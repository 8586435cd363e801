package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

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
