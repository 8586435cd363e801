package apikey

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/singleflight"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
)

// Verifier verifies the API key that has the given hash. If the key is not valid, it returns a fault of kind
// Unauthorized; if it cannot verify the key now, a fault of kind Unavailable.
type Verifier interface {
	VerifyKey(ctx context.Context, hash string) (authapi.Key, error)
}

// The bounds of the cache. A broker has only a few keys. If a cache is full, it drops the answers about wrong keys.
// Wrong keys never drop a right one.
const (
	maxEntries = 10_000
	entryBytes = 1 << 10 // of an answer, about: a key has limits of its own, allowed networks and names
)

// invalidTTL is the longest time for which the cache remembers that a key is not valid. It is short, because a
// client may use a new key before the key exists.
const invalidTTL = time.Second

// unwatchedTTL is how long the cache trusts an answer while the watch of changes is lost. A revoked key must be
// refused within a second; together, unwatchedTTL and the time of a call are less than a second.
const unwatchedTTL = 800 * time.Millisecond

// Cache is a Verifier that remembers the answers of another Verifier, about valid and invalid keys. It makes only
// one call at a time about the same key. It trusts an answer until unwatchedTTL has passed since its call or since
// the last Confirm, whichever is later. A Cache is safe for concurrent use.
type Cache struct {
	from  Verifier
	ttl   time.Duration
	now   func() time.Time
	calls singleflight.Group
	counts

	most      int // maximum number of entries
	mu        sync.RWMutex
	entries   map[string]entry // the keys are hashes of API keys
	epoch     uint64           // number of calls of Forget; a caller never shares a call from an earlier epoch
	confirmed time.Time        // the entries were right at this time
}

type entry struct {
	key   authapi.Key
	err   error // in a remembered entry: nil, or a fault of kind Unauthorized
	asked time.Time
	until time.Time
}

// Cached returns a cache in front of the Verifier `from`. Answers of the cache are never older than `ttl`. A key
// that becomes valid is accepted within a second. The answers take about the given number of bytes at most.
func Cached(from Verifier, ttl time.Duration, now func() time.Time, bytes int64) *Cache {
	most := int(min(max(bytes/entryBytes, 1), maxEntries))
	return &Cache{from: from, ttl: ttl, now: now, most: most, entries: map[string]entry{}}
}

// Confirm informs the cache that Forget was called for every change before the given time.
func (c *Cache) Confirm(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.After(c.confirmed) {
		c.confirmed = at
	}
}

