package daemon

import (
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Replaceable is a handler whose service can be replaced while it answers
// requests. A request is answered by the service that it began with.
type Replaceable struct {
	mu      sync.RWMutex
	current *generation
}

// generation is a service together with the requests that it answers.
type generation struct {
	service  Service
	handler  http.Handler
	requests sync.WaitGroup
}

// NewReplaceable returns a handler that begins with a service.
func NewReplaceable(s Service) *Replaceable {
	return &Replaceable{current: &generation{service: s, handler: s.Handler()}}
}

func (r *Replaceable) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.RLock()
	g := r.current
	g.requests.Add(1)
	r.mu.RUnlock()
	defer g.requests.Done()
	g.handler.ServeHTTP(w, req)
}

// Replace sends new requests to s. It waits until all requests to the old service
// are answered. Then it closes the old service, and returns the error of closing.
func (r *Replaceable) Replace(s Service) error {
	next := &generation{service: s, handler: s.Handler()}
	r.mu.Lock()
	old := r.current
	r.current = next
	r.mu.Unlock()
	old.drain()
	old.requests.Wait()
	return old.service.Close()
}

// drain ends the requests that would not end by themselves.
func (g *generation) drain() {
	if d, lasts := g.service.(Drainer); lasts {
		d.Drain()
	}
}

// Drain ends the requests of the service that would not end by themselves.
func (r *Replaceable) Drain() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	r.current.drain()
}

// Close closes the service. No request may be under way.
func (r *Replaceable) Close() error { return r.current.service.Close() }

// onHangup replaces the service by a new one at every SIGHUP, until the function `stop` is called. If the new service
// fails to start, the old one keeps running.
func (r *Replaceable) onHangup(start func() (Service, error), log *slog.Logger) (stop func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for range signals {
			s, err := start()
			if err != nil {
				log.Error("the new configuration failed; the old one stays in use", "error", err)
				continue
			}
			err = r.Replace(s)
			log.Info("the new configuration is in use")
			if err != nil {
				log.Error("the old service failed to close", "error", err)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-ended
	}
}
