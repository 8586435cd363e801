package picture

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// bound limits the memory of this process, and its processor time.
func bound(work time.Duration) error {
	if raced {
		return nil
	}
	// The garbage collector keeps the heap below this limit. So memory that is no longer needed cannot make the
	// process exceed maxMemory.
	debug.SetMemoryLimit(maxMemory * 3 / 4)
	for kind, most := range map[int]uint64{syscall.RLIMIT_DATA: maxMemory, syscall.RLIMIT_CPU: uint64(work.Seconds())} {
		if err := syscall.Setrlimit(kind, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	// If the whole machine is short of memory, the system kills this process first. Some systems do not have this
	// file, so an error does not matter.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}
