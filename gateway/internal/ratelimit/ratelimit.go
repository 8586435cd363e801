// Package ratelimit keeps each client to its share of the registry.
//
// Every request counts twice: for the address that it comes from, before
// anything else is looked at, and for the API key that it carries, if it has a
// valid one. The counters are ulule/limiter's, in windows of a second, in the
// memory of this gateway; a store that several gateways share takes its place
// behind limiter.Store.
package ratelimit

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ulule/limiter/v3"

	"asset-registry/shared/fault"
)

// Class is what a request is for.
type Class string

// The classes of requests.
const (
	List  Class = "list"  // pages of the feed
	Read  Class = "read"  // single assets
	Write Class = "write" // all that changes something
)

// Rates are requests per second by class; 0 is no limit.
type Rates map[Class]int64

// Limiter counts requests. It is safe for concurrent use.
type Limiter struct {
	store     limiter.Store
	addresses Rates
	keys      Rates
	now       func() time.Time
}

// New returns a limiter that counts in store: addresses holds for each client
// address, keys for each API key.
func New(store limiter.Store, addresses, keys Rates, now func() time.Time) *Limiter {
	return &Limiter{store: store, addresses: addresses, keys: keys, now: now}
}

// Address counts a request of a client address. Over the limit it is a fault
// of kind TooMany.
func (l *Limiter) Address(c *gin.Context, class Class, client netip.Addr) error {
	return l.count(c, l.addresses, class, "address:", site(client))
}

// Key counts a request with an API key. Over the limit it is a fault of kind TooMany.
func (l *Limiter) Key(c *gin.Context, class Class, keyID string) error {
	return l.count(c, l.keys, class, "key:", keyID)
}

func (l *Limiter) count(c *gin.Context, rates Rates, class Class, kind, who string) error {
	limit := rates[class]
	if limit == 0 {
		return nil
	}
	state, err := l.store.Get(c.Request.Context(), kind+string(class)+":"+who, limiter.Rate{Period: time.Second, Limit: limit})
	if err != nil {
		return fmt.Errorf("count request: %w", err)
	}
	h := c.Writer.Header()
	h.Set("X-RateLimit-Limit", strconv.FormatInt(state.Limit, 10))
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(state.Remaining, 10))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(state.Reset, 10))
	if !state.Reached {
		return nil
	}
	return &fault.Error{
		Kind:       fault.TooMany,
		RetryAfter: max(time.Second, time.Unix(state.Reset, 0).Sub(l.now())),
		Details: []fault.Detail{{
			Location:    fault.Header,
			Name:        "X-RateLimit-Limit",
			Description: fmt.Sprintf("Too many requests: at most %d %s requests a second; wait as Retry-After says.", limit, class),
		}},
	}
}
