// Package redisstore keeps token records, transfers, API keys and the audit log in
// Redis.
//
// A token record is one Redis hash, and so is a transfer. Each is changed by one script that touches no other
// data, so a change is atomic on a single server and in a cluster. Redis must keep all data (append-only file,
// no eviction); Store.Warnings reports a server that does not. If Redis loses token records, the service restores
// them from the sealed records that other services keep (package token).
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/dataformat"
	"asset-registry/shared/errs"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/redisclient"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
)

// timeouts limit how long a call to Redis may take. Callers of the auth service wait at most two seconds. A server
// that is down refuses a connection immediately, so Dial can be short. A server with a busy disk needs more time,
// because it writes each change before it answers. If no connection is free, a request must be refused before its
// caller gives up: callers believe that a service without an answer is dead.
var timeouts = redisclient.Timeouts{Dial: 200 * time.Millisecond, Call: time.Second, Pool: 500 * time.Millisecond}

// Store is the store of the auth service in Redis. It is safe for concurrent use.
type Store struct {
	client  *redis.Client
	watcher *redis.Client // see newWatcher
	format  *formatCheck
	silence func()                // removes the metrics
	refusal atomic.Pointer[error] // the answer to the last askForWrites; nil: it was not called yet
}

// Open returns a store on the Redis server at url (redisclient.OpenServer). It adds metrics of connections and
// operations to a meter. Open does not connect; Ready reports whether the server answers.
func Open(url string, meter metric.Meter) (*Store, error) {
	client, err := redisclient.OpenServer(url, timeouts)
	if err != nil {
		return nil, err
	}
	operations := telemetry.NewOperations(meter, semconv.DBSystemNameRedis)
	client.AddHook(watching{operations})
	watcher, err := newWatcher(url, operations)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s := &Store{client: client, watcher: watcher, format: &formatCheck{}}
	s.silence = s.measure(meter)
	return s, nil
}

// newWatcher returns a client with separate connections for Ready, the metrics and the watch of changed keys.
// So the server does not look dead while requests use all other connections.
func newWatcher(url string, operations *telemetry.Operations) (*redis.Client, error) {
	watcher, err := redisclient.OpenServer(url, timeouts)
	if err != nil {
		return nil, err
	}
	watcher.AddHook(watching{operations})
	return watcher, nil
}

// pools returns the state of the connection pool.
func pools(client *redis.Client) []telemetry.Pool {
	s, o := client.PoolStats(), client.Options()
	return []telemetry.Pool{{
		Name: "tokens", Idle: int64(s.IdleConns), Used: int64(s.TotalConns) - int64(s.IdleConns), Max: int64(o.PoolSize),
		Waiting: int64(s.PendingRequests), Timeouts: int64(s.Timeouts),
	}}
}

// Ready returns nil if the server answers and its data have the format of this store.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.watcher.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping Redis: %w", err)
	}
	return s.format.run(ctx, s.watcher)
}

// Clock returns the time of Redis.
func (s *Store) Clock(ctx context.Context) (time.Time, error) { return s.watcher.Time(ctx).Result() }

// durable lists the settings with which a server keeps all data.
var durable = []struct{ setting, want, otherwise string }{
	{"appendonly", "yes", "it loses all data when it stops"},
	{"appendfsync", "always", "it loses the last second of data when its machine stops"},
	{"maxmemory-policy", "noeviction", "it removes data when its memory is full"},
}

// Warnings returns one sentence for each setting with which the server can lose data, and one if it refuses writes
// (WatchWrites). It tells of no settings if all are safe, or if the server does not answer.
func (s *Store) Warnings(ctx context.Context) []string {
	var warnings []string
	if err := s.refuses(); err != nil {
		warnings = append(warnings, "Redis refuses writes: "+err.Error())
	}
	for _, d := range durable {
		settings, err := s.watcher.ConfigGet(ctx, d.setting).Result()
		if _, refused := errors.AsType[redis.Error](err); refused {
			return append(warnings, "Redis does not show its settings. "+
				"Make sure that it has appendonly yes, appendfsync always and maxmemory-policy noeviction.")
		}
		if err != nil { // not a warning: Ready reports a server that does not answer
			return warnings
		}
		if got := settings[d.setting]; got != d.want {
			warnings = append(warnings, fmt.Sprintf("Redis has %s %s, not %s: %s", d.setting, got, d.want, d.otherwise))
		}
	}
	return append(warnings, s.lossOfFailovers(ctx)...)
}