// Forget drops the entries that a change may have made wrong: the entries of all invalid keys, and of the keys
// and brokers that the argument `changed` lists.
func (c *Cache) Forget(changed authapi.WatchKeysResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgets.Add(1)
	c.epoch++
	if changed.All {
		clear(c.entries)
		return
	}
	keys, brokers := set(changed.Keys), set(changed.Brokers)
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

// Recall returns the remembered answer about a key and never calls the verifier. The result `known` is false if no
// trusted answer is remembered.
func (c *Cache) Recall(hash string) (_ authapi.Key, known bool, _ error) {
	e, known, _ := c.lookup(hash)
	if known {
		c.countHit(e)
	}
	return e.key, known, e.err
}

func (c *Cache) VerifyKey(ctx context.Context, hash string) (authapi.Key, error) {
	began := c.now()
	for first := true; ; first = false {
		e, known, epoch := c.lookup(hash)
		if known {
			if first {
				c.countHit(e)
			}
			return e.key, e.err
		}
		if first {
			c.misses.Add(1)
		}
		// The call must not end when its first caller leaves, because others may share it.
		call := c.calls.DoChan(strconv.FormatUint(epoch, 10)+" "+hash, func() (any, error) {
			if e, known, _ := c.lookup(hash); known { // another call has ended since the lookup above
				return e, nil
			}
			return c.ask(context.WithoutCancel(ctx), hash, epoch), nil
		})
		select {
		case result := <-call:
			e := result.Val.(entry)
			if began.Sub(e.asked) < unwatchedTTL { // otherwise we have shared a call that began too long ago
				return e.key, e.err
			}
		case <-ctx.Done():
			return authapi.Key{}, ctx.Err()
		}
	}
}

// ask calls the verifier. It remembers the answer, unless the verifier could not find out whether the key is
// valid.
func (c *Cache) ask(ctx context.Context, hash string, epoch uint64) entry {
	e := entry{asked: c.now()}
	e.key, e.err = c.from.VerifyKey(ctx, hash)
	switch {
	case e.err == nil:
		ttl := c.ttl
		for _, end := range []time.Duration{e.key.GoodFor, e.key.RaisedFor} {
			if end > 0 {
				ttl = min(ttl, end)
			}
		}
		e.until = e.asked.Add(ttl)
		c.remember(hash, epoch, e)
	case fault.KindOf(e.err) == fault.Unauthorized:
		e.until = e.asked.Add(min(c.ttl, invalidTTL))
		c.remember(hash, epoch, e)
	}
	return e
}

// lookup returns the entry of a key, and the current epoch. The result `known` reports whether the entry exists
// and may be trusted.
func (c *Cache) lookup(hash string) (e entry, known bool, epoch uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, known = c.entries[hash]
	now, right := c.now(), e.asked
	if c.confirmed.After(right) {
		right = c.confirmed
	}
	return e, known && now.Before(e.until) && now.Before(right.Add(unwatchedTTL)), c.epoch
}

// remember stores an answer. It drops the answer to a call from an earlier epoch, because the answer may be
// older than the change that ended this epoch.
func (c *Cache) remember(hash string, epoch uint64, e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
	if len(c.entries) >= c.most {
		now := c.now()
		for hash, e := range c.entries {
			if !now.Before(e.until) || e.err != nil {
				delete(c.entries, hash)
			}
		}
		if len(c.entries) >= c.most && e.err == nil { // an operator has made as many keys
			clear(c.entries)
		}
	}
	if len(c.entries) < c.most {
		c.entries[hash] = e
	}
}

// counts has the numbers that the cache shows in its metrics.
type counts struct {
	hits, negatives, misses, forgets atomic.Int64
}

// countHit counts that the cache knew a key, as valid or as invalid.
func (c *counts) countHit(e entry) {
	if e.err != nil {
		c.negatives.Add(1)
		return
	}
	c.hits.Add(1)
}

// Measure adds the metrics of the cache to a meter, until the function `unregister` is called.
func (c *Cache) Measure(meter metric.Meter) (unregister func()) {
	observed := telemetry.Observe(meter)
	lookups := observed.Counter("registry.keys.lookups", "{key}",
		"Looked up API keys by result: hit (valid), negative (invalid) or miss (not remembered).")
	forgets := observed.Counter("registry.keys.forgets", "{change}",
		"Changes of API keys that made the cache forget keys.")
	remembered := observed.Gauge("registry.keys.remembered", "{key}", "API keys in the cache.")
	unwatched := observed.Gauge("registry.keys.unwatched", "",
		"1 while changes of API keys cannot be watched; keys are then verified every second.")
	hit, negative, miss := ofResult("hit"), ofResult("negative"), ofResult("miss")
	return observed.Read(func(_ context.Context, o metric.Observer) {
		o.ObserveInt64(lookups, c.hits.Load(), hit)
		o.ObserveInt64(lookups, c.negatives.Load(), negative)
		o.ObserveInt64(lookups, c.misses.Load(), miss)
		o.ObserveInt64(forgets, c.forgets.Load())
		size, lost := c.state()
		o.ObserveInt64(remembered, int64(size))
		o.ObserveInt64(unwatched, telemetry.Flag(lost))
	})
}

func ofResult(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("result", name))
}

// state returns the number of entries, and whether the watch of changes is lost.
func (c *Cache) state() (size int, lost bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.entries), !c.now().Before(c.confirmed.Add(unwatchedTTL))
}

// Watcher returns the keys that have changed since an earlier answer. It answers as soon as a key changes, or after
// the given time (wait).
type Watcher interface {
	WatchKeys(ctx context.Context, since string, wait time.Duration) (authapi.WatchKeysResponse, error)
}

const (
	watchWait    = 250 * time.Millisecond // how long a call waits for a change; each answer confirms the cache
	watchTimeout = 500 * time.Millisecond // timeout of a call
	watchPause   = 100 * time.Millisecond // pause after a failed call
	watchLeast   = 10 * time.Millisecond  // least time between two calls
	watchLost    = 3 * time.Second        // time without an answer after which a warning is logged
)

// Watch passes all changes on to the cache until ctx is done.
func (c *Cache) Watch(ctx context.Context, from Watcher, log *slog.Logger) {
	since, answered, lost := "", time.Now(), false
	for ctx.Err() == nil {
		asked, began := c.now(), time.Now()
		answer, err := watch(ctx, from, since)
		if err != nil {
			if !lost && ctx.Err() == nil && time.Since(answered) > watchLost {
				lost = true
				log.Warn("cannot watch changes of API keys; every key is verified again within a second", "error", err)
			}
			sleep.For(ctx, watchPause)
			continue
		}
		if lost {
			lost = false
			log.Info("changes of API keys are watched again")
		}
		answered = time.Now()
		changed := answer.At != since
		if changed {
			c.Forget(answer)
			since = answer.At
		}
		c.Confirm(asked)    // the answer was made after the time `asked`, so it has all changes up to that time
		least := watchLeast // the watcher may have another state in each answer
		if !changed {
			least = watchPause // perhaps the watcher does not wait
		}
		sleep.For(ctx, least-answered.Sub(began))
	}
}

func watch(ctx context.Context, from Watcher, since string) (authapi.WatchKeysResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	return from.WatchKeys(ctx, since, watchWait)
}
