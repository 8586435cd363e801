package httpserver

import (
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reloadable is a handler whose service can be replaced while it answers
// requests. A request is answered by the service that it began with.
type reloadable struct {
	mu      sync.RWMutex
	current *generation
}

// generation is a service with the requests that it answers.
type generation struct {
	service  Service
	handler  http.Handler
	requests sync.WaitGroup
}

func newReloadable(s Service) *reloadable {
	return &reloadable{current: &generation{service: s, handler: s.Handler()}}
}

func (r *reloadable) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.RLock()
	g := r.current
	g.requests.Add(1)
	r.mu.RUnlock()
	defer g.requests.Done()
	g.handler.ServeHTTP(w, req)
}

// replace sends new requests to s. It closes the old service once that has
// answered its requests, and returns the error of closing.
func (r *reloadable) replace(s Service) error {
	next := &generation{service: s, handler: s.Handler()}
	r.mu.Lock()
	old := r.current
	r.current = next
	r.mu.Unlock()
	old.drain()
	old.requests.Wait()
	return old.service.Close()
}

// drain ends the requests that last.
func (g *generation) drain() {
	if d, lasts := g.service.(Drainer); lasts {
		d.Drain()
	}
}

func (r *reloadable) drain() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	r.current.drain()
}

func (r *reloadable) close() error { return r.current.service.Close() }

// onHangup replaces the service by a new one at every SIGHUP, until stop is
// called. If the new service fails to start, the old one keeps running.
func (r *reloadable) onHangup(start func() (Service, error), log *slog.Logger) (stop func()) {
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
			err = r.replace(s)
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
