package assetsvc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/translog"
)

// store keeps the assets and the public log.
type store interface {
	registry.Store
	publiclog.Store
}

// errLogKeys is returned for keys that cannot sign one log.
var errLogKeys = errors.New("the keys of the public log must be keys of logs with one name")

// checkLogKeys returns errLogKeys unless all keys are of one log.
func checkLogKeys(keys []translog.Key) error {
	for _, key := range keys {
		if k := key.Public(); k.Use() != translog.ForLog || k.Name() != keys[0].Public().Name() {
			return errLogKeys
		}
	}
	return nil
}

// logWriter extends and signs the public log in the background.
type logWriter struct {
	stop     context.CancelFunc
	done     chan struct{}
	complete atomic.Int64 // time.Time.UnixNano, when a checkpoint last covered the whole record
	silence  func() error
}

// startLog starts a writer of the public log.
func startLog(store store, keys []translog.Key, log *slog.Logger, meter metric.Meter) (*logWriter, error) {
	ctx, stop := context.WithCancel(context.Background())
	w := &logWriter{stop: stop, done: make(chan struct{})}
	w.complete.Store(time.Now().UnixNano())
	if err := w.measure(meter, store); err != nil {
		stop()
		return nil, err
	}
	failures := failurelog.New(log, "the public log cannot be extended or signed; it is tried again")
	go func() {
		defer close(w.done)
		publiclog.NewWriter(store, store, publiclog.Options{Keys: keys}).Run(ctx, func(complete bool, err error) {
			if complete {
				w.complete.Store(time.Now().UnixNano())
			}
			if err != nil {
				failures.Failed(err)
			}
		})
	}()
	return w, nil
}

// measure reports how far the log is behind, and its size.
func (w *logWriter) measure(meter metric.Meter, store store) error {
	behind, err1 := meter.Float64ObservableGauge("registry.log.behind", metric.WithUnit("s"),
		metric.WithDescription("Time since this process last saw a checkpoint of the public log that covers every change."))
	size, err2 := meter.Int64ObservableGauge("registry.log.size", metric.WithUnit("{leaf}"),
		metric.WithDescription("Leaves of the public log; the same at every asset service."))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("create metrics: %w", err)
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		o.ObserveFloat64(behind, time.Since(time.Unix(0, w.complete.Load())).Seconds())
		head, err := store.LogHead(ctx)
		if err != nil {
			return nil // the writer reports it
		}
		o.ObserveInt64(size, head.Tree.Size())
		return nil
	}, behind, size)
	if err != nil {
		return fmt.Errorf("create metrics: %w", err)
	}
	w.silence = registration.Unregister
	return nil
}

// close stops the writer and waits for its end.
func (w *logWriter) close() error {
	w.stop()
	<-w.done
	return w.silence()
}
