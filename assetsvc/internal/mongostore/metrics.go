package mongostore

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/assetsvc/internal/feed"
	"asset-registry/shared/telemetry"
)

// metrics are the metrics of the feed and the store.
type metrics struct {
	batch   metric.Int64Histogram   // changes in a batch
	open    metric.Int64Gauge       // open batches of all asset services
	lag     metric.Float64Gauge     // seconds from the horizon to the newest position
	fences  metric.Int64Counter     // stalled batches that this process has fenced
	refused metric.Int64Counter     // how often a batch did not get its positions because another writer was ahead
	lead    metric.Float64Gauge     // seconds by which this machine's clock is ahead of the store's
	waits   metric.Float64Histogram // seconds that a barrier of fresh reads takes

	operations  *telemetry.Operations
	connections *connections
	silence     func() // ends the metrics of the connections
}

// barrierBuckets are in seconds. A barrier waits for a majority of the replica set.
var barrierBuckets = []float64{0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 2}

func newMetrics(meter metric.Meter) *metrics {
	seconds := func(name, text string) metric.Float64Gauge {
		return telemetry.Must(meter.Float64Gauge(name, metric.WithUnit("s"), metric.WithDescription(text)))
	}
	m := &metrics{
		batch: telemetry.Must(meter.Int64Histogram("registry.feed.batch.size", metric.WithUnit("{change}"),
			metric.WithDescription("Changes written together."),
			metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256))),
		open: telemetry.Must(meter.Int64Gauge("registry.feed.batches.open", metric.WithUnit("{batch}"),
			metric.WithDescription("Batches in flight, of all asset services."))),
		lag: seconds("registry.feed.horizon.lag", "Time from the last change that readers see to the newest one."),
		fences: telemetry.Counter(meter, "registry.feed.fences", "{batch}",
			"Stalled batches that this process has fenced."),
		lead: seconds("registry.store.clock.lead", "How far this machine's clock is ahead of the store's."),
		waits: telemetry.Durations(meter, "registry.store.barrier.duration",
			"Time of a barrier, for which fresh reads wait.", barrierBuckets...),
		operations: telemetry.NewOperations(meter, semconv.DBSystemNameMongoDB),
		refused: telemetry.Counter(meter, "registry.feed.opens.refused", "{open}",
			"Openings of batches of this process that had to be repeated, as another process was ahead."),
		connections: newConnections(),
	}
	m.silence = m.connections.measure(meter)
	return m
}

// recordClock records a look of the watcher: the clock and the fenced batches.
func (m *metrics) recordClock(ctx context.Context, now feed.Clock, fenced int) {
	m.open.Record(ctx, int64(len(now.Open)))
	m.lag.Record(ctx, (time.Duration(now.Last-now.Horizon()) * time.Microsecond).Seconds())
	m.fences.Add(ctx, int64(fenced))
	m.refused.Add(ctx, 0) // so that the count 0 is reported before the first refusal
}

// timed returns a function that calls the function `send`, and records the duration of this call as the time of a
// barrier.
func (m *metrics) timed(send func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		begun := time.Now()
		err := send(ctx)
		m.waits.Record(ctx, time.Since(begun).Seconds())
		return err
	}
}

// monitors returns client options that report the driver's commands and connections to m. Commands are also reported
// to the given monitor, unless it is nil.
func (m *metrics) monitors(also *event.CommandMonitor) *options.ClientOptions {
	return options.Client().
		SetMonitor(tracing(m.operations, also)).
		SetPoolMonitor(&event.PoolMonitor{Event: m.connections.poolEvent}).
		SetServerMonitor(&event.ServerMonitor{
			TopologyDescriptionChanged: m.connections.topologyChanged,
			ServerHeartbeatSucceeded:   m.connections.heartbeat,
		})
}

// errCommand is the only error that spans show, because the text of the server's error may quote data.
var errCommand = errors.New("the command failed")

// tracing returns a monitor that measures each command. If the trace is recorded, it also makes a span for the
// command. The span has the names of the command and the collection, but no content of documents. If the monitor
// `also` is not nil, it gets the start of each command, too.
func tracing(operations *telemetry.Operations, also *event.CommandMonitor) *event.CommandMonitor {
	var spans sync.Map // by request id: the trace.Span of each command under way
	end := func(ctx context.Context, e event.CommandFinishedEvent, err error) {
		operations.Took(ctx, e.CommandName, e.Duration, err)
		if span, recorded := spans.LoadAndDelete(e.RequestID); recorded {
			telemetry.End(span.(trace.Span), err)
		}
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, e *event.CommandStartedEvent) {
			if also != nil {
				also.Started(ctx, e)
			}
			if !trace.SpanFromContext(ctx).IsRecording() {
				return
			}
			collection, _ := e.Command.Lookup(e.CommandName).StringValueOK()
			_, span := telemetry.Child(ctx, trace.SpanKindClient, e.CommandName+" "+collection,
				semconv.DBSystemNameMongoDB,
				semconv.DBOperationName(e.CommandName),
				semconv.DBCollectionName(collection),
				semconv.DBNamespace(e.DatabaseName))
			spans.Store(e.RequestID, span)
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) {
			end(ctx, e.CommandFinishedEvent, nil)
		},
		Failed: func(ctx context.Context, e *event.CommandFailedEvent) {
			end(ctx, e.CommandFinishedEvent, errCommand)
		},
	}
}

// beginBatch records the size of a batch and starts a span for it (feed.Options). The span belongs to the trace
// of the first caller whose request is recorded, and has links to the traces of the other callers.
func (s *Store) beginBatch(ctx context.Context, callers []context.Context) (context.Context, func()) {
	s.metrics.batch.Record(ctx, int64(len(callers)))
	var links []trace.Link
	var first trace.Span
	for _, caller := range callers {
		switch span := trace.SpanFromContext(caller); {
		case !span.IsRecording():
		case first == nil:
			first = span
		default:
			links = append(links, trace.Link{SpanContext: span.SpanContext()})
		}
	}
	if first == nil {
		return ctx, func() {}
	}
	ctx, span := telemetry.Child(trace.ContextWithSpan(ctx, first), trace.SpanKindInternal, "write batch",
		semconv.DBOperationBatchSize(len(callers)))
	for _, link := range links {
		span.AddLink(link)
	}
	return ctx, func() { span.End() }
}
