package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"asset-registry/deploy/test/rig/clients"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

// fleet holds the processes of the registry under load.
type fleet struct {
	bin, dir string
	gateways []string // URLs
	members  []*member
	output   processes.Output

	mu     sync.Mutex
	broken bool      // whether a fault is active
	mended time.Time // when the last fault ended
}

// member is one process of the fleet.
type member struct {
	name    string
	addr    string
	metrics string // URL; "" for Redis
	start   func(ctx context.Context) (*processes.Process, error)
	process *processes.Process
	killed  bool // a fault has killed the process, so the growth of its memory is not judged
}

// start starts Redis and the services.
func (f *fleet) start(ctx context.Context) error {
	secret := filepath.Join(f.dir, "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("secret", 8)), 0o600); err != nil {
		return err
	}
	limits := filepath.Join(f.dir, "gateway.yaml")
	if err := os.WriteFile(limits, []byte("limits:\n"+
		"- {name: key, by: key, costs: {list: 1, read: 1, write: 1}, windows: {1s: 1000000}}\n"+
		"- {name: address, by: address, costs: {list: 1, read: 1, write: 1}, windows: {1s: 1000000}}\n"),
		0o600); err != nil {
		return err
	}
	redis, err := f.addRedis(ctx)
	if err != nil {
		return err
	}
	add := func(name string, count int, args ...string) (urls string, err error) {
		var all []string
		for n := range count {
			addr, err1 := porttest.FreeAddr()
			metrics, err2 := porttest.FreeAddr()
			if err := errors.Join(err1, err2); err != nil {
				return "", err
			}
			own := append([]string{"--addr", addr, "--metrics-addr", metrics, "--secret-file", secret, "--log-level",
				"error"}, args...)
			m := &member{name: fmt.Sprint(name, " ", n+1), addr: addr, metrics: "http://" + metrics + "/metrics"}
			m.start = func(ctx context.Context) (*processes.Process, error) {
				return processes.Start(ctx, addr, &f.output, filepath.Join(f.bin, name), own...)
			}
			if m.process, err = m.start(ctx); err != nil {
				return "", err
			}
			f.members = append(f.members, m)
			all = append(all, "http://"+addr)
		}
		return strings.Join(all, ","), nil
	}
	auth, err := add("authsvc", 2, "--store", "redis://"+redis+"/0", "--sandbox")
	if err != nil {
		return err
	}
	assets, err := add("assetsvc", 1, "--store", "file:"+filepath.Join(f.dir, "assets.db"), "--sandbox", "--auth-url",
		auth)
	if err != nil {
		return err
	}
	gateways, err := add("gateway", 2, "--auth-url", auth, "--assets-url", assets, "--config", limits,
		"--limits-redis", "redis://"+redis+"/1")
	f.gateways = strings.Split(gateways, ",")
	return err
}

// addRedis starts Redis with an append-only file, and returns its address.
func (f *fleet) addRedis(ctx context.Context) (addr string, err error) {
	if addr, err = porttest.FreeAddr(); err != nil {
		return "", err
	}
	_, port, _ := strings.Cut(addr, ":")
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", err
	}
	m := &member{name: "redis", addr: addr}
	m.start = func(ctx context.Context) (*processes.Process, error) {
		return processes.StartAny(ctx, addr, &f.output, program, "--bind", "127.0.0.1", "--port", port, "--dir", f.dir,
			"--save", "", "--appendonly", "yes", "--appendfsync", "always")
	}
	m.process, err = m.start(ctx)
	f.members = append(f.members, m)
	return addr, err
}

// stop kills all processes in reverse order.
func (f *fleet) stop() {
	for i := len(f.members) - 1; i >= 0; i-- {
		_ = f.members[i].process.Thaw() // fails for a process that has ended, which does no harm
		_ = f.members[i].process.Kill()
	}
}

// fault stops one process for a time. It kills or freezes the process.
type fault struct {
	member string
	kill   bool // true: the process is killed; false: it is frozen
	during time.Duration
}

// faults lists the faults in order. After the last one, the list starts again.
var faults = []fault{
	{"authsvc 1", true, 3 * time.Second},
	{"gateway 1", true, 3 * time.Second},
	{"redis", false, 2 * time.Second},
	{"assetsvc 1", false, 2 * time.Second},
	{"authsvc 2", false, 3 * time.Second},
	{"redis", true, 2 * time.Second},
	{"gateway 2", false, 2 * time.Second},
}

// breakAll runs the faults in their order until ctx is done, with a pause of faultEvery before each.
func (f *fleet) breakAll(ctx context.Context, c *clients.Clients) {
	for n := 0; ; n++ {
		if !sleep.For(ctx, faultEvery) {
			return
		}
		what := faults[n%len(faults)]
		if err := f.breakOne(ctx, what); err != nil {
			c.Violated(fmt.Sprintf("fault on %s: %v", what.member, err))
			return
		}
	}
}

// breakOne runs one fault, and then restarts or thaws the process.
func (f *fleet) breakOne(ctx context.Context, what fault) error {
	for _, m := range f.members {
		if m.name != what.member {
			continue
		}
		f.set(true)
		defer f.set(false)
		if what.kill {
			m.killed = true
			if err := m.process.Kill(); err != nil {
				return err
			}
		} else if err := m.process.Freeze(); err != nil {
			return err
		}
		sleep.For(ctx, what.during)
		if !what.kill {
			return m.process.Thaw()
		}
		var err error
		m.process, err = m.start(context.WithoutCancel(ctx))
		return err
	}
	return fmt.Errorf("no process %s in the fleet", what.member)
}

func (f *fleet) set(broken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken, f.mended = broken, time.Now()
}

// troubled reports whether a request that was sent at the given time may fail: a fault is active now, or the last
// fault had ended less than aftermath before that time.
func (f *fleet) troubled(since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken || since.Before(f.mended.Add(aftermath))
}

// mend thaws all processes, and waits until all of them have noticed that the faults have ended.
func (f *fleet) mend(ctx context.Context) error {
	for _, m := range f.members {
		if err := m.process.Thaw(); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	sleep.For(ctx, aftermath)
	return nil
}
