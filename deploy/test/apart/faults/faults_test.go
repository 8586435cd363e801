package faults

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"asset-registry/shared/mongotest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// wire is a proxy between the asset service and its store.
type wire struct {
	*toxiproxy.Proxy
	uri string // URI at which the service reaches the store through the proxy
}

func newWire(t *testing.T, server *mongotest.Server) *wire {
	t.Helper()
	control := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	addr := freeAddr(t)
	uri, store := mongotest.Through(t, server.URI(t, fmt.Sprintf("faults%08x", randtest.Uint32())), addr)
	w := &wire{Proxy: toxiproxy.NewProxy(control, "store", addr, store), uri: uri}
	t.Cleanup(w.Stop)
	return w
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	return addr
}

// open starts the proxy.
func (w *wire) open(t *testing.T) {
	t.Helper()
	expect.OK(t, w.Start())
}

// poison makes the answers of the store faulty. The parameter `toxic` describes the fault in the JSON form of
// toxiproxy.
func (w *wire) poison(t *testing.T, toxic string) {
	t.Helper()
	expect.Get(w.Toxics.AddToxicJson(strings.NewReader(toxic)))(t)
}

// faults are ways to break the proxy. The function `do` begins a fault, and returns a function that ends it.
var faults = []struct {
	name string
	do   func(t *testing.T, w *wire) (heal func())
}{
	{"connections are refused", func(t *testing.T, w *wire) func() {
		w.Stop()
		return func() { w.open(t) }
	}},
	{"answers come after every timeout", func(t *testing.T, w *wire) func() {
		w.poison(t, `{"name":"slow","type":"latency","stream":"downstream","toxicity":1,
			"attributes":{"latency":2000,"jitter":0}}`)
		return func() { w.heal(t, "slow") }
	}},
	{"connections break within an answer", func(t *testing.T, w *wire) func() {
		w.poison(t, `{"name":"cut","type":"limit_data","stream":"downstream","toxicity":1,"attributes":{"bytes":700}}`)
		return func() { w.heal(t, "cut") }
	}},
	{"commands arrive and answers do not", func(t *testing.T, w *wire) func() {
		w.poison(t, `{"name":"mute","type":"timeout","stream":"downstream","toxicity":1,"attributes":{"timeout":0}}`)
		return func() { w.heal(t, "mute") }
	}},
	{"the peer resets connections", func(t *testing.T, w *wire) func() {
		w.poison(t,
			`{"name":"reset","type":"reset_peer","stream":"downstream","toxicity":1,"attributes":{"timeout":20}}`)
		return func() { w.heal(t, "reset") }
	}},
	{"the store comes and goes", flap},
}

// flap stops and starts the proxy at random.
func flap(t *testing.T, w *wire) (heal func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			w.Stop()
			select {
			case <-time.After(randtest.N(200 * time.Millisecond)):
			case <-stop:
			}
			if err := w.Start(); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-time.After(randtest.N(200 * time.Millisecond)):
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// heal removes a fault.
func (w *wire) heal(t *testing.T, toxic string) {
	t.Helper()
	expect.OK(t, w.Toxics.RemoveToxic(t.Context(), toxic))
}

// TestFaultsBetweenServiceAndStore writes and reads assets during each fault. No acknowledged change may be lost.
// Promises: never-half
func TestFaultsBetweenServiceAndStore(t *testing.T) {
	server := mongotest.Start(t)
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			w := newWire(t, server)
			w.open(t)
			l := &ledger{service: start(t, w.uri)}
			for range 8 {
				l.create(t)
			}
			for _, p := range l.assets {
				l.change(t, p)
			}
			if l.nos > 0 {
				t.Fatalf("got %d refusals before the fault, want none", l.nos)
			}
			heal := fault.do(t, w)
			l.work(t, 4*time.Second)
			heal()
			l.recovers(t)
			t.Logf("%d requests succeeded, %d were refused", l.oks, l.nos)
			l.check(t)
		})
	}
}

// work starts twelve callers that create, change, read and list assets for the given duration.
func (l *ledger) work(t *testing.T, during time.Duration) {
	t.Helper()
	known := l.assets
	end := time.Now().Add(during)
	var working sync.WaitGroup
	for range 12 {
		working.Go(func() {
			for time.Now().Before(end) {
				p := known[randtest.IntN(len(known))]
				switch randtest.IntN(5) {
				case 0:
					l.create(t)
				case 1:
					l.count(l.call(t, "GET", "/api/2.5/assets/"+p.id, "", "", &answer{}))
				case 2:
					l.count(l.call(t, "GET", "/api/2.5/assets?descending=1", "", "", &page{}))
				default:
					l.change(t, p)
				}
			}
		})
	}
	working.Wait()
}

// recovers waits at most 30 s until a change succeeds and the feed lists it. The service must recover without a
// restart.
func (l *ledger) recovers(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for l.change(t, l.assets[0]) != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("got no success within the time limit, want the service to recover")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for { // repeat, because an unfinished batch can hold the feed back until its lease ends
		var p page
		modified := l.assets[0].modified
		l.call(t, "GET", "/api/2.5/assets?descending=1&limit=1", "", "", &p)
		if len(p.Data) == 1 && p.Data[0].DateModified >= modified {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got no change of %s in the feed, want it: %+v", modified, p)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestServiceStartsWithoutItsStore(t *testing.T) {
	w := newWire(t, mongotest.Start(t))
	l := &ledger{service: start(t, w.uri)}
	expect.Equal(t, l.create(t), http.StatusServiceUnavailable, "a creation")
	expect.Equal(t, l.call(t, "GET", "/api/2.5/assets", "", "", &page{}), http.StatusServiceUnavailable, "a listing")
	w.open(t)
	for end := time.Now().Add(20 * time.Second); l.create(t) != http.StatusCreated; {
		if time.Now().After(end) {
			t.Fatal("got no success within the time limit, want the service to recover")
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.recovers(t)
	l.check(t)
}
