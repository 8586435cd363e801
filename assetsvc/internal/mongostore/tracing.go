package mongostore

import (
	"context"
	"errors"
	"sync"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/telemetry"
)

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
