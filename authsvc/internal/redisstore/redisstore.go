// Package redisstore keeps token records, transfers and API keys in Redis.
//
// A record is one hash under one key, changed by one script that touches no
// other key, and so is a transfer: that is atomic on a single server and in a
// cluster alike. Redis
// must keep what it is given (append-only file, no eviction); Warnings says
// when the one at hand would not. Should it lose records all the same, they
// come back from the sealed ones (package token).
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/redisurl"
	"asset-registry/shared/telemetry"
)

// How long Redis may take: the callers of this service wait no more than two
// seconds. One that is down is told at once, by a refused connection; one that
// writes each change to a busy disk before it answers takes its time. The
// client's own defaults are many times these.
const (
	dialTimeout = 200 * time.Millisecond
	callTimeout = time.Second
	poolTimeout = time.Second
)

// Store is a token.Store on a Redis server.
type Store struct {
	client  *redis.Client
	silence func() error // ends the metrics
}

// Open returns a store on the server at a URL ("redis://user:password@host:port/db",
// or rediss for TLS; or that of its sentinels, package redisurl), which tells a
// meter of its connections and operations. It does not wait for the server: Ready
// tells whether it is there.
func Open(url string, meter metric.Meter) (*Store, error) {
	client, err := newClient(url)
	if err != nil {
		return nil, err
	}
	operations, err := telemetry.NewOperations(meter, semconv.DBSystemNameRedis)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	client.AddHook(watching{operations})
	silence, err := telemetry.MeasurePools(meter, semconv.DBSystemNameRedis, func() []telemetry.Pool { return pools(client) })
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s := &Store{client, silence}
	rest, err := s.measure(meter)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.silence = func() error { return errors.Join(silence(), rest()) }
	return s, nil
}

// CheckURL tells whether Open takes a URL.
func CheckURL(url string) error {
	client, err := newClient(url)
	if err != nil {
		return err
	}
	return client.Close()
}

