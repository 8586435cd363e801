package clients

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/mirrors"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

var bin = flag.String("bin", "", "absolute path of the directory of the programs; by default they are built")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds the programs, unless the flag -bin gives their directory, and runs the tests.
func run(m *testing.M) int {
	if *bin == "" {
		dir, err := os.MkdirTemp("", "registry-clients")
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
	defer func() {
		if dir, err := workshop(); err == nil {
			os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

const (
	keyPages = "3"         // how many pages per second one API key may read; the scenario reads more, to be refused
	patience = time.Minute // how long a scenario may take to notice that the registry is down
)

// stage is a registry, a proxy in front of it, and a control server. A scenario uses the control server to ask for
// faults and to report its steps.
type stage struct {
	t         *testing.T
	addr, dir string
	// Addresses of mirrors. The first one copies the registry, and each further one copies the mirror before it.
	chain    []string
	output   processes.Output
	proxy    *proxy
	api      *httptest.Server // serves the proxy
	control  *httptest.Server
	restarts sync.WaitGroup

	mu       sync.Mutex
	registry *processes.Process
	mirrors  []*processes.Process
	steps    []step
	told     chan step // each reported step is sent here
}

// step is what a scenario reports about one of its steps.
type step struct {
	Step string
	Got  any
}

// newStage starts a registry with an empty data directory, and a chain of mirrors. Clients read from the last
// mirror.
func newStage(t *testing.T, mirrored int) *stage {
	t.Helper()
	var addrs []string
	for range 1 + mirrored {
		addr, err := porttest.FreeAddr()
		expect.OK(t, err)
		addrs = append(addrs, addr)
	}
	s := &stage{t: t, addr: addrs[0], chain: addrs[1:], mirrors: make([]*processes.Process, mirrored),
		dir: filepath.Join(t.TempDir(), "data"), proxy: newProxy(addrs[0], addrs[mirrored]), told: make(chan step, 100)}
	expect.OK(t, s.start())
	s.api = httptest.NewServer(s.proxy)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /fault", s.fault)
	mux.HandleFunc("POST /cookie", s.cookie)
	mux.HandleFunc("POST /restart", s.restart)
	mux.HandleFunc("POST /step", s.report)
	s.control = httptest.NewServer(fromAnyOrigin(mux))
	t.Cleanup(s.close)
	return s
}

func (s *stage) close() {
	s.control.Close()
	s.restarts.Wait()
	s.api.Close()
	for _, p := range append(slices.Clone(s.mirrors), s.registry) {
		if err := p.Stop(); err != nil {
			s.t.Errorf("stop the registry: %v; it printed: %s", err, s.output.String())
		}
	}
}

// start starts the registry on the data of the stage, and all mirrors that do not run.
func (s *stage) start() error {
	registry, err := processes.Start(context.Background(), s.addr, &s.output, filepath.Join(*bin, "registry"),
		"serve", "--sandbox", "--addr", s.addr, "--data", s.dir, "--limit-key-list", keyPages)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registry = registry
	of := s.addr
	for n, addr := range s.chain {
		if s.mirrors[n] == nil {
			s.mirrors[n], err = mirrors.Start(context.Background(), *bin, addr, "http://"+of, fmt.Sprint(s.dir, "-mirror", n),
				&s.output)
			if err != nil {
				return err
			}
		}
		of = addr
	}
	return nil
}

// fromAnyOrigin allows web pages of any origin to send simple requests to h.
func fromAnyOrigin(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
		h.ServeHTTP(w, r)
	})
}

// fault handles POST /fault, after which the proxy makes the next requests fail.
func (s *stage) fault(w http.ResponseWriter, r *http.Request) {
	var f struct {
		Status, Times int
		After         bool
	}
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for range f.Times {
		s.proxy.inject(fault{f.Status, f.After})
	}
}

// cookie handles POST /cookie. The proxy then gives the next client that has no cookie a cookie that belongs to
// different data.
func (s *stage) cookie(w http.ResponseWriter, r *http.Request) {
	var c struct{ Value string }
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.proxy.giveCookie(c.Value)
}

// restart handles POST /restart. It kills the registry, and starts it again.
func (s *stage) restart(w http.ResponseWriter, _ *http.Request) {
	if err := s.kill(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// kill kills the registry, and the mirror from which clients read. When a follower has failed to get a page or a
// stream, kill starts both again.
func (s *stage) kill() error {
	missed := s.proxy.nextMissedPage()
	s.mu.Lock()
	err := s.registry.Kill()
	if last := len(s.mirrors) - 1; last >= 0 {
		err = errors.Join(err, s.mirrors[last].Kill())
		s.mirrors[last] = nil
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.restarts.Go(func() {
		select {
		case <-missed:
		case <-time.After(patience):
			s.t.Error("got no request for a page while the registry was away, want one")
		}
		expect.Try(s.t, s.start())
	})
	return nil
}

// report handles POST /step, and records the step.
func (s *stage) report(w http.ResponseWriter, r *http.Request) {
	var reported step
	if err := json.NewDecoder(r.Body).Decode(&reported); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, reported)
	select {
	case s.told <- reported:
	default: // the channel is full, because nobody waits for more steps
	}
}

// reported returns all steps that were reported so far.
func (s *stage) reported() []step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps
}
