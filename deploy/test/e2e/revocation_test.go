package e2e

import (
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/redistest"
)

// front is what gateways reach the auth services through: one after the other,
// as behind a load balancer, or not at all.
type front struct {
	upstreams []*httputil.ReverseProxy
	turn      atomic.Int64
	verified  atomic.Int64 // keys that were asked for
	cut       atomic.Value // what is swallowed: a part of a path
}

func newFront(t *testing.T, upstreams ...string) (f *front, address string) {
	t.Helper()
	f = &front{}
	f.cut.Store(nothing)
	for _, upstream := range upstreams {
		u, err := url.Parse("http://" + upstream)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(u)
		proxy.ErrorLog = log.New(io.Discard, "", 0) // of callers that have given up
		f.upstreams = append(f.upstreams, proxy)
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

// What may be cut.
const (
	nothing    = "\x00"
	pushes     = "keys/watch"
	everything = "/"
)

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "keys/verify") {
		f.verified.Add(1)
	}
	if strings.Contains(r.URL.Path, f.cut.Load().(string)) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees it when the caller gives up
		<-r.Context().Done()               // as a network that loses packets: no answer, and no refusal either
		return
	}
	f.upstreams[int(f.turn.Add(1))%len(f.upstreams)].ServeHTTP(w, r)
}

// TestRevocationReachesEveryGateway uses keys at three gateways without pause,
// revokes them at one of two auth services, and looks when each gateway has let
// the last request in: with the pushes of changes as they should be, lost, and
// with all ways to the auth services lost.
func TestRevocationReachesEveryGateway(t *testing.T) {
	build(t)
	redis, dir, output, admin := redistest.Start(t), t.TempDir(), &processes.Output{}, freeAddr(t)
	secretFile := filepath.Join(dir, "secret")
	if err := os.WriteFile(secretFile, []byte(strings.Repeat("s", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(program string, args ...string) string {
		addr := freeAddr(t)
		p, err := processes.Start(t.Context(), addr, output, filepath.Join(bin, program),
			append([]string{"--addr", addr, "--secret-file", secretFile}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		})
		return addr
	}
	f, address := newFront(t, start("authsvc", "--store", redis.URL(), "--admin-addr", admin),
		start("authsvc", "--store", redis.URL()))
	var gateways []api
	for range 3 {
		gateways = append(gateways,
			api{"http://" + start("gateway", "--auth-url", address, "--assets-url", "http://127.0.0.1:1",
				"--no-limits"), "2.5"})
	}
	o := &office{admin: "http://" + admin, key: adminKey(t, "authsvc", "--store", redis.URL(), "--secret-file",
		secretFile)}
	broker := o.broker(t)
	for _, c := range []struct {
		name, cut string
		ends      []int // how a request may be answered after the last that was let in
		times     int
	}{
		{"pushes come", nothing, []int{401}, 3},
		{"pushes are lost", pushes, []int{401}, 3},
		{"the auth service is cut", everything, []int{401, 503}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			slowest := time.Duration(0)
			for range c.times {
				slowest = max(slowest, revoke(t, o, broker, f, c.cut, gateways, c.ends))
			}
			t.Logf("in force at every gateway after %v at most", slowest)
			if slowest > inForce {
				t.Errorf("a revoked key was good for %v", slowest)
			}
		})
	}
	t.Run("what is pushed needs no asking", func(t *testing.T) {
		_, secret := o.issue(t, broker, nil)
		letIn(t, gateways[0], secret)
		before := f.verified.Load()
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			gateways[0].do(t, call{method: "GET", path: "/api/2.5/me", key: secret}).must(t, 200)
		}
		if asked := f.verified.Load() - before; asked > 5 { // a busy machine may be late with a question or two
			t.Errorf("asked %d times in 3 s", asked)
		}
	})
	checkRaces(t, output)
}

// letIn waits until a gateway lets a key in: what was cut before is to be found
// again.
func letIn(t *testing.T, g api, secret string) {
	t.Helper()
	for began := time.Now(); g.do(t, call{method: "GET", path: "/api/2.5/me", key: secret}).
		status != 200; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("a good key is not let in")
		}
	}
}

// revoke revokes a key that is used at all gateways, and returns how long after
// that the last request was let in.
func revoke(t *testing.T, o *office, broker string, f *front, cut string, gateways []api, ends []int) time.Duration {
	t.Helper()
	id, secret := o.issue(t, broker, nil)
	for _, g := range gateways {
		letIn(t, g, secret)
	}
	stop, last := make(chan struct{}), make([]time.Time, len(gateways))
	var using sync.WaitGroup
	for i, g := range gateways {
		using.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
				asked := time.Now()
				got := g.do(t, call{method: "GET", path: "/api/2.5/me", key: secret})
				if got.status == 200 {
					last[i] = asked
				}
			}
		})
	}
	time.Sleep(500 * time.Millisecond) // the key is in use everywhere
	f.cut.Store(cut)
	time.Sleep(rand.N(300 * time.Millisecond))
	o.ask(t, "POST", "/keys/"+id+"/revoke", fields{}).must(t, 200)
	revoked := time.Now()
	time.Sleep(2 * inForce)
	close(stop)
	using.Wait()
	slowest := time.Duration(0)
	for i, g := range gateways {
		if last[i].IsZero() {
			t.Errorf("gateway %d has let nothing in", i)
		}
		slowest = max(slowest, last[i].Sub(revoked))
		got := g.do(t, call{method: "GET", path: "/api/2.5/me", key: secret})
		known := false
		for _, status := range ends {
			known = known || got.status == status
		}
		if !known {
			t.Errorf("gateway %d answers %d in the end", i, got.status)
		}
	}
	f.cut.Store(nothing)
	return slowest
}
