package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/apikey"
)

// formatKey holds the version of the stored keys. It is missing in version 1,
// which kept the keys of commands apart from the others, in two records each.
const (
	formatKey = "registry:{admin}:format"
	format    = "2"
)

// The records of a key of version 1: its text (apikey.DecodeFirst) by its hash, and
// its hash by its id.
func firstKey(hash string) string    { return firstKeyPrefix + hash + "}" }
func firstKeyID(keyID string) string { return firstKeyIDPrefix + keyID + "}" }

const (
	firstKeyPrefix   = "registry:key:{"
	firstKeyIDPrefix = "registry:key-name:{"
)

// upgradeStep is how many records Redis looks at in one step of an upgrade.
const upgradeStep = 1000

// upgrade brings the keys in Redis to the current version, once for each store.
// The store reads no key before that, so no valid key is refused.
type upgrade struct {
	done   atomic.Bool
	turn   chan struct{} // holds one element while an upgrade runs
	cursor uint64        // where the next run continues
}

func newUpgrade() *upgrade { return &upgrade{turn: make(chan struct{}, 1)} }

// run upgrades the keys unless that is done. Redis with many records may take
// longer than ctx allows; the next run then continues. Several services may run it
// at the same time.
func (u *upgrade) run(ctx context.Context, client *redis.Client) error {
	if u.done.Load() {
		return nil
	}
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return fmt.Errorf("upgrade keys: %w", ctx.Err())
	}
	if u.done.Load() {
		return nil
	}
	err := u.steps(ctx, client)
	if err != nil && ctx.Err() == nil {
		u.cursor = 0 // another server may answer next, for which the cursor means nothing
	}
	if err != nil {
		return fmt.Errorf("upgrade keys: %w", err)
	}
	u.done.Store(true)
	return nil
}

func (u *upgrade) steps(ctx context.Context, client *redis.Client) error {
	found, err := client.Get(ctx, formatKey).Result()
	if err == nil && found != format {
		return fmt.Errorf("the keys in Redis have format %q, not %q", found, format)
	}
	if !errors.Is(err, redis.Nil) {
		return err
	}
	for {
		records, next, err := client.Scan(ctx, u.cursor, firstKeyIDPrefix+"*", upgradeStep).Result()
		if err != nil {
			return err
		}
		for _, record := range records {
			id := strings.TrimSuffix(strings.TrimPrefix(record, firstKeyIDPrefix), "}")
			if err := upgradeKey(ctx, client, id); err != nil {
				return err
			}
		}
		u.cursor = next
		if next == 0 {
			// If Redis has no memory left for this, the next process looks again.
			_ = client.Set(ctx, formatKey, format, 0).Err()
			return nil
		}
	}
}

// upgradeKey makes an unaudited key of a key of version 1. Its id and secret stay.
// It removes the old records last, so that it may be repeated.
func upgradeKey(ctx context.Context, client *redis.Client, id string) error {
	hash, err := client.Get(ctx, firstKeyID(id)).Result()
	if errors.Is(err, redis.Nil) {
		return nil // another service was faster
	}
	if err != nil {
		return err
	}
	text, err := client.Get(ctx, firstKey(hash)).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: the key is half removed
		return err
	}
	if err == nil {
		holder, err := apikey.DecodeFirst(text)
		if err != nil {
			return err
		}
		k := apikey.NewUnaudited(hash, holder, time.Now().UTC())
		for answer := idExists; answer == idExists; k.ID += apikey.RenameSuffix {
			if answer, err = addKey(ctx, client, k); err != nil {
				return err
			}
		}
	}
	if err := client.Del(ctx, firstKey(hash)).Err(); err != nil {
		return err
	}
	return client.Del(ctx, firstKeyID(id)).Err()
}
