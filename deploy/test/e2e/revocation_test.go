package e2e

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/randtest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// front is a load balancer between gateways and auth services. It can swallow requests, which then get no answer.
type front struct {
	upstreams []*httputil.ReverseProxy
	turn      atomic.Int64
	verified  atomic.Int64 // number of requests that verify a key
	cut       atomic.Value // requests whose path contains this string are swallowed
}

func newFront(t *testing.T, upstreams ...string) (f *front, address string) {
	t.Helper()
	f = &front{}
	f.cut.Store(nothing)
	for _, upstream := range upstreams {
		u := expect.Get(url.Parse("http://" + upstream))(t)
		proxy := httputil.NewSingleHostReverseProxy(u)
		proxy.ErrorLog = log.New(io.Discard, "", 0) // otherwise, the proxy would log each canceled request
		f.upstreams = append(f.upstreams, proxy)
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

// Values of front.cut. The front gives no answer to a request whose path contains the value.
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
		// The server notices that a request was cancelled only after it has read the body.
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done() // like a network that loses packets: there is no answer
		return
	}
	f.upstreams[int(f.turn.Add(1))%len(f.upstreams)].ServeHTTP(w, r)
}

// gatewaysBehindFront starts two auth services, and three gateways that reach them through a front. The parameter
// `admin` is the address at which the auth services serve the admin API.
func gatewaysBehindFront(t *testing.T, redis, secretFile, admin string, output *processes.Output) (*front, []api) {
	t.Helper()
	start := func(program string, args ...string) string {
		addr := freeAddr(t)
		p := expect.Get(processes.Start(t.Context(), addr, output, filepath.Join(bin, program),
			append([]string{"--addr", addr, "--secret-file", secretFile}, args...)...))(t)
		t.Cleanup(func() { expect.Try(t, p.Kill()) })
		return addr
	}
	f, address := newFront(t, start("authsvc", "--store", redis, "--admin-addr", admin),
		start("authsvc", "--store", redis))
	var gateways []api
	for range 3 {
		addr := start("gateway", "--auth-url", address, "--assets-url", "http://127.0.0.1:1", "--no-limits")
		gateways = append(gateways, api{"http://" + addr, "2.5"})
	}
	return f, gateways
}

// TestRevocationReachesEveryGateway revokes keys that three gateways use all the time. A gateway may accept a
// revoked key for at most inForce. This also holds for a gateway that gets no pushed changes, or cannot reach an
// auth service.
func TestRevocationReachesEveryGateway(t *testing.T) {
	build(t)
	redis, dir, output, admin := redistest.Start(t), t.TempDir(), &processes.Output{}, freeAddr(t)
	secretFile := filepath.Join(dir, "secret")
	expect.OK(t, os.WriteFile(secretFile, []byte(strings.Repeat("s", 64)), 0o600))
	f, gateways := gatewaysBehindFront(t, redis.URL(), secretFile, admin, output)
	o := &office{admin: "http://" + admin,
		key: adminKey(t, "authsvc", "--store", redis.URL(), "--secret-file", secretFile)}
	broker := o.broker(t)
	for _, c := range []struct {
		name  string
		cut   string
		ends  []int // the statuses with which a gateway may refuse the key at the end
		times int
	}{
		{"pushed changes arrive", nothing, []int{401}, 3},
		{"pushed changes are lost", pushes, []int{401}, 3},
		{"no auth service answers", everything, []int{401, 503}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			slowest := time.Duration(0)
			for range c.times {
				slowest = max(slowest, revoke(t, o, broker, f, c.cut, gateways, c.ends))
			}
			t.Logf("every gateway refused after %v at most", slowest)
			if slowest > inForce {
				t.Errorf("got a revoked key accepted for %v, want at most %v", slowest, inForce)
			}
		})
	}
	t.Run("a gateway with pushed changes asks rarely", func(t *testing.T) {
		_, secret := o.issue(t, broker, nil)
		letIn(t, gateways[0], secret)
		before := f.verified.Load()
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			gateways[0].do(t, call{method: "GET", path: "/api/2.5/me", key: secret}).must(t, 200)
		}
		// On a busy machine there may be a few more requests than usual.
		if asked := f.verified.Load() - before; asked > 5 {
			t.Errorf("got %d requests for the key in 3 s, want at most 5", asked)
		}
	})
	checkRaces(t, output)
}

// letIn waits at most 30 s until a gateway accepts a key. The gateway may need this time to notice that requests
// are no longer swallowed.
func letIn(t *testing.T, g api, secret string) {
	t.Helper()
	for began := time.Now(); g.do(t, call{method: "GET", path: "/api/2.5/me", key: secret}).
		status != 200; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("got no 200 for a valid key within 30 s, want one")
		}
	}
}

// revoke revokes a key that all gateways use. It returns how long after the revocation the last request with the
// key was accepted.
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
	time.Sleep(500 * time.Millisecond) // wait until every gateway has used the key
	f.cut.Store(cut)
	time.Sleep(randtest.N(300 * time.Millisecond))
	o.ask(t, "POST", "/keys/"+id+"/revoke", fields{}).must(t, 200)
	revoked := time.Now()
	time.Sleep(2 * inForce)
	close(stop)
	using.Wait()
	slowest := time.Duration(0)
	for i, g := range gateways {
		if last[i].IsZero() {
			t.Errorf("gateway %d: got no accepted request, want some before the revocation", i)
		}
		slowest = max(slowest, last[i].Sub(revoked))
		got := g.do(t, call{method: "GET", path: "/api/2.5/me", key: secret})
		if !slices.Contains(ends, got.status) {
			t.Errorf("gateway %d: got %d at the end, want one of %v", i, got.status, ends)
		}
	}
	f.cut.Store(nothing)
	return slowest
}
