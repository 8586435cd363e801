package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/fault"
)

// Limits say how much of the registry each client may use. The tags make them
// settings of a command; the zero value lets everything in.
type Limits struct {
	Table    ratelimit.Table `name:"limits" placeholder:"NAME" help:"Policies: production, sandbox, or in the YAML file a table of your own (docs/operations.md)."`
	Redis    string          `name:"limits-redis" placeholder:"URL" help:"Redis that all gateways count in: redis://HOST:PORT/DB, or redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB; by default each counts in its memory."`
	Away     ratelimit.Away  `name:"limits-away" default:"local" enum:"local,open,closed" help:"What to do while that Redis does not answer: count alone (local), let everything in (open) or nothing (closed)."`
	Gateways int64           `name:"limits-gateways" default:"0" help:"The most gateways that count in that Redis, the same setting for all: each then keeps a share of the limits, which saves it questions, and has its share while it counts alone. 0: not known."`
	None     bool            `name:"no-limits" help:"Let in any number of requests."`

	AddressList  *int64 `name:"limit-address-list" placeholder:"N" help:"Pages of the feed a second for one client address, instead of the table's; 0: no limit."`
	AddressRead  *int64 `name:"limit-address-read" placeholder:"N" help:"Reads a second for one client address, instead of the table's; 0: no limit."`
	AddressWrite *int64 `name:"limit-address-write" placeholder:"N" help:"Writes a second for one client address, instead of the table's; 0: no limit."`
	KeyList      *int64 `name:"limit-key-list" placeholder:"N" help:"Pages of the feed a second for one API key, instead of the table's; 0: no limit."`
	KeyRead      *int64 `name:"limit-key-read" placeholder:"N" help:"Reads a second for one API key, instead of the table's; 0: no limit."`
	KeyWrite     *int64 `name:"limit-key-write" placeholder:"N" help:"Writes a second for one API key, instead of the table's; 0: no limit."`
}

// OrDefault returns l with the policies of production, or of a sandbox, if it
// has none of its own.
func (l Limits) OrDefault(sandbox bool) Limits {
	switch {
	case l.Table != nil:
	case sandbox:
		l.Table = ratelimit.Sandbox()
	default:
		l.Table = ratelimit.Production()
	}
	return l
}

// perSecond are the settings of one class each.
func (l Limits) perSecond() []classLimit {
	return []classLimit{
		{ratelimit.ByAddress, ratelimit.List, l.AddressList},
		{ratelimit.ByAddress, ratelimit.Read, l.AddressRead},
		{ratelimit.ByAddress, ratelimit.Write, l.AddressWrite},
		{ratelimit.ByKey, ratelimit.List, l.KeyList},
		{ratelimit.ByKey, ratelimit.Read, l.KeyRead},
		{ratelimit.ByKey, ratelimit.Write, l.KeyWrite},
	}
}

type classLimit struct {
	by    ratelimit.By
	class ratelimit.Class
	limit *int64 // nil: as the table has it
}

// policies are the table with what was said of single classes.
func (l Limits) policies() ratelimit.Table {
	if l.None {
		return nil
	}
	table := l.Table
	for _, c := range l.perSecond() {
		if c.limit != nil {
			table = table.PerSecond(c.by, c.class, *c.limit)
		}
	}
	return table
}

// validate reports everything that is wrong, where bodies have up to maxBody bytes.
func (l Limits) validate(maxBody int64) error {
	var faults []error
	for _, c := range l.perSecond() {
		if c.limit != nil && *c.limit < 0 {
			faults = append(faults, fmt.Errorf("a limit of %s requests is negative", c.class))
		}
	}
	if faults == nil {
		faults = append(faults, l.policies().Validate(maxBody))
	}
	if l.Gateways < 0 {
		faults = append(faults, errors.New("the number of gateways is negative"))
	}
	if l.Redis != "" {
		faults = append(faults, ratelimit.CheckURL(l.Redis))
	}
	return errors.Join(faults...)
}

// limitStore is what requests are counted in.
func (s *Server) limitStore() (ratelimit.Store, error) {
	l := s.config.Limits
	if l.Redis == "" || l.None {
		return ratelimit.NewMemory(s.config.Now), nil
	}
	redis, err := ratelimit.OpenRedis(l.Redis)
	if err != nil {
		return nil, err
	}
	shared, err := ratelimit.NewShared(redis, ratelimit.SharedConfig{
		Away: l.Away, Gateways: l.Gateways, Now: s.config.Now, Log: s.config.Log, Meter: s.config.Telemetry.Meter(),
	})
	if err != nil {
		return nil, errors.Join(err, redis.Close())
	}
	s.shared = shared
	return shared, nil
}

// decisions counts what the limits decide, by class of request.
type decisions map[decision]*atomic.Int64

type decision struct {
	class   ratelimit.Class
	outcome string
}

func newDecisions() decisions {
	d := decisions{}
	for _, class := range []ratelimit.Class{ratelimit.List, ratelimit.Read, ratelimit.Write} {
		for _, outcome := range []string{"admitted", "refused", "uncounted"} {
			d[decision{class, outcome}] = &atomic.Int64{}
		}
	}
	return d
}

// count counts a decision by the error that tells it.
func (d decisions) count(class ratelimit.Class, err error) {
	outcome := "admitted"
	switch {
	case fault.KindOf(err) == fault.TooMany:
		outcome = "refused"
	case err != nil:
		outcome = "uncounted"
	}
	d[decision{class, outcome}].Add(1)
}

// measure tells a meter of them, when it asks, until silence.
func (d decisions) measure(meter metric.Meter) (silence func() error, err error) {
	counter, err := meter.Int64ObservableCounter("registry.limits.decisions", metric.WithUnit("{request}"),
		metric.WithDescription("Requests by what the limits have decided: admitted, refused, or uncounted, which is neither."))
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for of, n := range d {
			o.ObserveInt64(counter, n.Load(), metric.WithAttributes(attribute.String("class", string(of.class)), attribute.String("outcome", of.outcome)))
		}
		return nil
	}, counter)
	if err != nil {
		return nil, fmt.Errorf("make metric: %w", err)
	}
	return registration.Unregister, nil
}
