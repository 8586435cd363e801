package admin

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
)

const (
	maxGuesses  = 30 // wrong keys from one network within guessWindow
	guessWindow = time.Minute
	maxGuessers = 10_000 // networks that are remembered
)

// noKey is the hash of a request without a key. Such a request is not a guess.
var noKey = authapi.Hash("")

// guesses limits how many wrong keys an address may send to the admin API. Nobody can guess a key, but without a
// limit the attempts would be a load on the store. Each auth service counts separately. A library keeps the counts
// in memory, and never forgets a network. A limiter that has begun maxGuessers windows is therefore replaced by a new,
// empty one.
type guesses struct {
	mu      sync.Mutex
	limiter *limiter.Limiter // has a count for each clientaddr.Network; nil: nothing is counted yet
	windows int              // number of windows that the limiter has begun; it has at most this many networks
}

// current returns the limiter. The limiter has no goroutine that removes old networks, because nobody could
// stop such a goroutine.
func (g *guesses) current() *limiter.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limiter == nil || g.windows >= maxGuessers {
		store := memory.NewStoreWithOptions(limiter.StoreOptions{})
		g.limiter, g.windows = limiter.New(store, limiter.Rate{Period: guessWindow, Limit: maxGuesses}), 0
	}
	return g.limiter
}

// check returns a fault of kind TooMany for an address that sent maxGuesses wrong
// keys in its current window.
func (g *guesses) check(ctx context.Context, from netip.Addr) error {
	counted, err := g.current().Peek(ctx, clientaddr.Network(from).String())
	if err != nil || counted.Remaining > 0 {
		return err
	}
	// Reset is rounded down to a second, so one second is added. Otherwise a client could wait too short a time.
	left := min(time.Until(time.Unix(counted.Reset+1, 0)), guessWindow)
	seconds := (left + time.Second - 1) / time.Second
	refused := fault.New(fault.TooMany, fault.Header, "Authorization",
		"Too many wrong keys came from your address; wait %d s.", seconds)
	refused.RetryAfter = left
	return refused
}

// count counts a wrong key.
func (g *guesses) count(ctx context.Context, from netip.Addr) error {
	counted, err := g.current().Increment(ctx, clientaddr.Network(from).String(), 1)
	if err != nil {
		return err
	}
	if counted.Remaining == maxGuesses-1 {
		g.mu.Lock()
		g.windows++
		g.mu.Unlock()
	}
	return nil
}
