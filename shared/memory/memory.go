// Package memory bounds the bytes that requests hold in a process at once, so
// that no number of requests, of slow readers or of large assets makes the
// process end.
//
// A Budget counts bytes that are held for as long as a client likes: answers
// being sent, bodies being received. It never waits. Large holders may use
// three quarters of it, so that small ones still get through.
//
// A Semaphore counts bytes that are held only while a request is worked on. Work
// ends by itself, so requests wait for their turn there, first come, first
// served, for a short time.
package memory

import (
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// ofCgroup is the share of a control group's limit that Go's heap may have. The
// rest is for stacks, the kernel's buffers and pages of files.
const ofCgroup = 0.8

// RespectLimit makes the garbage collector keep below the memory limit of the
// process's control group, unless GOMEMLIMIT says what to keep below. Without a
// control group it changes nothing.
func RespectLimit(log *slog.Logger) {
	if _, err := memlimit.Set(memlimit.WithRatio(ofCgroup)); err != nil {
		log.Debug("no memory limit of a control group is respected", "error", err)
	}
}

// Limit returns how many bytes this process may use: the least of GOMEMLIMIT,
// the limit of its control group, and the machine's memory. It returns 1 GiB
// where none of them is known.
func Limit() int64 {
	least := debug.SetMemoryLimit(-1) // math.MaxInt64 if there is none
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
