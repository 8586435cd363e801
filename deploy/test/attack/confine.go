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

// Confinement is a hard limit of memory for a process: a control group of its
// own where one can be made. Elsewhere the process is told of the limit, and
// Peak tells whether it has kept to it.
type Confinement struct {
	limit int64
	group string // its directory; "" for none
}

// Confine returns a confinement to limit bytes.
func Confine(limit int64) *Confinement {
	name := fmt.Sprintf("registry-attack-%d-%d", os.Getpid(), time.Now().UnixNano())
	for _, try := range []struct{ dir, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // version 1
		{"/sys/fs/cgroup", "memory.max"},                   // version 2
	} {
		group := filepath.Join(try.dir, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(group, try.file), []byte(strconv.FormatInt(limit, 10)), 0) == nil {
			return &Confinement{limit: limit, group: group}
		}
		_ = os.Remove(group) // it is empty
	}
	return &Confinement{limit: limit}
}

// IsHard reports whether the system enforces the limit.
func (c *Confinement) IsHard() bool { return c.group != "" }

// Command returns a command that runs another one in the confinement.
func (c *Confinement) Command(binary string, args ...string) (string, []string) {
	if c.group == "" {
		return "env", append([]string{fmt.Sprintf("GOMEMLIMIT=%d", c.limit/5*4), binary}, args...)
	}
	return "sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, c.group, binary}, args...)
}

// Close takes the control group away; its process must have ended.
func (c *Confinement) Close() error {
	if c.group == "" {
		return nil
	}
	return os.Remove(c.group)
}

// Peak watches how much memory of its own a process has until stop, which
// returns the most, in bytes. Pages of files do not count: the system takes
// them back when it needs to.
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

// own returns the bytes of memory that only a process has.
func own(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64) // the system writes nothing else
			return kib << 10
		}
	}
	return 0
}
