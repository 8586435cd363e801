// Package limits opens the rate limits of a gateway according to its settings, and counts their decisions.
package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/closing"
	"asset-registry/shared/fault"
	"asset-registry/shared/memory"
	"asset-registry/shared/routes"
	"asset-registry/shared/telemetry"
)

// Limits apply the rate limits of one gateway.
type Limits struct {
	*ratelimit.Limiter

	settings  Settings
	redis     *ratelimit.Borrower // nil: this gateway counts in its own memory
	decisions decisions
	closers   closing.List
}

// Options has what New needs in addition to the settings.
type Options struct {
	Now    func() time.Time
	Log    *slog.Logger
	Meter  metric.Meter
	Memory int64 // bytes that the process may use, of which the limits take their shares; 0: memory.Limit
}

// The shares of the memory that the limits take.
const (
	tableShare   = 32  // what is used of the limits, by address
	lockoutShare = 256 // addresses that are locked out
)

// New opens the limits. The settings must be valid. New does not connect to Redis yet.
func New(s Settings, o Options) (*Limits, error) {
	l := &Limits{settings: s, decisions: newDecisions()}
	l.closers.Do(l.decisions.measure(o.Meter))
	store, err := l.open(o)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.Limiter = ratelimit.New(store, s.Policies(), o.Now, o.Meter)
	l.KeepLockouts(cmp.Or(o.Memory, memory.Limit()) / lockoutShare)
	return l, nil
}

// open opens the store in which the limits count.
func (l *Limits) open(o Options) (ratelimit.Store, error) {
	s, bytes := l.settings, cmp.Or(o.Memory, memory.Limit())/tableShare
	if s.Redis == "" || s.None {
		return ratelimit.NewMemory(o.Now, bytes), nil
	}
	redis, err := ratelimit.OpenRedis(s.Redis)
	if err != nil {
		return nil, err
	}
	l.redis = ratelimit.NewBorrower(redis, ratelimit.BorrowerConfig{
		Fallback: s.Fallback, Bytes: bytes, Gateways: s.Gateways, Now: o.Now, Log: o.Log, Meter: o.Meter,
	})
	l.closers.Add(l.redis.Close)
	return l.redis, nil
}

// Count counts a decision for the metrics. The argument `err` is the error that refused the request; nil if the
// request was admitted.
func (l *Limits) Count(class routes.Class, err error) { l.decisions.count(class, err) }

// Warnings returns a warning if Redis is down.
func (l *Limits) Warnings() []string {
	if l.redis == nil || !l.redis.IsDown() {
		return nil
	}
	return []string{fmt.Sprintf("the limits' Redis does not answer; limits are in mode %s", l.settings.Fallback)}
}

// Close closes the store and ends the metrics.
func (l *Limits) Close() error { return l.closers.Close() }

// decisions counts the decisions of the limits, by class of request and outcome.
type decisions map[decision]*atomic.Int64

type decision struct {
	class   routes.Class
	outcome string
}

func newDecisions() decisions {
	d := decisions{}
	for _, class := range routes.Classes() {
		for _, outcome := range []string{"admitted", "refused", "uncounted"} {
			d[decision{class, outcome}] = &atomic.Int64{}
		}
	}
	return d
}

func (d decisions) count(class routes.Class, err error) {
	outcome := "admitted"
	switch {
	case fault.KindOf(err) == fault.TooMany:
		outcome = "refused"
	case err != nil:
		outcome = "uncounted"
	}
	d[decision{class, outcome}].Add(1)
}

// measure adds the counts to a meter, until the function `unregister` is called.
func (d decisions) measure(meter metric.Meter) (unregister func()) {
	observed := telemetry.Observe(meter)
	counter := observed.Counter("registry.limits.decisions", "{request}",
		"Requests by decision of the rate limits: admitted, refused, or uncounted because no decision was possible.")
	return observed.Read(func(_ context.Context, o metric.Observer) {
		for of, n := range d {
			o.ObserveInt64(counter, n.Load(), metric.WithAttributes(
				attribute.String("class", string(of.class)), attribute.String("outcome", of.outcome)))
		}
	})
}
