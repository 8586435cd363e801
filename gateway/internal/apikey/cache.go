package apikey

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Verifier tells whose key has a hash. For nobody's it returns a fault of kind
// Unauthorized, and one of kind Unavailable when it cannot tell.
type Verifier interface {
	VerifyKey(ctx context.Context, hash string) (identity.Identity, error)
}

// maxEntries bounds the cache. A broker has a handful of keys, and a flood of
// wrong ones must not push all the right ones out for good: they are back
// after one question each.
const maxEntries = 10_000

// unknownTTL is the longest time that a key stays unknown: who is given a new
// one may have tried it before it was there.
const unknownTTL = time.Second

// Cache is a Verifier that remembers for a while what another has said, known
// keys and unknown ones alike, and asks about a key once at a time.
type Cache struct {
	from    Verifier
	ttl     time.Duration
	now     func() time.Time
	flights singleflight.Group

	mu      sync.RWMutex
	entries map[string]entry
}

type entry struct {
	identity identity.Identity
	err      error // Unauthorized, or nil
	until    time.Time
}

// Cached returns a cache in front of from that is at most ttl behind it, and
// at most a second behind a key that becomes known.
func Cached(from Verifier, ttl time.Duration, now func() time.Time) *Cache {
	return &Cache{from: from, ttl: ttl, now: now, entries: map[string]entry{}}
}

// VerifyKey tells whose key has a hash, as it was at most the cache's time ago.
func (c *Cache) VerifyKey(ctx context.Context, hash string) (identity.Identity, error) {
	if e, known := c.known(hash); known {
		return e.identity, e.err
	}
	// Who waits with others must not fail because the first of them left.
	flight := c.flights.DoChan(hash, func() (any, error) {
		if e, known := c.known(hash); known { // a flight has ended since we looked
			return e.identity, e.err
		}
		asked := c.now()
		i, err := c.from.VerifyKey(context.WithoutCancel(ctx), hash)
		switch {
		case err == nil:
			c.keep(hash, entry{identity: i, until: asked.Add(c.ttl)})
		case fault.KindOf(err) == fault.Unauthorized:
			c.keep(hash, entry{err: err, until: asked.Add(min(c.ttl, unknownTTL))})
		}
		return i, err
	})
	select {
	case result := <-flight:
		i, _ := result.Val.(identity.Identity)
		return i, result.Err
	case <-ctx.Done():
		return identity.Identity{}, ctx.Err()
	}
}

func (c *Cache) known(hash string) (entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, known := c.entries[hash]
	return e, known && c.now().Before(e.until)
}

func (c *Cache) keep(hash string, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxEntries {
		now := c.now()
		for hash, e := range c.entries {
			if !now.Before(e.until) {
				delete(c.entries, hash)
			}
		}
		if len(c.entries) >= maxEntries {
			clear(c.entries)
		}
	}
	c.entries[hash] = e
}
