package picture

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// bound limits the memory of this process, and its processor time. At the end of that time the process refuses its
// picture. If it does not even do that, the system kills it a little later.
func bound(work time.Duration) error {
	if raced {
		return nil
	}
	// The garbage collector keeps the heap below this limit. So memory that is no longer needed cannot make the
	// process exceed maxMemory.
	debug.SetMemoryLimit(maxMemory * 3 / 4)
	late := make(chan os.Signal, 1)
	signal.Notify(late, syscall.SIGXCPU)
	go func() { // ends with the process
		<-late
		os.Exit(refused)
	}()
	seconds := uint64(work.Seconds())
	for kind, most := range map[int]syscall.Rlimit{
		syscall.RLIMIT_DATA: {Cur: maxMemory, Max: maxMemory}, syscall.RLIMIT_CPU: {Cur: seconds, Max: seconds + grace},
	} {
		if err := syscall.Setrlimit(kind, &most); err != nil {
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	// If the whole machine is short of memory, the system kills this process first. Some systems do not have this
	// file, so an error does not matter.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	return nil
}