// lossOfFailovers returns a warning if a failover may lose changes that the server has already confirmed. This happens
// if a replica takes over and does not have these changes yet.
func (s *Store) lossOfFailovers(ctx context.Context) []string {
	const setting = "min-replicas-to-write"
	replication, err1 := s.watcher.Info(ctx, "replication").Result()
	settings, err2 := s.watcher.ConfigGet(ctx, setting).Result()
	if err1 != nil || err2 != nil || settings[setting] != "0" ||
		!strings.Contains(replication, "connected_slaves:") || strings.Contains(replication, "connected_slaves:0\r\n") {
		return nil
	}
	return []string{"Redis has replicas and " + setting + " 0, not 1: " +
		"a failover may lose the last changes, such as revocations"}
}

// Close closes the connections.
func (s *Store) Close() error {
	s.silence()
	return errors.Join(s.client.Close(), s.watcher.Close())
}

// sessionKey returns the Redis name for a session of the console.
func sessionKey(id string) string { return "registry:session:{" + id + "}" }

// ended is the value of a session that was ended. Any other value is the text that is kept of a session.
const ended = "ended"

// EndSession durably ends a session of the console, and forgets what is kept of it. Redis forgets the session after the
// given time.
func (s *Store) EndSession(ctx context.Context, id string, forget time.Duration) error {
	return errs.In(s.client.Set(ctx, sessionKey(id), ended, forget).Err(), "end session")
}

// SessionEnded reports whether a session of the console was ended.
func (s *Store) SessionEnded(ctx context.Context, id string) (bool, error) {
	value, err := s.session(ctx, id)
	return value == ended, err
}

// KeptSession implements console.Sessions.
func (s *Store) KeptSession(ctx context.Context, id string) (string, error) {
	value, err := s.session(ctx, id)
	return strings.TrimPrefix(value, ended), err // no other value begins so: they are sealed
}

func (s *Store) session(ctx context.Context, id string) (string, error) {
	value, err := s.client.Get(ctx, sessionKey(id)).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return value, errs.In(err, "look for a session")
}

// keep replaces the value ARGV[1] by ARGV[2] for ARGV[3] ms. An empty text stands for a missing value.
var keep = redis.NewScript(`
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
`)

// KeepSession implements console.Sessions.
func (s *Store) KeepSession(ctx context.Context, id, was, text string, forget time.Duration) (bool, error) {
	kept, err := keep.Run(ctx, s.client, []string{sessionKey(id)}, was, text, forget.Milliseconds()).Bool()
	return kept, errs.In(err, "keep session")
}

const (
	probeKey   = "registry:probe" // written by askForWrites; nobody reads it
	probeEvery = 10 * time.Second
)

// WatchWrites asks the server every ten seconds whether it takes writes, until ctx ends. No request asks. Warnings and
// the metric registry.store.refusing tell the last answer.
func (s *Store) WatchWrites(ctx context.Context, log *slog.Logger) {
	refused := failurelog.NewState(log, "Redis of the tokens refuses writes")
	defer refused.Close()
	for again := true; again; again = sleep.For(ctx, probeEvery) {
		if err := s.askForWrites(ctx); err != nil {
			refused.Failed(err)
		} else {
			refused.Worked()
		}
	}
}

// askForWrites writes to the server, and returns its refusal. A server that does not answer is none: Ready tells of it.
func (s *Store) askForWrites(ctx context.Context) error {
	var err error
	if refusal, ok := errors.AsType[redis.Error](s.watcher.Set(ctx, probeKey, "", time.Minute).Err()); ok {
		err = refusal // without the words for clients
	}
	s.refusal.Store(&err)
	return err
}

// refuses returns the server's last refusal of a write, or nil.
func (s *Store) refuses() error {
	if err := s.refusal.Load(); err != nil {
		return *err
	}
	return nil
}

// formatKey is the name under which Redis has the format of the stored keys and tokens.
const (
	formatKey = "registry:{admin}:format"
	format    = "asset-registry tokens 3"
)

// formatCheck refuses a Redis that has data in a different format, and writes the format into a Redis without one.
// It is safe for concurrent use, also by several services.
type formatCheck struct{ done atomic.Bool }

// run returns an error if Redis does not have the format of this store. Once run has found the format, it does not
// ask Redis again.
func (f *formatCheck) run(ctx context.Context, client *redis.Client) error {
	if f.done.Load() {
		return nil
	}
	found, err := client.Get(ctx, formatKey).Result()
	if errors.Is(err, redis.Nil) {
		if err = client.SetNX(ctx, formatKey, format, 0).Err(); err == nil { // another service may have been faster
			found, err = client.Get(ctx, formatKey).Result()
		}
	}
	if err == nil && found != format {
		err = dataformat.Refusal(found, format)
	}
	f.done.Store(err == nil)
	return errs.In(err, "check the format")
}
