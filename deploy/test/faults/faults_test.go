package faults

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"asset-registry/shared/mongotest"
)

// wire is the way to the store.
type wire struct {
	*toxiproxy.Proxy
	uri string // of the store, by this way
}

func newWire(t *testing.T, server *mongotest.Server) *wire {
	t.Helper()
	store, err := url.Parse(server.URI(t, fmt.Sprintf("faults%08x", rand.Uint32())))
	if err != nil {
		t.Fatal(err)
	}
	control := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	w := &wire{Proxy: toxiproxy.NewProxy(control, "store", freeAddr(t), store.Host)}
	store.Host, store.RawQuery = w.Listen, "directConnection=true"
	w.uri = store.String()
	t.Cleanup(w.Stop)
	return w
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (w *wire) open(t *testing.T) {
	t.Helper()
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
}

// poison puts a toxic on the way of the answers, as toxiproxy's own users write
// them.
func (w *wire) poison(t *testing.T, toxic string) {
	t.Helper()
	if _, err := w.Toxics.AddToxicJson(jsonReader(toxic)); err != nil {
		t.Fatal(err)
	}
}

// faults are what happens to the way to the store, until heal.
var faults = map[string]func(t *testing.T, w *wire) (heal func()){
	"refused": func(t *testing.T, w *wire) func() {
		w.Stop()
		return func() { w.open(t) }
	},
	"slower than anybody waits": func(t *testing.T, w *wire) func() {
		w.poison(t,
			`{"name":"slow","type":"latency","stream":"downstream","toxicity":1,"attributes":{"latency":2000,"jitter":0}}`)
		return func() { w.heal(t, "slow") }
	},
	"reset amid an answer": func(t *testing.T, w *wire) func() {
		w.poison(t, `{"name":"cut","type":"limit_data","stream":"downstream","toxicity":1,"attributes":{"bytes":700}}`)
		return func() { w.heal(t, "cut") }
	},
	"commands that arrive, and answers that do not": func(t *testing.T, w *wire) func() {
		w.poison(t, `{"name":"mute","type":"timeout","stream":"downstream","toxicity":1,"attributes":{"timeout":0}}`)
		return func() { w.heal(t, "mute") }
	},
	"reset by the peer": func(t *testing.T, w *wire) func() {
		w.poison(t,
			`{"name":"reset","type":"reset_peer","stream":"downstream","toxicity":1,"attributes":{"timeout":20}}`)
		return func() { w.heal(t, "reset") }
	},
	"coming and going": func(t *testing.T, w *wire) func() {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				w.Stop()
				select {
				case <-time.After(rand.N(200 * time.Millisecond)):
				case <-stop:
				}
				if err := w.Start(); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-time.After(rand.N(200 * time.Millisecond)):
				case <-stop:
					return
				}
			}
		}()
		return func() {
			close(stop)
			<-stopped
		}
	},
}

func (w *wire) heal(t *testing.T, toxic string) {
	t.Helper()
	if err := w.Toxics.RemoveToxic(t.Context(), toxic); err != nil {
		t.Fatal(err)
	}
}

func TestFaultsBetweenServiceAndStore(t *testing.T) {
	server := mongotest.Start(t)
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
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
				t.Fatalf("%d requests were refused before anything went wrong", l.nos)
			}
			heal := fault(t, w)
			l.work(t, 4*time.Second)
			heal()
			l.recovers(t)
			t.Logf("%d requests succeeded, %d were refused", l.oks, l.nos)
			l.check(t)
		})
	}
}

// work has callers create, change, read and list for a while.
func (l *ledger) work(t *testing.T, during time.Duration) {
	t.Helper()
	known := l.assets
	end := time.Now().Add(during)
	var working sync.WaitGroup
	for range 12 {
		working.Go(func() {
			for time.Now().Before(end) {
				p := known[rand.IntN(len(known))]
				switch rand.IntN(5) {
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

// recovers waits until the service does its work again, which takes no restart,
// and what it began before has come to an end.
func (l *ledger) recovers(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for l.change(t, l.assets[0]) != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("it does not recover")
		}
		time.Sleep(50 * time.Millisecond)
	}
	for { // until nothing holds the feed back
		var p page
		modified := l.assets[0].modified
		l.call(t, "GET", "/api/2.5/assets?descending=1&limit=1", "", "", &p)
		if len(p.Data) == 1 && p.Data[0].DateModified >= modified {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a change at %s does not come into the feed: %+v", modified, p)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestAStoreThatIsAwayAtTheStart(t *testing.T) {
	w := newWire(t, mongotest.Start(t))
	l := &ledger{service: start(t, w.uri)}
	if status := l.create(t); status != http.StatusServiceUnavailable {
		t.Errorf("a creation is answered with %d", status)
	}
	if status := l.call(t, "GET", "/api/2.5/assets", "", "", &page{}); status != http.StatusServiceUnavailable {
		t.Errorf("a listing is answered with %d", status)
	}
	w.open(t)
	for end := time.Now().Add(20 * time.Second); l.create(t) != http.StatusCreated; {
		if time.Now().After(end) {
			t.Fatal("it does not recover")
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.recovers(t)
	l.check(t)
}

func jsonReader(text string) io.Reader { return strings.NewReader(text) }
