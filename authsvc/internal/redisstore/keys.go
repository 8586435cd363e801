package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/errs"
)

// The names for brokers, keys and the audit log share one hash tag. A cluster therefore stores all of them on one
// node, and one script can change a key and append to the log. One node is enough: the data are small, and gateways
// cache them.
const (
	brokersKey = "registry:{admin}:brokers"      // name -> broker
	namesKey   = "registry:{admin}:broker-names" // index: all names, in order
	keysKey    = "registry:{admin}:keys"         // id -> key
	idsKey     = "registry:{admin}:key-ids"      // index: all ids, in order
	hashesKey  = "registry:{admin}:key-hashes"   // hash of a secret -> id of its key
)

// Broker returns a broker, or apikey.ErrNotFound.
func (s *Store) Broker(ctx context.Context, name string) (apikey.Broker, error) {
	return one(ctx, s, brokersKey, name, apikey.DecodeBroker)
}

// Brokers returns up to limit brokers in the order of their names. The first one follows the name `after`.
func (s *Store) Brokers(ctx context.Context, after string, limit int) ([]apikey.Broker, error) {
	names, err := s.follow(ctx, namesKey, after, limit)
	if err != nil {
		return nil, err
	}
	return load(ctx, s, brokersKey, names, apikey.DecodeBroker)
}

// Key returns a key, or apikey.ErrNotFound.
func (s *Store) Key(ctx context.Context, id string) (apikey.Key, error) {
	if err := s.format.run(ctx, s.client); err != nil {
		return apikey.Key{}, err
	}
	return one(ctx, s, keysKey, id, apikey.DecodeKey)
}

// Keys returns up to limit keys in the order of their ids. The first one follows the id `after`.
func (s *Store) Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error) {
	if err := s.format.run(ctx, s.client); err != nil {
		return nil, err
	}
	ids, err := s.follow(ctx, idsKey, after, limit)
	if err != nil {
		return nil, err
	}
	return load(ctx, s, keysKey, ids, apikey.DecodeKey)
}

// KeysBack returns up to limit keys in the reverse order of their ids. The first one precedes the id `before`. If this
// id is "", the first one is the last key.
func (s *Store) KeysBack(ctx context.Context, before string, limit int) ([]apikey.Key, error) {
	if err := s.format.run(ctx, s.client); err != nil {
		return nil, err
	}
	end := "+"
	if before != "" {
		end = "(" + before
	}
	ids, err := s.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: idsKey, Start: end, Stop: "-", ByLex: true, Rev: true, Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", idsKey, err)
	}
	return load(ctx, s, keysKey, ids, apikey.DecodeKey)
}

// follow returns up to limit names of an index, in order. The first one follows the name `after`.
func (s *Store) follow(ctx context.Context, index, after string, limit int) ([]string, error) {
	names, err := s.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: index, Start: "(" + after, Stop: "+", ByLex: true, Count: int64(limit),
	}).Result()
	return names, errs.In(err, "list %s", index)
}

// load decodes some fields of a Redis hash. Fields that the hash lacks are left out.
func load[T any](
	ctx context.Context, s *Store, key string, fields []string, decode func([]byte) (T, error),
) (found []T, err error) {
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

func one[T any](
	ctx context.Context, s *Store, key, field string, decode func([]byte) (T, error),
) (value T, err error) {
	found, err := load(ctx, s, key, []string{field}, decode)
	if err != nil {
		return value, err
	}
	if len(found) == 0 {
		return value, apikey.ErrNotFound
	}
	return found[0], nil
}

// find returns the key that has a secret with this hash, the key's broker, and the head of the audit log. It always
// reads all of them. A key that is not in the index counts as missing, because lists and the check of the audit log
// would not show it. KEYS: hashes, keys, brokers, index of ids, head.
var find = redis.NewScript(`
local id = redis.call('HGET', KEYS[1], ARGV[1]) or ''
local key = redis.call('HGET', KEYS[2], id)
local broker = redis.call('HGET', KEYS[3], cjson.decode(key or '{}').broker or '')
local head = redis.call('GET', KEYS[5]) or '0:'
if redis.call('ZSCORE', KEYS[4], id) ~= '0' then return {false, broker, head} end
return {key, broker, head}
`)

// FindSecret returns the key that has a secret with this hash, or apikey.ErrNotFound. It makes one round trip.
func (s *Store) FindSecret(ctx context.Context, hash string) (f apikey.Found, err error) {
	if err := s.format.run(ctx, s.client); err != nil {
		return f, err
	}
	texts, err := find.Run(ctx, s.client, []string{hashesKey, keysKey, brokersKey, idsKey, headKey}, hash).Slice()
	if err != nil {
		return f, fmt.Errorf("find key: %w", err)
	}
	if f.Head, err = adminapi.ParseHead(fmt.Sprint(texts[2])); err != nil {
		return f, err
	}
	text, there := texts[0].(string)
	if !there {
		return f, apikey.ErrNotFound
	}
	if f.Key, err = apikey.DecodeKey([]byte(text)); err != nil {
		return f, err
	}
	if text, there := texts[1].(string); there {
		f.Broker, err = apikey.DecodeBroker([]byte(text))
	}
	return f, err
}
