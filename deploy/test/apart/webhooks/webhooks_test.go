package webhooks

import (
	"bufio"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

var (
	bin   = flag.String("bin", "", "absolute path of the directory of the programs; by default they are built")
	hooks = flag.Int("hooks", 200, "webhooks of the measurement; a tenth is dead and a tenth slow")
	lasts = flag.Duration("lasts", 15*time.Second, "time of the measurement")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds the programs, unless the flag -bin gives their directory, and runs the tests.
func run(m *testing.M) int {
	if *bin == "" {
		dir, err := os.MkdirTemp("", "registry-webhooks")
		if err == nil {
			defer os.RemoveAll(dir)
			err = processes.Build(context.Background(), dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		*bin = dir
	}
	return m.Run()
}

const (
	rate = 50          // changes per second
	goal = time.Second // time from a change until a healthy receiver has it, at p99
)

// TestHealthyReceiversGetEachChange starts webhooks. A tenth of them have dead receivers, and another tenth have
// slow ones. It prints how soon the healthy receivers get a change, but does not fail if they get it late.
func TestHealthyReceiversGetEachChange(t *testing.T) {
	registry := startRegistry(t, 200)
	r, nobody := newReceivers(t), silent(t)
	for i := range *hooks {
		fields := ""
		if i%20 == 2 {
			fields = "*"
		}
		switch i % 10 {
		case 0:
			registry.hook(nobody+"/"+strconv.Itoa(i), fields)
		default:
			r.add(registry, i%10 == 1, fields)
		}
	}
	registry.touchAll()
	r.await(registry, 5*time.Minute) // afterwards, all webhooks are verified
	r.mu.Lock()
	r.timing = true
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	changes := registry.write(ctx, rate)
	r.await(registry, 2*time.Minute)
	r.check()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.delays)
	if len(r.delays) < changes {
		t.Fatalf("got %d entries at all receivers for %d changes, want more", len(r.delays), changes)
	}
	at := func(share float64) time.Duration { return r.delays[int(share*float64(len(r.delays)-1))] }
	t.Logf("%d webhooks, %d changes in %v, %d entries at healthy receivers: p50 %v, p99 %v, most %v; %.2f of the goal of %v",
		*hooks, changes, *lasts, len(r.delays), at(.5), at(.99), at(1), at(.99).Seconds()/goal.Seconds(), goal)
}

// touchAll changes each asset once.
func (r *registry) touchAll() {
	r.t.Helper()
	for _, a := range r.assets {
		expect.OK(r.t, r.change(a, `{"data":{"title":"`+rand.Text()+`"}}`))
	}
}

// TestHostileReceiversTakeLittleMemory starts webhooks whose receivers send endless answers or headers, or stay
// silent. The memory of the process must stay below a limit, and an honest receiver must get all changes.
func TestHostileReceiversTakeLittleMemory(t *testing.T) {
	const memory = 256 << 20
	registry := startRegistry(t, 50, "--memory", strconv.Itoa(memory))
	chunks := strings.Repeat("10000\r\n"+strings.Repeat("x", 1<<16)+"\r\n", 4)
	const early = "HTTP/1.1 103 Early Hints\r\n"
	hostile := []string{
		endless(t, "HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 64<<10)),
		endless(t, "HTTP/1.1 200 OK\r\n", strings.Repeat("X-A: b\r\n", 8<<10)),
		endless(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks),
		endless(t, early+"\r\n", strings.Repeat(early+"X-A: b\r\n\r\n", 1<<10)),
		silent(t),
	}
	for i := range 200 {
		registry.hook(hostile[i%len(hostile)]+"/"+strconv.Itoa(i), "*")
	}
	r := newReceivers(t)
	r.add(registry, false, "*")
	registry.touchAll()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	most := make(chan int64, 1)
	go func() {
		peak := int64(0)
		for ctx.Err() == nil {
			peak = max(peak, resident(registry.process.ID()))
			time.Sleep(50 * time.Millisecond)
		}
		most <- peak
	}()
	registry.write(ctx, rate)
	r.await(registry, 2*time.Minute)
	r.check()
	peak := <-most
	if peak == 0 || peak > memory {
		t.Errorf("got %d MiB of memory at most, want at most %d", peak>>20, memory>>20)
	}
	t.Logf("200 hostile receivers: %d MiB of memory at most", peak>>20)
}

// endless starts a server that answers each request with the text in the parameter `head`, and then repeats the text
// in the parameter `part` without end. It returns the server's address.
func endless(t *testing.T, head, part string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, err := bufio.NewReader(c).ReadString('\n')
				for text := head; err == nil; text = part {
					_, err = c.Write([]byte(text))
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// resident returns how many bytes of memory a process has, or 0 if that cannot be read.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
