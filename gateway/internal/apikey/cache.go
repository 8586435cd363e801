package apikey

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// Verifier tells what a key with a hash is good for. For one that is good for
// nothing it returns a fault of kind Unauthorized, and one of kind Unavailable
// when it cannot tell.
type Verifier interface {
	VerifyKey(ctx context.Context, hash string) (authapi.Key, error)
}

// maxEntries bounds the cache. A broker has a handful of keys, and a flood of
// wrong ones must not push all the right ones out for good: they are back
// after one question each.
const maxEntries = 10_000

// unknownTTL is the longest time that a key stays unknown: who is given a new
// one may have tried it before it was there.
const unknownTTL = time.Second

// unwatchedTTL is how long an answer is trusted when nobody says that the key
// has not changed since: with the time that a question takes, less than the
// second in which a revoked key must be refused.
const unwatchedTTL = 800 * time.Millisecond

// Cache is a Verifier that remembers for a while what another has said, known
// keys and unknown ones alike, and asks about a key once at a time. It trusts
// its memory as long as it is told what changes (Confirm, Forget), and not for
// a second when it is not.
type Cache struct {
	from    Verifier
	ttl     time.Duration
	now     func() time.Time
	flights singleflight.Group
	counts  counts

	mu        sync.RWMutex
	entries   map[string]entry
	epoch     uint64    // raised by each Forget, so that nobody joins an older flight
	confirmed time.Time // what is remembered was true then
}

type entry struct {
	key   authapi.Key
	err   error // Unauthorized or nil in what is remembered
	asked time.Time
	until time.Time
}

// Cached returns a cache in front of from that is at most ttl behind it, and
// at most a second behind a key that becomes known.
func Cached(from Verifier, ttl time.Duration, now func() time.Time) *Cache {
	return &Cache{from: from, ttl: ttl, now: now, entries: map[string]entry{}}
}

// Confirm says that nothing but what was told to Forget has changed until a time.
func (c *Cache) Confirm(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.confirmed) {
		c.confirmed = at
	}
}

// Forget forgets what a change has made doubtful: keys by their ids, all keys
// of brokers, and every key that was good for nothing.
func (c *Cache) Forget(what authapi.WatchKeysResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.forgets.Add(1)
	c.epoch++
	if what.All {
		clear(c.entries)
		return
	}
	keys, brokers := set(what.Keys), set(what.Brokers)
	for hash, e := range c.entries {
		if e.err != nil || keys[e.key.KeyID] || brokers[e.key.Broker] {
			delete(c.entries, hash)
		}
	}
}

func set(names []string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// Recall tells what a key is good for if that is remembered, at once.
func (c *Cache) Recall(hash string) (_ authapi.Key, known bool, _ error) {
	e, known, _ := c.known(hash)
	if known {
		c.counts.found(e)
	}
	return e.key, known, e.err
}

// VerifyKey tells what a key is good for, as it was at most the cache's time ago.
func (c *Cache) VerifyKey(ctx context.Context, hash string) (authapi.Key, error) {
	began := c.now()
	for first := true; ; first = false {
		e, known, epoch := c.known(hash)
		switch {
		case known && first:
			c.counts.found(e)
			return e.key, e.err
		case known:
			return e.key, e.err
		case first:
			c.counts.misses.Add(1)
		}
		// Who waits with others must not fail because the first of them left.
		flight := c.flights.DoChan(strconv.FormatUint(epoch, 10)+" "+hash, func() (any, error) {
			if e, known, _ := c.known(hash); known { // a flight has ended since we looked
				return e, nil
			}
			return c.ask(context.WithoutCancel(ctx), hash, epoch), nil
		})
		select {
		case result := <-flight:
			e := result.Val.(entry)
			if began.Sub(e.asked) < unwatchedTTL { // else we have joined a flight that took long
				return e.key, e.err
			}
		case <-ctx.Done():
			return authapi.Key{}, ctx.Err()
		}
	}
}

// ask asks, and remembers the answer if it is one.
func (c *Cache) ask(ctx context.Context, hash string, epoch uint64) entry {
	e := entry{asked: c.now()}
	e.key, e.err = c.from.VerifyKey(ctx, hash)
	switch {
	case e.err == nil:
		ttl := c.ttl
		if e.key.GoodFor > 0 {
			ttl = min(ttl, e.key.GoodFor)
		}
		e.until = e.asked.Add(ttl)
		c.keep(hash, epoch, e)
	case fault.KindOf(e.err) == fault.Unauthorized:
		e.until = e.asked.Add(min(c.ttl, unknownTTL))
		c.keep(hash, epoch, e)
	}
	return e
}

// known returns what is remembered of a key and may be trusted, and the epoch
// in which that is so.
func (c *Cache) known(hash string) (e entry, known bool, epoch uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, known = c.entries[hash]
	now, trusted := c.now(), e.asked
	if c.confirmed.After(trusted) {
		trusted = c.confirmed
	}
	return e, known && now.Before(e.until) && now.Before(trusted.Add(unwatchedTTL)), c.epoch
}

// keep remembers an answer to a question of an epoch. What was asked before the
// last change may have been answered before it.
func (c *Cache) keep(hash string, epoch uint64, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
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
