package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

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
		return err
	}
}

func (w watching) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		begun := time.Now()
		ctx, span := telemetry.Child(ctx, trace.SpanKindClient, "PIPELINE", semconv.DBSystemNameRedis, semconv.DBOperationName("PIPELINE"), semconv.DBOperationBatchSize(len(cmds)))
		err := next(ctx, cmds)
		w.operations.Took(ctx, "PIPELINE", time.Since(begun), failure(err) != nil)
		telemetry.End(span, failure(err))
		return err
	}
}

// failure returns err if it is one: that something is not there is an answer.
func failure(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}