func newClient(url string) (*redis.Client, error) {
	malformed := errors.New("the address of the Redis server is malformed") // it may hold a password
	if redisurl.IsSentinel(url) {
		translated, err := redisurl.Failover(url)
		if err != nil {
			return nil, err
		}
		o, err := redis.ParseFailoverURL(translated)
		if err != nil {
			return nil, malformed
		}
		if o.TLSConfig != nil {
			o.TLSConfig.ServerName = "" // each server has its own
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, callTimeout, callTimeout, poolTimeout
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
		logging.Disable() // one logger for all of the process, and no JSON: what it would say, our errors say
		return redis.NewFailoverClient(o), nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, malformed
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, callTimeout, callTimeout, poolTimeout
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true // the callers repeat
	// Plain servers have no such notifications.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// pools are the connections to the server.
func pools(client *redis.Client) []telemetry.Pool {
	s, o := client.PoolStats(), client.Options()
	return []telemetry.Pool{{
		Name: "tokens", Idle: int64(s.IdleConns), Used: int64(s.TotalConns) - int64(s.IdleConns), Max: int64(o.PoolSize),
		Waiting: int64(s.PendingRequests), Timeouts: int64(s.Timeouts),
	}}
}

// recordField is the field of a record's hash that holds it; beside it is its
// generation, for save to compare.
const recordField = "record"

// key has the asset's id as hash tag (Redis Cluster, key distribution).
func key(assetID string) string { return "registry:tokens:{" + assetID + "}" }

// save keeps the newer of the record that is there and ARGV.
var save = redis.NewScript(`
local generation = redis.call('HGET', KEYS[1], 'generation')
if generation and tonumber(generation) >= tonumber(ARGV[1]) then
	return redis.call('HGET', KEYS[1], 'record')
end
redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'record', ARGV[2])
return ARGV[2]
`)

// Load returns an asset's record, or token.ErrNotFound.
func (s *Store) Load(ctx context.Context, assetID string) (token.Record, error) {
	text, err := s.client.HGet(ctx, key(assetID), recordField).Result()
	if errors.Is(err, redis.Nil) {
		return token.Record{}, token.ErrNotFound
	}
	if err != nil {
		return token.Record{}, fmt.Errorf("load tokens of asset %s: %w", assetID, err)
	}
	return token.Decode(assetID, []byte(text))
}

// Save stores r unless there is a record of the same or a newer generation,
// and returns the one that stands afterwards.
func (s *Store) Save(ctx context.Context, r token.Record) (token.Record, error) {
	text, err := r.Encode()
	if err != nil {
		return token.Record{}, err
	}
	standing, err := save.Run(ctx, s.client, []string{key(r.AssetID)}, r.Generation, text).Text()
	if err != nil {
		return token.Record{}, fmt.Errorf("save tokens of asset %s: %w", r.AssetID, err)
	}
	return token.Decode(r.AssetID, []byte(standing))
}

// transferKey has the transfer's id as hash tag.
func transferKey(id string) string { return "registry:transfer:{" + id + "}" }

// The fields of a transfer's hash: what it is, and what it is claimed for, with
// when.
const (
	transferField = "transfer"
	claimField    = "claim"
)

// create stores a transfer. It ends when ARGV[2] says, in ms since the Unix
// epoch, unless that is 0 or the transfer is there and claimed.
var create = redis.NewScript(`
redis.call('HSET', KEYS[1], 'transfer', ARGV[1])
if ARGV[2] ~= '0' and redis.call('HEXISTS', KEYS[1], 'claim') == 0 then
	redis.call('PEXPIREAT', KEYS[1], ARGV[2])
end
return 1
`)

// CreateTransfer stores a new transfer durably. Redis removes it when it expires.
func (s *Store) CreateTransfer(ctx context.Context, t token.Transfer) error {
	text, err := t.Encode()
	if err != nil {
		return err
	}
	if err := create.Run(ctx, s.client, []string{transferKey(t.ID)}, text, t.Expires/1000).Err(); err != nil {
		return fmt.Errorf("save transfer %s: %w", t.ID, err)
	}
	return nil
}

// LoadTransfer returns a transfer, or token.ErrNotFound.
func (s *Store) LoadTransfer(ctx context.Context, id string) (token.Transfer, error) {
	fields, err := s.client.HMGet(ctx, transferKey(id), transferField, claimField).Result()
	if err != nil {
		return token.Transfer{}, fmt.Errorf("load transfer %s: %w", id, err)
	}
	return decodeTransfer(id, fields)
}

// claim sets the claim of a transfer that is there and has none. A claimed one
// has no end.
var claim = redis.NewScript(`
if redis.call('HEXISTS', KEYS[1], 'transfer') == 1 then
	redis.call('HSETNX', KEYS[1], 'claim', ARGV[1])
	redis.call('PERSIST', KEYS[1])
end
return redis.call('HMGET', KEYS[1], 'transfer', 'claim')
`)

// ClaimTransfer durably sets a transfer's asset and date, unless it has an
// asset, and returns it as it stands afterwards, or token.ErrNotFound.
func (s *Store) ClaimTransfer(ctx context.Context, id, assetID string, date int64) (token.Transfer, error) {
	fields, err := claim.Run(ctx, s.client, []string{transferKey(id)}, fmt.Sprintf("%d %s", date, assetID)).Slice()
	if err != nil {
		return token.Transfer{}, fmt.Errorf("claim transfer %s: %w", id, err)
	}
	return decodeTransfer(id, fields)
}

// sweep sets the end of an unclaimed transfer that has none, and takes that of a
// claimed one away: a service of an earlier version may have claimed it.
var sweep = redis.NewScript(`
if redis.call('HEXISTS', KEYS[1], 'claim') == 1 then
	return redis.call('PERSIST', KEYS[1])
end
if redis.call('PTTL', KEYS[1]) == -1 then
	return redis.call('PEXPIREAT', KEYS[1], ARGV[1])
end
return 0
`)

// sweepStep is how many keys Redis looks at in one step of a sweep.
const sweepStep = 500

// SweepTransfers looks at the transfers that follow a cursor of SCAN, and sets the
// end of unclaimed ones that have none. Redis itself removes those that expire.
func (s *Store) SweepTransfers(ctx context.Context, cursor string, _, end time.Time) (next string, err error) {
	var at uint64
	if cursor != "" {
		if at, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return "", fmt.Errorf("sweep transfers: %w", err)
		}
	}
	keys, at, err := s.client.Scan(ctx, at, transferKey("*"), sweepStep).Result()
	if err != nil {
		return "", fmt.Errorf("list transfers: %w", err)
	}
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			sweep.Eval(ctx, p, []string{key}, end.UnixMilli())
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("sweep transfers: %w", err)
	}
	if at == 0 {
		return "", nil
	}
	return strconv.FormatUint(at, 10), nil
}

// RestoreTransfer stores a transfer as it is elsewhere, claimed or not. One that
// is there and claimed stays so.
func (s *Store) RestoreTransfer(ctx context.Context, t token.Transfer) error {
	assetID, date := t.AssetID, t.Date
	t.AssetID = ""
	if assetID != "" {
		t.Expires = 0
	}
	if err := s.CreateTransfer(ctx, t); err != nil || assetID == "" {
		return err
	}
	_, err := s.ClaimTransfer(ctx, t.ID, assetID, date)
	return err
}

// decodeTransfer makes a transfer of the fields of its hash.
func decodeTransfer(id string, fields []any) (token.Transfer, error) {
	text, there := fields[0].(string)
	if !there {
		return token.Transfer{}, token.ErrNotFound
	}
	t, err := token.DecodeTransfer(id, []byte(text))
	if claim, claimed := fields[1].(string); err == nil && claimed {
		date, asset, _ := strings.Cut(claim, " ")
		t.AssetID, t.Expires = asset, 0
		t.Date, err = strconv.ParseInt(date, 10, 64)
	}
	if err != nil {
		return token.Transfer{}, fmt.Errorf("decode transfer %s: %w", id, err)
	}
	return t, nil
}

// Ready returns nil when the server answers.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ask Redis: %w", err)
	}
	return nil
}

// durable is what the settings of a server must be for it to keep what it is given.
var durable = []struct{ setting, want, otherwise string }{
	{"appendonly", "yes", "it forgets all when it stops"},
	{"appendfsync", "always", "it forgets the last second when its machine stops"},
	{"maxmemory-policy", "noeviction", "it forgets when its memory is full"},
}

// Warnings returns why the server would not keep what it is given, a sentence
// each; none when it would, or is not there to ask.
func (s *Store) Warnings(ctx context.Context) []string {
	var warnings []string
	for _, d := range durable {
		settings, err := s.client.ConfigGet(ctx, d.setting).Result()
		if _, refused := errors.AsType[redis.Error](err); refused {
			return []string{"Redis does not tell its settings: see to it that it has appendonly yes, appendfsync always and maxmemory-policy noeviction"}
		}
		if err != nil { // it is not there: Ready says so
			return nil
		}
		if got := settings[d.setting]; got != d.want {
			warnings = append(warnings, fmt.Sprintf("Redis has %s %s, not %s: %s", d.setting, got, d.want, d.otherwise))
		}
	}
	return warnings
}

// Close closes the connections.
func (s *Store) Close() error { return errors.Join(s.silence(), s.client.Close()) }
