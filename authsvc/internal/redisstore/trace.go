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

// watching measures each command, and makes a span of those within a recorded
// trace: its name, and never its arguments.
type watching struct{ operations *telemetry.Operations }

func (watching) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w watching) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		begun := time.Now()
		ctx, span := telemetry.Child(ctx, trace.SpanKindClient, cmd.Name(), semconv.DBSystemNameRedis, semconv.DBOperationName(cmd.Name()))
		err := next(ctx, cmd)
		w.operations.Took(ctx, cmd.Name(), time.Since(begun), failure(err) != nil)
		telemetry.End(span, failure(err))
		return away(err)
	}
}

func (w watching) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		ctx, span := telemetry.Child(ctx, trace.SpanKindClient, "PIPELINE", semconv.DBSystemNameRedis, semconv.DBOperationName("PIPELINE"), semconv.DBOperationBatchSize(len(cmds)))
		err := next(ctx, cmds)
		w.operations.Took(ctx, "PIPELINE", time.Since(begun), failure(err) != nil)
		telemetry.End(span, failure(err))
		return away(err)
	}
}

// states are how errors begin that a Redis answers with while it cannot do its
// work.
var states = []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "OOM"}

// away makes err a fault of kind Unavailable if Redis did not answer, or cannot
// do its work now.
func away(err error) error {
	if err == nil {
		return nil
	}
	answered, is := errors.AsType[redis.Error](err)
	if is && !slices.ContainsFunc(states, func(state string) bool { return strings.HasPrefix(answered.Error(), state) }) {
		return err
	}
	f := fault.New(fault.Unavailable, fault.URL, "authorization",
		"Keys and tokens cannot be checked now; repeat the request.")
	return fmt.Errorf("%w: %w", f, err)
}

// failure returns err if it is one: that something is not there is an answer.
func failure(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
