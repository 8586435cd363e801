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
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/shared/redisclient"
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
	silence func() error          // removes the metrics
	refusal atomic.Pointer[error] // the answer to the last askForWrites; nil: it was not called yet
}

// Open returns a store on the Redis server at url (redisclient.OpenServer). It adds metrics of connections and
// operations to a meter. Open does not connect; Ready reports whether the server answers.
func Open(url string, meter metric.Meter) (*Store, error) {
	client, err := redisclient.OpenServer(url, timeouts)
	if err != nil {
		return nil, err
	}
	operations, err := telemetry.NewOperations(meter, semconv.DBSystemNameRedis)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	client.AddHook(watching{operations})
	silence, err := telemetry.MeasurePools(meter, semconv.DBSystemNameRedis, func() []telemetry.Pool {
		return pools(client)
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	watcher, err := newWatcher(url, operations)
	if err != nil {
		return nil, errors.Join(err, silence(), client.Close())
	}
	s := &Store{client: client, watcher: watcher, format: newFormatCheck(), silence: silence}
	rest, err := s.measure(meter)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.silence = func() error { return errors.Join(silence(), rest()) }
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
	return errors.Join(s.silence(), s.client.Close(), s.watcher.Close())
}
