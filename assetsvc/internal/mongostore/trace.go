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

// errCommand is all that a span says of a command that failed.
var errCommand = errors.New("the command failed")

// tracing makes a span of each command within a recorded trace: what it does
// and to which collection, and never with which documents. Each is measured, and
// others are told of it too.
func tracing(operations *telemetry.Operations, also *event.CommandMonitor) *event.CommandMonitor {
	var spans sync.Map // request id -> trace.Span, of commands under way
	end := func(ctx context.Context, e event.CommandFinishedEvent, err error) {
		operations.Took(ctx, e.CommandName, e.Duration, err != nil)
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
				semconv.DBSystemNameMongoDB, semconv.DBOperationName(e.CommandName), semconv.DBCollectionName(collection), semconv.DBNamespace(e.DatabaseName))
			spans.Store(e.RequestID, span)
		},
		Succeeded: func(ctx context.Context, e *event.CommandSucceededEvent) { end(ctx, e.CommandFinishedEvent, nil) },
		Failed: func(ctx context.Context, e *event.CommandFailedEvent) {
			end(ctx, e.CommandFinishedEvent, errCommand)
		},
	}
}

// beginBatch counts a batch, and puts what the writer does for a batch into the trace of the first
// of its callers whose request is recorded, linked to those of the others.
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
	ctx, span := telemetry.Child(trace.ContextWithSpan(ctx, first), trace.SpanKindInternal, "write batch", semconv.DBOperationBatchSize(len(callers)))
	for _, link := range links {
		span.AddLink(link)
	}
	return ctx, func() { span.End() }
}
