package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// arrival is an event that a follower received, with the time at which it received the event.
type arrival struct {
	id string
	at time.Time
}

// followers are clients that each use a plain socket, because a client of net/http needs more memory and CPU
// time than the server under test.
type followers struct {
	conns    []net.Conn
	arrivals [][]arrival
	reading  sync.WaitGroup
}

// follow connects the followers. It returns when each has received the beginning of its answer.
func follow(ctx context.Context, s server, p plan) (*followers, error) {
	f := &followers{conns: make([]net.Conn, p.followers), arrivals: make([][]arrival, p.followers)}
	var g errgroup.Group
	g.SetLimit(64)
	for i := range f.conns {
		g.Go(func() error { return f.connect(ctx, i, s, p) })
	}
	if err := g.Wait(); err != nil {
		f.close()
		return nil, err
	}
	time.Sleep(2 * time.Second) // until the followers have received the events that existed before
	return f, nil
}

func (f *followers) connect(ctx context.Context, i int, s server, p plan) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.address())
	if err != nil {
		return fmt.Errorf("follower %d: %w", i, err)
	}
	f.conns[i] = conn
	const request = "GET %s HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n"
	if _, err := fmt.Fprintf(conn, request, s.path(p.fields)); err != nil {
		return fmt.Errorf("follower %d: %w", i, err)
	}
	r := bufio.NewReaderSize(conn, 1024)
	line, err := r.ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		return fmt.Errorf("follower %d: got %q, %w", i, line, err)
	}
	f.reading.Go(func() { f.read(i, r) })
	return nil
}

// read records each event until the connection ends.
func (f *followers) read(i int, r *bufio.Reader) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
		if id, found := bytes.CutPrefix(line, []byte("id: ")); found {
			f.arrivals[i] = append(f.arrivals[i], arrival{string(bytes.TrimSpace(id)), time.Now()})
		}
	}
}

func (f *followers) close() {
	for _, conn := range f.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	f.reading.Wait()
}

// lateness disconnects the followers. It returns the time from the acknowledgement of each change to its
// arrival at each follower.
func (f *followers) lateness(acked map[string]time.Time) (late []time.Duration) {
	f.close()
	for _, all := range f.arrivals {
		for _, a := range all {
			if at, known := acked[a.id]; known {
				late = append(late, max(0, a.at.Sub(at)))
			}
		}
	}
	return late
}

// cpuOf returns the CPU time of a process, or 0 if the process has ended (proc(5)).
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, _ := strconv.Atoi(field) // cannot fail, because the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// memoryOf returns the resident memory of a process in KiB, or 0 if the process has ended.
func memoryOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kilobytes
}
