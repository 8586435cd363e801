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
)

// BenchmarkProbes measures the processor time that the health checks of the idle stack need: of the
// engine, of what it starts, and of what answers. The stack without any look cannot be measured,
// because its parts wait for each other's health. So it compares looks every 10 and every 60 seconds:
// five looks in a minute are the difference. "make bench-probes" runs it.
func BenchmarkProbes(b *testing.B) {
	const window = 10 * time.Minute
	s := start(b)
	running := strings.Fields(s.run(b, "ps", "--services"))
	spent := func(interval string) time.Duration {
		s.set("HEALTH_INTERVAL", interval)
		s.run(b, append([]string{"up", "--detach", "--no-build", "--no-deps"}, running...)...)
		time.Sleep(time.Minute) // until it is idle
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

// engineTime returns the processor time of a Docker engine, its containers, and all processes of
// them that have ended.
func engineTime(b *testing.B) (total time.Duration) {
	b.Helper()
	const tick = 10 * time.Millisecond // of /proc
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.Fatal(err)
	}
	counted := 0
	for _, dir := range processes {
		stat, err := os.ReadFile(dir + "/stat") // PID (NAME) STATE ...
		group, errGroup := os.ReadFile(dir + "/cgroup")
		if err != nil || errGroup != nil {
			continue // it has ended
		}
		name, rest, _ := strings.Cut(string(stat), ") ")
		_, name, _ = strings.Cut(name, "(")
		if name != "dockerd" && !strings.HasPrefix(name, "containerd") && !bytes.Contains(group, []byte("docker")) {
			continue
		}
		counted++
		const utime, cstime = 11, 14 // counted from STATE: of the process, and of its children that ended
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
