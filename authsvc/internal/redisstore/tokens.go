package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/token"
)

// recordKey returns the Redis name of a token record. The asset's id is its hash tag (Redis Cluster, key
// distribution).
func recordKey(assetID string) string { return "registry:tokens:{" + assetID + "}" }

// recordField is the field of a record's Redis hash that has the record's text. The script `save` also uses the
// field "generation".
const recordField = "record"

// save stores the record ARGV[2], but only if Redis has no record of the same or a newer generation. It returns the
// record that Redis then has.
var save = redis.NewScript(`
local generation = redis.call('HGET', KEYS[1], 'generation')
if generation and tonumber(generation) >= tonumber(ARGV[1]) then
	return redis.call('HGET', KEYS[1], 'record')
end
redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'record', ARGV[2])
return ARGV[2]
`)

// Load returns the token record of an asset, or token.ErrNotFound.
func (s *Store) Load(ctx context.Context, assetID string) (token.Record, error) {
	text, err := s.client.HGet(ctx, recordKey(assetID), recordField).Result()
	if errors.Is(err, redis.Nil) {
		return token.Record{}, token.ErrNotFound
	}
	if err != nil {
		return token.Record{}, fmt.Errorf("load tokens of asset %s: %w", assetID, err)
	}
	return token.Decode(assetID, []byte(text))
}

// Save durably stores r unless Redis has a record of the same or a newer
// generation. It returns the record that Redis then has.
func (s *Store) Save(ctx context.Context, r token.Record) (token.Record, error) {
	if err := s.format.run(ctx, s.client); err != nil {
		return token.Record{}, err
	}
	text, err := r.Encode()
	if err != nil {
		return token.Record{}, err
	}
	standing, err := save.Run(ctx, s.client, []string{recordKey(r.AssetID)}, r.Generation, text).Text()
	if err != nil {
		return token.Record{}, fmt.Errorf("save tokens of asset %s: %w", r.AssetID, err)
	}
	return token.Decode(r.AssetID, []byte(standing))
}
