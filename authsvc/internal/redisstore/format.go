package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"asset-registry/shared/dataformat"
)

// formatKey is the name under which Redis has the format of the stored keys and tokens.
const (
	formatKey = "registry:{admin}:format"
	format    = "asset-registry tokens 3"
)

// noFormat is the format that is assumed if Redis has data but no format. Data from before the first release may lack
// a format.
const noFormat = "asset-registry tokens 1"

// stored matches the names of keys, tokens and transfers in Redis, in every format of the data. It does not
// match backupKey or the limits of gateways.
const stored = "registry:[{kt]*"

// scanStep is the number of keys that Redis looks at in one step.
const scanStep = 1000

// formatCheck refuses a Redis that has data in a different format, and writes the format into a Redis without data.
// It is safe for concurrent use, also by several services.
type formatCheck struct {
	done   atomic.Bool
	turn   chan struct{} // holds one element while a check runs
	cursor uint64        // where the next check continues
}

func newFormatCheck() *formatCheck { return &formatCheck{turn: make(chan struct{}, 1)} }

// run returns an error if Redis does not have the format of this store. Once run has found the format, it does not
// ask Redis again. If other programs keep many keys in Redis, the check may need more time than ctx allows. The next
// call of run then continues the check.
func (f *formatCheck) run(ctx context.Context, client *redis.Client) error {
	if f.done.Load() {
		return nil
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return fmt.Errorf("check the format: %w", ctx.Err())
	}
	if f.done.Load() {
		return nil
	}
	err := f.check(ctx, client)
	if err != nil && ctx.Err() == nil {
		f.cursor = 0 // the next answer may come from another server, where the cursor means nothing
	}
	if err != nil {
		return fmt.Errorf("check the format: %w", err)
	}
	f.done.Store(true)
	return nil
}

func (f *formatCheck) check(ctx context.Context, client *redis.Client) error {
	found, err := client.Get(ctx, formatKey).Result()
	if err == nil && found != format {
		return dataformat.Refusal(found, format)
	}
	if !errors.Is(err, redis.Nil) {
		return err
	}
	for first := true; first || f.cursor != 0; first = false {
		keys, next, err := client.Scan(ctx, f.cursor, stored, scanStep).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			return f.again(ctx, client)
		}
		f.cursor = next
	}
	if err := client.SetNX(ctx, formatKey, format, 0).Err(); err != nil {
		return err
	}
	return f.again(ctx, client)
}

// The method `again` reads the format a second time. It is called when Redis has data: since the first time, another
// service may have written both the format and the data.
func (f *formatCheck) again(ctx context.Context, client *redis.Client) error {
	found, err := client.Get(ctx, formatKey).Result()
	if errors.Is(err, redis.Nil) {
		found, err = noFormat, nil
	}
	if err == nil && found != format {
		err = dataformat.Refusal(found, format)
	}
	return err
}
