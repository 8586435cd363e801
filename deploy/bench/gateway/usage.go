package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of CPU times in /proc (proc(5)). It is the same on every Linux.
const ticksPerSecond = 100

// family returns the ids of the contender's processes and of their children.
func (c *contender) family() ([]int, error) {
	all := append([]int(nil), c.processes...)
	for _, parent := range c.processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
		if err != nil {
			return nil, fmt.Errorf("find child processes: %w", err)
		}
		for field := range strings.FieldsSeq(string(text)) {
			id, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("find child processes: %w", err)
			}
			all = append(all, id)
		}
	}
	return all, nil
}

// usage has the resources that a contender has used since its start.
type usage struct {
	cpu   time.Duration
	calls int // system calls that read or write
}

// usage returns the resources that the contender has used since its start.
func (c *contender) usage() (used usage, err error) {
	ids, err := c.family()
	if err != nil {
		return used, err
	}
	for _, id := range ids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			return used, fmt.Errorf("read CPU time: %w", err)
		}
		// The name in parentheses may contain spaces. After it, the 12th and 13th
		// fields are the CPU times in user mode and in the kernel (proc(5)).
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.Atoi(field)
			if err != nil {
				return used, fmt.Errorf("read CPU time: %w", err)
			}
			used.cpu += time.Duration(n) * time.Second / ticksPerSecond
		}
		if text, err = os.ReadFile(fmt.Sprintf("/proc/%d/io", id)); err != nil {
			return used, fmt.Errorf("read system calls: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if name, count, _ := strings.Cut(line, ": "); name == "syscr" || name == "syscw" {
				n, err := strconv.Atoi(strings.TrimSpace(count))
				if err != nil {
					return used, fmt.Errorf("read system calls: %w", err)
				}
				used.calls += n
			}
		}
	}
	return used, nil
}

// memory returns the contender's resident memory in MB, or 0 if /proc cannot be read.
func (c *contender) memory() float64 {
	ids, err := c.family()
	if err != nil {
		return 0
	}
	var kilobytes int
	for _, id := range ids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		if err != nil {
			return 0
		}
		for line := range strings.Lines(string(text)) {
			if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
				n, err := strconv.Atoi(strings.Fields(rest)[0])
				if err != nil {
					return 0
				}
				kilobytes += n
			}
		}
	}
	return float64(kilobytes) / 1024
}
