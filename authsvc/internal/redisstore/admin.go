package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// Brokers, keys and the audit log have one hash tag between them, so that one
// script changes a key and appends to the log, in a cluster too. They are few,
// and gateways remember what they are told, so one node serves them all. What
// is counted of a key has the key's id as its tag.
const (
	headKey    = "registry:{admin}:head"         // SEQ:HASH of the last entry
	auditKey   = "registry:{admin}:audit"        // number -> entry
	brokersKey = "registry:{admin}:brokers"      // name -> broker
	namesKey   = "registry:{admin}:broker-names" // all names, in order
	keysKey    = "registry:{admin}:keys"         // id -> key
	idsKey     = "registry:{admin}:key-ids"      // all ids, in order
	hashesKey  = "registry:{admin}:key-hashes"   // hash of a secret -> id of its key
)

// Head returns where the audit log ends.
func (s *Store) Head(ctx context.Context) (adminapi.Head, error) {
	text, err := s.client.Get(ctx, headKey).Result()
	if errors.Is(err, redis.Nil) {
		return adminapi.Head{}, nil
	}
	if err != nil {
		return adminapi.Head{}, fmt.Errorf("load head of audit log: %w", err)
	}
	return adminapi.ParseHead(text)
}

// commit makes a change if the log ends as ARGV[1] says. KEYS: head, audit, the
// records, the index of their names, hashes. ARGV: head before, head after,
// number and text of the entry, name and text of the record, hash. It also runs
// when Redis has no memory left: a key must be revocable then, too.
var commit = redis.NewScript(`#!lua flags=allow-oom
if (redis.call('GET', KEYS[1]) or '0:') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
redis.call('HSET', KEYS[3], ARGV[5], ARGV[6])
redis.call('ZADD', KEYS[4], 0, ARGV[5])
if ARGV[7] ~= '' then redis.call('HSET', KEYS[5], ARGV[7], ARGV[5]) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
`)

// recordOf is where a change's record is kept, and as what.
func recordOf(c admin.Change) (records, index, name string, text []byte, err error) {
	if c.Broker != nil {
		text, err = c.Broker.Encode()
		return brokersKey, namesKey, c.Broker.Name, text, err
	}
	text, err = c.Key.Encode()
	return keysKey, idsKey, c.Key.ID, text, err
}

// Commit makes a change and appends its entry if the log still ends at head.
func (s *Store) Commit(ctx context.Context, head adminapi.Head, c admin.Change) error {
	records, index, name, text, err := recordOf(c)
	if err != nil {
		return err
	}
	entry, err := json.Marshal(c.Entry)
	if err != nil {
		return fmt.Errorf("encode audit entry: %w", err)
	}
	after := adminapi.Head{Seq: c.Entry.Seq, Hash: c.Entry.Hash}
	done, err := commit.Run(ctx, s.client, []string{headKey, auditKey, records, index, hashesKey},
		head.String(), after.String(), c.Entry.Seq, entry, name, text, c.NewHash).Int()
	if err != nil {
		return fmt.Errorf("commit change: %w", err)
	}
	if done == 0 {
		return admin.ErrStale
	}
	return nil
}

// Reseal stores entries of the audit log again.
func (s *Store) Reseal(ctx context.Context, entries []adminapi.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	fields := make([]any, 0, 2*len(entries))
	for _, e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode audit entry: %w", err)
		}
		fields = append(fields, strconv.FormatInt(e.Seq, 10), text)
	}
	if err := s.client.HSet(ctx, auditKey, fields...).Err(); err != nil {
		return fmt.Errorf("seal audit log anew: %w", err)
	}
	return nil
}

// Restore stores what was stored elsewhere. The log ends at the last entry that
// is restored.
func (s *Store) Restore(ctx context.Context, c admin.Change, hashes []string) error {
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if c.Broker != nil || c.Key != nil {
			records, index, name, text, err := recordOf(c)
			if err != nil {
				return err
			}
			p.HSet(ctx, records, name, text)
			p.ZAdd(ctx, index, redis.Z{Member: name})
			for _, hash := range hashes {
				p.HSet(ctx, hashesKey, hash, name)
			}
		}
		if c.Entry.Seq > 0 {
			entry, err := json.Marshal(c.Entry)
			if err != nil {
				return err
			}
			p.HSet(ctx, auditKey, strconv.FormatInt(c.Entry.Seq, 10), entry)
			p.Set(ctx, headKey, adminapi.Head{Seq: c.Entry.Seq, Hash: c.Entry.Hash}.String(), 0)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore keys: %w", err)
	}
	return nil
}

// Entries returns up to limit audit entries that follow number after. One that
// is missing is left out.
func (s *Store) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	head, err := s.Head(ctx)
	if err != nil {
		return nil, err
	}
	var numbers []string
	for n := after + 1; n <= head.Seq && len(numbers) < limit; n++ {
		numbers = append(numbers, strconv.FormatInt(n, 10))
	}
	return load(ctx, s, auditKey, numbers, func(text []byte) (e adminapi.Entry, err error) { return e, json.Unmarshal(text, &e) })
}

// Brokers returns up to limit brokers whose names follow after.
func (s *Store) Brokers(ctx context.Context, after string, limit int) ([]apikey.Broker, error) {
	names, err := s.follow(ctx, namesKey, after, limit)
	if err != nil {
		return nil, err
	}
	return load(ctx, s, brokersKey, names, apikey.DecodeBroker)
}

// Keys returns up to limit keys whose ids follow after.
func (s *Store) Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error) {
	ids, err := s.follow(ctx, idsKey, after, limit)
	if err != nil {
		return nil, err
	}
	return load(ctx, s, keysKey, ids, apikey.DecodeKey)
}

