package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Confinement limits the memory of a process. If this machine allows it, a control group enforces the limit.
// Otherwise, Confinement sets GOMEMLIMIT, and the caller must compare Peak with the limit.
type Confinement struct {
	limit int64
	group string // directory of the control group; "" if there is no group
}

// Confine returns a confinement that limits memory to the given number of bytes. Call Close after its process has
// ended.
func Confine(limit int64) *Confinement {
	name := fmt.Sprintf("registry-attack-%d-%d", os.Getpid(), time.Now().UnixNano())
	for _, try := range []struct{ dir, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // control groups, version 1
		{"/sys/fs/cgroup", "memory.max"},                   // control groups, version 2
	} {
		group := filepath.Join(try.dir, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(group, try.file), []byte(strconv.FormatInt(limit, 10)), 0) == nil {
			return &Confinement{limit: limit, group: group}
		}
		_ = os.Remove(group) // the group is empty; an error does not matter
	}
	return &Confinement{limit: limit}
}

// IsHard reports whether the system enforces the limit.
func (c *Confinement) IsHard() bool { return c.group != "" }

// Command returns the program and the arguments with which to run binary in the confinement.
func (c *Confinement) Command(binary string, args ...string) (string, []string) {
	if c.group == "" {
		return "env", append([]string{fmt.Sprintf("GOMEMLIMIT=%d", c.limit/5*4), binary}, args...)
	}
	return "sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, c.group, binary}, args...)
}

// Close removes the control group. The process in it must have ended.
func (c *Confinement) Close() error {
	if c.group == "" {
		return nil
	}
	return os.Remove(c.group)
}

// Peak measures a process's own memory repeatedly until the function `stop` is called. Then stop returns the maximum
// in bytes. Pages of files do not count, because the kernel can take them back.
func Peak(pid int) (stop func() int64) {
	var most atomic.Int64
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most.Store(max(most.Load(), own(pid)))
			select {
			case <-ended:
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(ended)
		<-done
		return most.Load()
	}
}

// The function `own` returns the anonymous memory of a process in bytes, or 0 if the process has ended.
func own(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // the process has ended
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			// This cannot fail, because the kernel always writes a number.
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}
