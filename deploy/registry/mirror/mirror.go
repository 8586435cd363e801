// Package mirror serves a copy of a registry (docs/mirrors.md, "Serve a copy"). The registry is the origin of
// the copy. Clients read from the mirror as they read from the origin: ids, offsets, tags and the cookie are
// the same.
//
// # Parts
//
// A keeper keeps the copy up to date (package replica). A gateway and an asset service in the same process serve
// it. The asset service also copies the public log, and makes its own snapshots, so that another mirror can copy
// this one. If a request is for data that no copy has, a relay forwards it to the origin.
//
// # Rules
//
//   - Nothing is served before the copy has reached the end of the feed once, and has been
//     compared with the public log.
//   - A page of the feed says that it is complete only up to the position of the copy (K2
//     in package replica).
//   - A checkpoint of the log is served once its tree is verified and the copy has all
//     changes that the checkpoint covers.
//   - If the origin has different data or a different log, or if the copy contradicts the log,
//     the copy may be void. If the mirror demands a signed log and has served the copy before,
//     it serves the copy until a new one is verified. Otherwise it removes the copy, and
//     answers 503 until it serves a new one.
//   - If the copy is damaged or contradicts itself, the mirror always removes it.
//   - After any other failure the mirror continues to serve the copy, and the header Age grows.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/gateway"
	"asset-registry/shared/closing"
	"asset-registry/shared/command"
	"asset-registry/shared/daemon"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/memory"
	"asset-registry/shared/private"
	"asset-registry/shared/replica"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/translog"
)

const userAgent = "asset-registry-mirror"

const (
	askEvery = 5 * time.Second

	again     = 5 * time.Second // pause after a failure of the origin or of the disk
	zoneRest  = time.Second     // pause after the origin's time zone has changed, because it may change often
	anewFirst = 2 * time.Second // pause before the mirror makes a new copy; doubled each time
	anewMost  = 10 * time.Minute
	anewRest  = time.Hour // if the last new copy was begun longer ago, the pause is anewFirst again
)

// mirror is the state of a running mirror.
type mirror struct {
	config    Config
	of        *url.URL
	policy    translog.Opener // nil: the mirror trusts any log
	transport http.RoundTripper
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	front     *daemon.Replaceable
	fresh     replica.Freshness
	failures  *failurelog.Log
	unkept    *failurelog.Log // reports in the log when the age of the copy cannot be stored
	relay     *relay
	checker   atomic.Pointer[checker] // nil: assets are not compared with the log
	count     func(outcome)           // counts comparisons of assets with the log
	doing     atomic.Value            // string: a sentence that says why the mirror serves nothing

	isBeside bool      // this mirror only makes the next copy, which another mirror will serve
	renewed  time.Time // when a copy last replaced another; with renewals, the number since they were rare
	renewals int
	head     translog.Checkpoint // if isBeside: checkpoint of the copy, once it is verified
}

