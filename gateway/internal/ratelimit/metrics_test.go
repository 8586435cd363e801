package ratelimit

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/shared/redistest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

func TestMetricsTellOfRefusalsAndOfALostRedis(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	server := redistest.Start(t)
	server.Kill(t)
	s := borrowerAt(t, server.URL(), nil, func(c *BorrowerConfig) { c.Meter = meter })
	table := Table{{
		Name: "few", By: ByAddress, Costs: map[Class]int64{routes.Read: 1}, Windows: map[string]int64{"1m": 3},
	}}
	l, err := New(s, table, time.Now, meter)
	expect.OK(t, err)
	for range 5 {
		_ = l.Admit(t.Context(), map[string][]string{}, Request{Class: routes.Read}) // the last two are refused
	}
	var read metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &read))
	got, connections := map[string]int64{}, 0
	for _, m := range read.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			if strings.HasPrefix(m.Name, "db.") { // a metric of the Redis client, whose values vary
				connections++
				continue
			}
			got[m.Name] = data.DataPoints[0].Value
		case metricdata.Gauge[int64]:
			got[m.Name] = data.DataPoints[0].Value
		}
	}
	want := map[string]int64{
		"registry.limits.refused": 2, "registry.limits.store.away": 1, "registry.limits.store.losses": 1,
		"registry.limits.store.alone": 5, "registry.limits.store.trips": 1,
	}
	if connections == 0 {
		t.Error("got no metrics of connections, want some")
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

var errMeter = errors.New("the meter fails")

// frail is a meter on which one call fails. The end of a callback fails, too.
type frail struct {
	noop.Meter
	good      int // how many calls succeed before the one that fails; negative: it has failed
	callbacks int // number of callbacks that have not ended
}

func (m *frail) next() error {
	if m.good--; m.good == -1 {
		return errMeter
	}
	return nil
}

func (m *frail) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return noop.Int64Counter{}, m.next()
}

func (m *frail) Int64ObservableGauge(
	string, ...metric.Int64ObservableGaugeOption,
) (metric.Int64ObservableGauge, error) {
	return noop.Int64ObservableGauge{}, m.next()
}

func (m *frail) Int64ObservableCounter(
	string, ...metric.Int64ObservableCounterOption,
) (metric.Int64ObservableCounter, error) {
	return noop.Int64ObservableCounter{}, m.next()
}

func (m *frail) Int64ObservableUpDownCounter(
	string, ...metric.Int64ObservableUpDownCounterOption,
) (metric.Int64ObservableUpDownCounter, error) {
	return noop.Int64ObservableUpDownCounter{}, m.next()
}

func (m *frail) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	if err := m.next(); err != nil {
		return nil, err
	}
	m.callbacks++
	return registered{meter: m}, nil
}

// registered is a callback of a frail meter.
type registered struct {
	noop.Registration
	meter *frail
}

func (r registered) Unregister() error {
	r.meter.callbacks--
	return errMeter
}

// TestAMeterThatFailsIsAnError uses meters that each fail at a different call. No borrower and no limiter may be
// made with them, and no callback may remain. A borrower whose callbacks fail to end must say so when it closes.
func TestAMeterThatFailsIsAnError(t *testing.T) {
	if l, err := New(NewMemory(time.Now, 0), nil, time.Now, &frail{}); l != nil || !errors.Is(err, errMeter) {
		t.Errorf("a limiter: got %v, %v; want %v", l, err, errMeter)
	}
	for good := 0; ; good++ {
		r, err := OpenRedis("redis://127.0.0.1:1")
		expect.OK(t, err)
		meter := &frail{good: good}
		s, err := NewBorrower(r, BorrowerConfig{Now: time.Now, Log: slog.New(slog.DiscardHandler), Meter: meter})
		if meter.good >= 0 { // nothing has failed
			expect.Must(t, err, "a meter that works")
			began := meter.callbacks
			if err := s.Close(); began == 0 || !errors.Is(err, errMeter) || meter.callbacks != 0 {
				t.Errorf("the end: got %v, %d callbacks before it and %d after it; want %v, some and none",
					err, began, meter.callbacks, errMeter)
			}
			return
		}
		if s != nil || !errors.Is(err, errMeter) || meter.callbacks != 0 {
			t.Errorf("after %d calls: got %v, %v, and %d callbacks left; want %v and none",
				good, s, err, meter.callbacks, errMeter)
		}
		expect.Try(t, r.Close())
	}
}

func TestMetricsTellOfKeysThatAreNotLookedAt(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	table := Table{{
		Name: "address-failed", By: ByAddress, Costs: map[Class]int64{Failed: 1}, Windows: map[string]int64{"1m": 3},
	}}
	l, err := New(NewMemory(time.Now, 0), table, time.Now, meter)
	expect.OK(t, err)
	guesser, refused := netip.MustParseAddr("192.0.2.1"), 0
	for range 5 {
		if l.CheckLockout(t.Context(), guesser) != nil {
			refused++
			continue
		}
		expect.Err(t, l.CountWrongKey(t.Context(), http.Header{}, guesser), nil, "within the limit")
	}
	var read metricdata.ResourceMetrics
	expect.OK(t, reader.Collect(t.Context(), &read))
	for _, m := range read.ScopeMetrics[0].Metrics {
		if m.Name != "registry.limits.refused" {
			continue
		}
		if got := m.Data.(metricdata.Sum[int64]).DataPoints[0].Value; got != 2 || refused != 2 {
			t.Errorf("got %d refusals in the metric, and %d refused requests; want 2 and 2", got, refused)
		}
		return
	}
	t.Error("got no metric registry.limits.refused, want one")
}
