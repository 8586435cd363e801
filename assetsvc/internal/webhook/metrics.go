package webhook

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/telemetry"
)

// metrics are the metrics of a Sender.
type metrics struct {
	messages metric.Int64Counter
	delay    metric.Float64Histogram
	silence  func() // stops reporting the gauges
}

// failing is the state that metrics show for an active endpoint whose last attempt has failed.
const failing = "failing"

func newMetrics(meter metric.Meter, s *Sender) *metrics {
	m := &metrics{}
	m.messages = telemetry.Counter(meter, "registry.webhooks.messages", "{message}",
		"Messages and challenges to webhooks by result: ok, failed, or refused for the address.")
	m.delay = telemetry.Durations(meter, "registry.webhooks.delay",
		"Time from the oldest change of a message to its acknowledgement, by a receiver that was at the end of the feed.",
		.025, .05, .1, .2, .3, .4, .5, .6, .8, 1, 1.5, 2.5, 5, 10, 20)
	observed := telemetry.Observe(meter)
	endpoints := observed.Gauge("registry.webhooks.endpoints", "{webhook}",
		"Webhooks by state; only the process that sends reports them.")
	behind := observed.Seconds("registry.webhooks.behind",
		"Time that the oldest change waits for the sender, at a webhook without failures; or the time since "+
			"this process could ask who sends.")
	for _, result := range []string{"ok", "failed", "refused"} { // start at 0, so that rates count the first event too
		m.messages.Add(context.Background(), 0, resultOf(result))
	}
	m.silence = observed.Read(func(_ context.Context, o metric.Observer) {
		counts, late := s.observe()
		for state, n := range counts {
			o.ObserveInt64(endpoints, n, metric.WithAttributes(attribute.String("state", state)))
		}
		o.ObserveFloat64(behind, late.Seconds())
	})
	return m
}

func resultOf(result string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("result", result))
}

// sent counts an attempt.
func (m *metrics) sent(a answer) {
	result := "ok"
	switch {
	case a.guard:
		result = "refused"
	case a.fault != "":
		result = "failed"
	}
	m.messages.Add(context.Background(), 1, resultOf(result))
}

// acknowledged records how long the delivery of the oldest change of a message took. It records nothing for a
// message that was not made from a ring: usually its endpoint was far behind.
func (m *metrics) acknowledged(sent message) {
	if sent.live {
		m.delay.Record(context.Background(), time.Since(time.UnixMicro(sent.first)).Seconds())
	}
}

// observe returns the number of endpoints by state, and how long the oldest change has waited for the sender. It counts
// neither the time that a receiver takes nor the wait after failures of a receiver.
func (s *Sender) observe() (counts map[string]int64, behind time.Duration) {
	t, heard := s.now()
	if silent := time.Since(heard); silent > termTime {
		behind = silent
	}
	if t == nil {
		return nil, behind
	}
	counts = map[string]int64{string(Unverified): 0, string(Active): 0, failing: 0, string(Disabled): 0}
	t.each(func(w *worker) {
		now := w.show.Load()
		counts[now.state]++
		if now.state == string(Active) && !now.waits.IsZero() {
			behind = max(behind, time.Since(now.waits))
		}
	})
	return counts, behind
}
