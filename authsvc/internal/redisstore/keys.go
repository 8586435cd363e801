package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/identity"
)

// A key is two entries, each with a hash tag of its own: what there is under
// its hash, and under its name that hash. The name comes first and goes last,
// so that there is no key that cannot be removed by its name.
func keyKey(hash string) string   { return "registry:key:{" + hash + "}" }
func keyName(keyID string) string { return "registry:key-name:{" + keyID + "}" }

// AddKey durably stores a key, or returns apikey.ErrExists.
func (s *Store) AddKey(ctx context.Context, hash string, i identity.Identity) error {
	text, err := apikey.Encode(i)
	if err != nil {
		return err
	}
	named, err := s.client.SetNX(ctx, keyName(i.KeyID), hash, 0).Result()
	if err != nil {
		return fmt.Errorf("name key %s: %w", i.KeyID, err)
	}
	if !named {
		return apikey.ErrExists
	}
	if err := s.client.Set(ctx, keyKey(hash), text, 0).Err(); err != nil {
		return fmt.Errorf("save key %s: %w", i.KeyID, err)
	}
	return nil
}

// FindKey returns whose key has a hash, or apikey.ErrNotFound.
func (s *Store) FindKey(ctx context.Context, hash string) (identity.Identity, error) {
	text, err := s.client.Get(ctx, keyKey(hash)).Bytes()
	if errors.Is(err, redis.Nil) {
		return identity.Identity{}, apikey.ErrNotFound
	}
	if err != nil {
		return identity.Identity{}, fmt.Errorf("find key: %w", err)
	}
	return apikey.Decode(text)
}

// RemoveKey durably removes a key, or returns apikey.ErrNotFound.
func (s *Store) RemoveKey(ctx context.Context, keyID string) error {
	hash, err := s.client.Get(ctx, keyName(keyID)).Result()
	if errors.Is(err, redis.Nil) {
		return apikey.ErrNotFound
	}
	if err == nil {
		err = s.client.Del(ctx, keyKey(hash)).Err()
	}
	if err == nil {
		err = s.client.Del(ctx, keyName(keyID)).Err()
	}
	if err != nil {
		return fmt.Errorf("remove key %s: %w", keyID, err)
	}
	return nil
}
