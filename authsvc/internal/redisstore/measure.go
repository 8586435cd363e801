package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/fault"
	"asset-registry/shared/telemetry"
)

// backupKey is the name under which Redis has the time when the last complete backup ended, in seconds since
// the Unix epoch. The backup script sets it.
const backupKey = "registry:backup"

// clockError is the largest difference of clocks that has no consequence.
const clockError = time.Hour

// askTimeout bounds the wait for Redis when metrics are read.
const askTimeout = 500 * time.Millisecond

// measure adds metrics of the connections, of the server's memory, of its refusals and of the last backup to a meter,
// until the function `silence` is called. While the server does not answer, its metrics are missing.
func (s *Store) measure(meter metric.Meter) (silence func()) {
	memory := telemetry.MeasureStore(meter, "tokens", s.memory)
	connections := telemetry.MeasurePools(meter, semconv.DBSystemNameRedis, func() []telemetry.Pool {
		return pools(s.client)
	})
	observed := telemetry.Observe(meter)
	finished := observed.Seconds("registry.backup.finished.timestamp",
		"End of the last complete backup, since the Unix epoch; 0: there is none.")
	refusing := observed.Gauge("registry.store.refusing", "", "1 while Redis of the tokens refuses writes, else 0.")
	own := observed.Read(func(ctx context.Context, o metric.Observer) {
		o.ObserveInt64(refusing, telemetry.Flag(s.refuses() != nil))
		if at, known := s.lastBackup(ctx); known {
			o.ObserveFloat64(finished, at)
		}
	})
	return func() { memory(); connections(); own() }
}

// memory returns how much memory Redis uses, and how much it may use. It returns zeros if Redis does not
// answer.
func (s *Store) memory(ctx context.Context) telemetry.StoreUse {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	info, err := s.watcher.Info(ctx, "memory").Result()
	if err != nil {
		return telemetry.StoreUse{}
	}
	number := func(name string) int64 {
		_, rest, _ := strings.Cut(info, "\n"+name+":")
		text, _, _ := strings.Cut(rest, "\r")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return telemetry.StoreUse{MemoryUsed: number("used_memory"), MemoryMax: number("maxmemory")}
}

// lastBackup returns when the last complete backup ended, in seconds since the Unix epoch; 0 if there was no backup.
// The result `known` is false if Redis does not answer.
func (s *Store) lastBackup(ctx context.Context) (at float64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := s.watcher.MGet(ctx, backupKey).Result() // MGET returns no error if Redis lacks the name
	if err != nil || len(text) != 1 {
		return 0, false
	}
	stamp, _ := text[0].(string)
	if stamp == "" {
		return 0, true
	}
	at, err = strconv.ParseFloat(stamp, 64)
	if at > float64(time.Now().Add(clockError).Unix()) { // a wrong clock has set it, so the age of the backup is not known
		at = 0
	}
	return at, err == nil
}

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
