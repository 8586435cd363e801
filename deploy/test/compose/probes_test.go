package compose

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// BenchmarkProbes measures how much processor time the health checks of the idle stack need: in the engine, in the
// processes that it starts, and in the services that answer. The stack cannot run without health checks, because
// its parts wait for each other's health. So the benchmark compares a check every 10 s with a check every 60 s. The
// difference is five checks per minute. "make bench-probes" runs it.
func BenchmarkProbes(b *testing.B) {
	const window = 10 * time.Minute
	s := start(b)
	running := strings.Fields(s.run(b, "ps", "--services"))
	spent := func(interval string) time.Duration {
		s.set("HEALTH_INTERVAL", interval)
		s.run(b, append([]string{"up", "--detach", "--no-build", "--no-deps"}, running...)...)
		time.Sleep(time.Minute) // wait until the stack is idle
		before := engineTime(b)
		time.Sleep(window)
		return engineTime(b) - before
	}
	for b.Loop() {
		often, rarely := spent("10s"), spent("60s")
		b.ReportMetric(100*(often-rarely).Seconds()/window.Seconds()/5, "%-of-a-core-for-probes")
		b.ReportMetric(100*rarely.Seconds()/window.Seconds(), "%-of-a-core-idle")
	}
}

// engineTime returns the processor time that a Docker engine and its containers have used, including their
// processes that have ended.
func engineTime(b *testing.B) (total time.Duration) {
	b.Helper()
	const tick = 10 * time.Millisecond // the unit of times in /proc
	processes := expect.Get(filepath.Glob("/proc/[0-9]*"))(b)
	counted := 0
	for _, dir := range processes {
		stat, err := os.ReadFile(dir + "/stat") // PID (NAME) STATE ...
		group, errGroup := os.ReadFile(dir + "/cgroup")
		if err != nil || errGroup != nil {
			continue // the process has ended
		}
		name, rest, _ := strings.Cut(string(stat), ") ")
		_, name, _ = strings.Cut(name, "(")
		if name != "dockerd" && !strings.HasPrefix(name, "containerd") && !bytes.Contains(group, []byte("docker")) {
			continue
		}
		counted++
		// Indexes of the first and the last of four fields, counted from STATE. The fields are the user and system time
		// of the process, and the user and system time of its children that have ended.
		const utime, cstime = 11, 14
		for _, field := range strings.Fields(rest)[utime : cstime+1] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(fmt.Errorf("%s: %w", stat, err))
			}
			total += time.Duration(ticks) * tick
		}
	}
	if counted < 20 {
		b.Fatalf("got %d processes of the engine, want at least 20", counted)
	}
	return total
}
