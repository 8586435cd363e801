package picture

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"
)

// bound limits the memory of this process, and its time of a processor.
func bound(work time.Duration) error {
	if raced {
		return nil
	}
	// The collector keeps the heap below this, so that what is no longer needed does not count.
	debug.SetMemoryLimit(maxMemory * 3 / 4)
	for kind, most := range map[int]uint64{syscall.RLIMIT_DATA: maxMemory, syscall.RLIMIT_CPU: uint64(work.Seconds())} {
		if err := syscall.Setrlimit(kind, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	// Where memory is short for the whole machine, this process goes first. Some systems lack the file.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}
