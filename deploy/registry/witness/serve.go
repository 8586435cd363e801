package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Time limits of a connection, and of the wait for the last requests when Serve ends.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 10 * time.Second
	maxHeader     = 16 << 10
)

// Serve answers requests on the listener until ctx is done. Then it refuses new
// connections, waits up to 10 s for the requests under way, and returns nil. It
// closes the listener.
func (w *Witness) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           w.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(w.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return fmt.Errorf("drain %s: %w", listener.Addr(), errors.Join(err, server.Close()))
	}
	return nil
}
