package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// health has samples of the memory and the goroutines of each process.
type health struct {
	fleet *fleet
	seen  map[*member][]sample
}

// sample is one measurement of a process.
type sample struct {
	memory     float64 // MB, without mapped files
	goroutines float64
}

// watch samples all processes until ctx is done.
func (h *health) watch(ctx context.Context) {
	h.seen = map[*member][]sample{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if h.fleet.troubled(time.Now()) { // during a fault, waiting requests look like a leak
			continue
		}
		for _, m := range h.fleet.members {
			if m.metrics == "" {
				continue
			}
			if s, err := look(ctx, m); err == nil {
				h.seen[m] = append(h.seen[m], s)
			}
		}
	}
}

// look takes one sample of a process, from /proc and from its metrics.
func look(ctx context.Context, m *member) (s sample, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.process.ID()))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "RssAnon:"); found {
			kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return s, err
			}
			s.memory = kilobytes / 1024
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.metrics, nil)
	if err != nil {
		return s, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "go_goroutine_count") {
			fields := strings.Fields(line)
			s.goroutines, err = strconv.ParseFloat(fields[len(fields)-1], 64)
			return s, err
		}
	}
	return s, errors.New("no go_goroutine_count in the metrics")
}

// verdict prints a table, and returns an error that names each process that grows. It compares the third
// quarter of the run with the last quarter, because all caches are full by then. It does not judge a process
// that a fault has killed.
func (h *health) verdict() error {
	var grown []error
	fmt.Printf("%-12s %22s %22s\n", "", "memory, MB", "goroutines")
	for _, m := range h.fleet.members {
		all := h.seen[m]
		if m.metrics == "" || len(all) < 8 {
			continue
		}
		before, after := mean(all[len(all)/2:len(all)*3/4]), mean(all[len(all)*3/4:])
		fmt.Printf("%-12s %9.0f -> %9.0f %9.0f -> %9.0f\n", m.name, before.memory, after.memory, before.goroutines,
			after.goroutines)
		if m.killed {
			continue
		}
		if after.memory > before.memory*1.15+8 || after.goroutines > before.goroutines*1.15+20 {
			grown = append(grown, fmt.Errorf("memory or goroutines of %s grow", m.name))
		}
	}
	return errors.Join(grown...)
}

func mean(samples []sample) (m sample) {
	for _, s := range samples {
		m.memory += s.memory / float64(len(samples))
		m.goroutines += s.goroutines / float64(len(samples))
	}
	return m
}
