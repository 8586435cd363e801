package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/fault"
	"asset-registry/shared/telemetry"
)

// watching is a hook that measures each command. If a trace is recorded, the command gets a span with its name,
// never with its arguments.
type watching struct{ operations *telemetry.Operations }

// DialHook returns its argument unchanged, because connecting is not measured.
func (watching) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook measures a command.
func (w watching) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		ctx, span := telemetry.Child(ctx, trace.SpanKindClient, cmd.Name(),
			semconv.DBSystemNameRedis, semconv.DBOperationName(cmd.Name()))
		err := next(ctx, cmd)
		w.operations.Took(ctx, cmd.Name(), time.Since(begun), failure(err))
		telemetry.End(span, failure(err))
		return unavailable(err)
	}
}

// pipeline is the name of a pipeline in metrics and traces. It stands where other calls have the name of their command.
const pipeline = "PIPELINE"

// ProcessPipelineHook measures a pipeline.
func (w watching) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		ctx, span := telemetry.Child(ctx, trace.SpanKindClient, pipeline,
			semconv.DBSystemNameRedis, semconv.DBOperationName(pipeline), semconv.DBOperationBatchSize(len(cmds)))
		err := next(ctx, cmds)
		w.operations.Took(ctx, pipeline, time.Since(begun), failure(err))
		telemetry.End(span, failure(err))
		return unavailable(err)
	}
}

// states are the prefixes of errors that Redis returns while it cannot work, or has no room for one more
// command or client.
var states = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "OOM", "BUSY ", "TRYAGAIN", "UNKILLABLE",
	"ERR max number of clients",
}

// unavailable wraps err in a fault of kind Unavailable if Redis did not answer, or cannot work now. It returns
// any other error unchanged.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	answered, is := errors.AsType[redis.Error](err)
	inState := func(state string) bool { return strings.HasPrefix(answered.Error(), state) }
	if is && !slices.ContainsFunc(states, inState) {
		return err
	}
	f := fault.New(fault.Unavailable, fault.URL, "authorization",
		"Keys and tokens cannot be checked now; repeat the request.")
	return fmt.Errorf("%w: %w", f, err)
}

// failure returns err, but nil for redis.Nil, because a missing value is an answer and not a failure.
func failure(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
