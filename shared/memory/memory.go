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
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
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