// Run keeps a copy of a registry up to date and serves it until ctx is done. Then it finishes the requests under
// way. It calls the function `ready` with the public address once the mirror listens; /readyz answers 200 once the
// copy is served.
func Run(ctx context.Context, c Config, log io.Writer, ready func(addr string)) (err error) {
	logger := httpserver.NewLog(log, c.LogLevel, "mirror")
	memory.RespectLimit(logger, c.Memory)
	if err := c.validate(); err != nil {
		return err
	}
	listener, err := command.Listen("--addr", c.Addr)
	if err != nil {
		return err
	}
	defer listener.Close() // closing it a second time does no harm
	c.Addr = listener.Addr().String()
	certificate, err := c.certificate().Config(logger)
	if err != nil {
		return err
	}
	if err := private.Check(logger, c.Data); err != nil {
		return err
	}
	if err := openData(c.Data); err != nil {
		return err
	}
	c.Name = "mirror"
	t, stop, err := c.Observe(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	httpserver.MeasureCertificate(t.Meter(), certificate)
	m, err := newMirror(c, logger, t.Telemetry)
	if err != nil {
		return err
	}
	defer m.measure(t.Meter())()
	// The copy stays open until the requests that read it are finished.
	var working closing.List
	working.Go(context.WithoutCancel(ctx), m.work)
	defer func() { err = errors.Join(err, working.Close()) }()
	ready(listener.Addr().String())
	serving := c.Serving(certificate, m.front.Drain)
	serving.Refusals = gateway.RefusalHeaders()
	return httpserver.Serve(ctx, listener, m.front, logger, serving)
}

func newMirror(c Config, log *slog.Logger, t *telemetry.Telemetry) (*mirror, error) {
	of, err := url.Parse(c.Of)
	if err != nil {
		return nil, fmt.Errorf("--of: %w", err)
	}
	policy, err := c.policy()
	if err != nil {
		return nil, err
	}
	m := &mirror{
		config: c, of: of, policy: policy, transport: newTransport(), log: log, telemetry: t,
		failures: failurelog.New(log, "the copy cannot be brought up to date; it is tried again"),
		unkept:   failurelog.New(log, "the age of the copy cannot be stored; after a restart Age may be too great"),
	}
	m.relay = newRelay(of, m.transport, c.relayWithin(), log)
	m.fresh.Restart(time.Now())
	m.say("The mirror starts.")
	m.front = daemon.NewReplaceable(m.waiting())
	return m, nil
}

// newTransport returns the HTTP transport for requests to the origin.
func newTransport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 2 * relayed
	transport.MaxResponseHeaderBytes = 64 << 10
	return transport
}

// measure registers metrics: how far the copy is behind, and what the comparison with the log finds. The
// function `silence` ends their callback.
func (m *mirror) measure(meter metric.Meter) (silence func()) {
	observed := telemetry.Observe(meter)
	behind := observed.Seconds("registry.mirror.behind", "Time since the copy was last as new as the registry.")
	differing := observed.Gauge("registry.mirror.differing", "{asset}",
		"Assets of the copy that differ from the public log, as far as they are known.")
	checked := telemetry.Counter(meter, "registry.mirror.checked", "{asset}",
		"Comparisons of assets of the copy with the public log.")
	m.count = func(found outcome) {
		result := metric.WithAttributes(attribute.String("result", string(found)))
		checked.Add(context.Background(), 1, result)
	}
	return observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveFloat64(behind, m.fresh.Behind().Seconds())
		o.ObserveInt64(differing, int64(m.differing()))
	})
}

// differing returns how many assets of the copy are known to differ from the public log.
func (m *mirror) differing() int {
	if c := m.checker.Load(); c != nil {
		return c.differing()
	}
	return 0
}

// work keeps and serves a copy until ctx is done. Whenever the copy is void, it removes the copy and makes a
// new one.
func (m *mirror) work(ctx context.Context) {
	pause, begun := anewFirst, time.Now()
	for {
		err := m.keep(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRenewed) {
			m.log.Info("the copy is replaced", "reason", err)
			if time.Since(m.renewed) > anewRest {
				m.renewals = 0
			}
			m.renewed, m.renewals = time.Now(), min(m.renewals+1, 16)
			if err := m.swap(); err != nil {
				m.failures.Failed(err)
			}
			continue
		}
		if errors.Is(err, errZone) {
			m.log.Info("the services begin again", "reason", err)
			sleep.For(ctx, zoneRest)
			continue
		}
		if !isVoid(err) { // the copy is valid and stays; only the services start again
			m.failures.Failed(err)
			sleep.For(ctx, again)
			continue
		}
		m.say("The copy is void. The mirror removes it and begins anew; its log has the reason.")
		m.log.Warn("the copy is void; the mirror removes it and begins anew", "error", err)
		if time.Since(begun) > anewRest {
			pause = anewFirst
		}
		sleep.For(ctx, pause)
		pause, begun = min(2*pause, anewMost), time.Now()
		for ctx.Err() == nil {
			if err := m.remove(); err == nil {
				break
			} else {
				m.failures.Failed(err)
			}
			sleep.For(ctx, again)
		}
	}
}
