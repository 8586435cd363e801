package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestGrowthFollowsTheLiveHeap(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 400}, {1 << 20, 400}, {8 << 20, 400}, {16 << 20, 200}, {32 << 20, 100}, {64 << 20, 60}, {1 << 40, 60}} {
		expect.Equal(t, growthFor(c.live), c.want, "%d live bytes: GOGC", c.live)
	}
}

// TestTheCollectorIsRelaxedWhileTheHeapIsSmall lets the live heap grow and shrink again. GOGC must be high while the
// heap is small, and low while it is large.
func TestTheCollectorIsRelaxedWhileTheHeapIsSmall(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(100)
	RelaxCollector()
	is := func(want uint64) {
		t.Helper()
		var got uint64
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			runtime.GC()
			s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
			metrics.Read(s)
			if got = s[0].Value.Uint64(); got == want {
				return
			}
		}
		t.Errorf("got GOGC %d, want %d", got, want)
	}
	is(mostGrowth)
	large := make([]byte, 100<<20)
	is(leastGrowth)
	runtime.KeepAlive(large)
	is(mostGrowth)
}
