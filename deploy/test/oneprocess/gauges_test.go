package oneprocess

import (
	"bufio"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// ages matches gauges of an age or a delay. Counters end with _total, and histograms with other words.
var ages = regexp.MustCompile(`^registry_\w+_(behind|age|lag|unread|lead)_seconds(\{|$)`)

// TestNoGaugeTellsMoreThanItKnows starts an empty registry, and starts it again later. In the first seconds of
// each process, no age is longer than the registry exists, and none is negative.
func TestNoGaugeTellsMoreThanItKnows(t *testing.T) {
	data, addr, metrics := filepath.Join(t.TempDir(), "data"), freeAddr(t), freeAddr(t)
	began := time.Now()
	for i, name := range []string{"the first start", "another start"} {
		output := &processes.Output{}
		p := start(t, metrics, output, filepath.Join(*bin, "registry"), "serve", "--search", "--sandbox", "--addr", addr,
			"--metrics-addr", metrics, "--data", data)
		seen := map[string]bool{}
		for time.Since(began) < time.Duration(i+1)*4*time.Second {
			for gauge, value := range gauges(t, metrics) {
				series, _, _ := strings.Cut(gauge, "{")
				seen[series] = true
				if ages.MatchString(gauge) && (value < 0 || value > time.Since(began).Seconds()) {
					t.Errorf("%s: got %s %v after %v", name, gauge, value, time.Since(began))
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		for _, series := range []string{"log", "files", "search", "webhooks"} {
			if series = "registry_" + series + "_behind_seconds"; !seen[series] {
				t.Errorf("%s: got no %s", name, series)
			}
		}
		stop(t, p, output)
	}
}

// TestAnIdleRegistryWarnsOfNothing lets registries in two shapes run for 10 s without a client. Their own requests come
// each second or more often. The single process also stands still for longer than these requests wait, as on a busy
// machine. No log may have a warning after the start.
func TestAnIdleRegistryWarnsOfNothing(t *testing.T) {
	addr, logs := freeAddr(t), [2]*processes.Output{{}, {}}
	p := start(t, addr, logs[0], filepath.Join(*bin, "registry"), "serve", "--search", "--sandbox", "--addr", addr,
		"--data", filepath.Join(t.TempDir(), "data"))
	withSearch := processes.Stores{Search: true}
	split := expect.Get(processes.StartSplit(t.Context(), *bin, freeAddr(t), t.TempDir(), withSearch, logs[1]))(t)
	begun := [2]int{len(logs[0].String()), len(logs[1].String())}
	for range 4 {
		time.Sleep(time.Second)
		expect.OK(t, p.Freeze())
		time.Sleep(1500 * time.Millisecond)
		expect.OK(t, p.Thaw())
	}
	for i, log := range logs {
		if text := log.String()[begun[i]:]; strings.Contains(text, `"level":"WARN"`) {
			t.Errorf("got a warning in %s", text)
		}
	}
	stop(t, p, logs[0])
	expect.OK(t, split.Stop())
}

// gauges returns the values that a process tells Prometheus.
func gauges(t *testing.T, addr string) map[string]float64 {
	t.Helper()
	resp := expect.Get(http.Get("http://" + addr + "/metrics"))(t)
	defer resp.Body.Close()
	told := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 2 && !slices.Contains(words, "#") {
			told[words[0]] = expect.Get(strconv.ParseFloat(words[1], 64))(t)
		}
	}
	return told
}
