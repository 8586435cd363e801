package httpserver

import (
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// replaceable is a service in place of which another can be put while requests
// come in: each is answered whole by the one that it began with.
type replaceable struct {
	mu      sync.RWMutex
	current *generation
}

type generation struct {
	service  Service
	handler  http.Handler
	requests sync.WaitGroup
}

func newReplaceable(s Service) *replaceable {
	return &replaceable{current: &generation{service: s, handler: s.Handler()}}
}

func (r *replaceable) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.RLock()
	g := r.current
	g.requests.Add(1)
	r.mu.RUnlock()
	defer g.requests.Done()
	g.handler.ServeHTTP(w, req)
}

// replace puts another service in place, and closes the one before when it has
// answered what it began with.
func (r *replaceable) replace(s Service) error {
	next := &generation{service: s, handler: s.Handler()}
	r.mu.Lock()
	old := r.current
	r.current = next
	r.mu.Unlock()
	old.requests.Wait()
	return old.service.Close()
}

func (r *replaceable) close() error { return r.current.service.Close() }

// onHangup replaces the service by a new one at every SIGHUP until stop. If
// there is none to be had, the one that there is stays.
func (r *replaceable) onHangup(start func() (Service, error), log *slog.Logger) (stop func()) {
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for range signals {
			s, err := start()
			if err != nil {
				log.Error("the new configuration is not used", "error", err)
				continue
			}
			err = r.replace(s)
			log.Info("the new configuration is used")
			if err != nil {
				log.Error("the service before has not ended well", "error", err)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-ended
	}
}