func (s *Store) follow(ctx context.Context, index, after string, limit int) ([]string, error) {
	names, err := s.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: index, Start: "(" + after, Stop: "+", ByLex: true, Count: int64(limit)}).Result()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", index, err)
	}
	return names, nil
}

// load returns the fields of a hash that are there.
func load[T any](ctx context.Context, s *Store, key string, fields []string, decode func([]byte) (T, error)) (found []T, err error) {
	if len(fields) == 0 {
		return nil, nil
	}
	texts, err := s.client.HMGet(ctx, key, fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("load from %s: %w", key, err)
	}
	for _, text := range texts {
		if text, there := text.(string); there {
			value, err := decode([]byte(text))
			if err != nil {
				return nil, fmt.Errorf("load from %s: %w", key, err)
			}
			found = append(found, value)
		}
	}
	return found, nil
}

// Broker returns a broker, or admin.ErrNotFound.
func (s *Store) Broker(ctx context.Context, name string) (apikey.Broker, error) {
	return one(ctx, s, brokersKey, name, apikey.DecodeBroker)
}

// Key returns a key, or admin.ErrNotFound.
func (s *Store) Key(ctx context.Context, id string) (apikey.Key, error) {
	return one(ctx, s, keysKey, id, apikey.DecodeKey)
}

func one[T any](ctx context.Context, s *Store, key, field string, decode func([]byte) (T, error)) (value T, err error) {
	found, err := load(ctx, s, key, []string{field}, decode)
	if err != nil {
		return value, err
	}
	if len(found) == 0 {
		return value, admin.ErrNotFound
	}
	return found[0], nil
}

// find looks for the key of a hash and its broker, all of it in any case. A key
// that is not where the index has one is none: nobody would see it, and the
// check of the audit log would not either. KEYS: hashes, keys, brokers, the
// index of ids.
var find = redis.NewScript(`
local id = redis.call('HGET', KEYS[1], ARGV[1]) or ''
local key = redis.call('HGET', KEYS[2], id)
local broker = redis.call('HGET', KEYS[3], cjson.decode(key or '{}').broker or '')
if redis.call('ZSCORE', KEYS[4], id) ~= '0' then return {false, broker} end
return {key, broker}
`)

// FindSecret returns the key with a secret of this hash and its broker, or
// admin.ErrNotFound.
func (s *Store) FindSecret(ctx context.Context, hash string) (k apikey.Key, b apikey.Broker, err error) {
	texts, err := find.Run(ctx, s.client, []string{hashesKey, keysKey, brokersKey, idsKey}, hash).Slice()
	if err != nil {
		return k, b, fmt.Errorf("find key: %w", err)
	}
	text, there := texts[0].(string)
	if !there {
		return k, b, admin.ErrNotFound
	}
	if k, err = apikey.DecodeKey([]byte(text)); err != nil {
		return k, b, err
	}
	if text, there := texts[1].(string); there {
		b, err = apikey.DecodeBroker([]byte(text))
	}
	return k, b, err
}

func countsKey(id, day string) string { return "registry:key-counts:{" + id + "}:" + day }

func usesKey(id string, secret int) string {
	return "registry:key-uses:{" + id + "}:" + strconv.Itoa(secret)
}

// AddUsage adds to the counts, and keeps the newest uses.
func (s *Store) AddUsage(ctx context.Context, uses []authapi.Use, counts []authapi.Count) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, c := range counts {
			p.HIncrBy(ctx, countsKey(c.KeyID, c.Day), c.Class, c.Requests)
			p.Expire(ctx, countsKey(c.KeyID, c.Day), (admin.UsageDays+2)*24*time.Hour)
		}
		for _, u := range uses {
			key := usesKey(u.KeyID, u.Secret)
			p.ZAddGT(ctx, key, redis.Z{Score: float64(u.Micros), Member: u.Addr.String()}) // exact below 2^53
			p.ZRemRangeByRank(ctx, key, 0, -admin.MaxUses-1)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add usage: %w", err)
	}
	return nil
}

// Uses returns the last uses of each key, by number of its secret.
func (s *Store) Uses(ctx context.Context, ids []string) (map[string]map[int][]adminapi.Use, error) {
	keys, err := load(ctx, s, keysKey, ids, apikey.DecodeKey)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	answers := map[string]map[int]*redis.ZSliceCmd{}
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			answers[k.ID] = map[int]*redis.ZSliceCmd{}
			for _, secret := range k.Secrets {
				answers[k.ID][secret.Number] = p.ZRevRangeWithScores(ctx, usesKey(k.ID, secret.Number), 0, -1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load uses: %w", err)
	}
	found := map[string]map[int][]adminapi.Use{}
	for id, secrets := range answers {
		found[id] = map[int][]adminapi.Use{}
		for secret, answer := range secrets {
			for _, use := range answer.Val() {
				found[id][secret] = append(found[id][secret], adminapi.Use{Time: time.UnixMicro(int64(use.Score)).UTC(), From: use.Member.(string)})
			}
		}
	}
	return found, nil
}

// Counts returns a key's counts of the days that have any.
func (s *Store) Counts(ctx context.Context, id string, days []string) ([]adminapi.Day, error) {
	answers := make([]*redis.MapStringStringCmd, len(days))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, day := range days {
			answers[i] = p.HGetAll(ctx, countsKey(id, day))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load counts of key %s: %w", id, err)
	}
	found := []adminapi.Day{}
	for i, answer := range answers {
		if len(answer.Val()) == 0 {
			continue
		}
		day := adminapi.Day{Day: days[i], Counts: map[string]int64{}}
		for class, text := range answer.Val() {
			if day.Counts[class], err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, fmt.Errorf("load counts of key %s: %w", id, err)
			}
		}
		found = append(found, day)
	}
	return found, nil
}
