package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/telemetry"
)

// tracing makes a span of each command within a recorded trace: its name, and
// never its arguments.
type tracing struct{}

func (tracing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (tracing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, span := telemetry.Child(ctx, trace.SpanKindClient, cmd.Name(), semconv.DBSystemNameRedis, semconv.DBOperationName(cmd.Name()))
		err := next(ctx, cmd)
		telemetry.End(span, failure(err))
		return err
	}
}

func (tracing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, span := telemetry.Child(ctx, trace.SpanKindClient, "PIPELINE", semconv.DBSystemNameRedis, semconv.DBOperationName("PIPELINE"), semconv.DBOperationBatchSize(len(cmds)))
		err := next(ctx, cmds)
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
