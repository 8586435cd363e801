package admin

import (
	"net/netip"
	"sync"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/clientaddr"
	"asset-registry/shared/fault"
)

const (
	maxGuesses  = 30 // wrong keys from one address within guessWindow
	guessWindow = time.Minute
	maxGuessers = 10_000 // addresses that are remembered
)

// noKey is what a request without a key has in its place: no guess.
var noKey = authapi.Hash("")

// guesses bounds how many wrong keys for the admin API an address may send. No
// key can be guessed; this is for who tries nonetheless, so that the store need
// not answer them all. Each auth service counts by itself.
type guesses struct {
	mu   sync.Mutex
	from map[netip.Addr]guessed // by site
}

type guessed struct {
	since time.Time
	wrong int
}

// check refuses an address for the rest of its window, once it has used it up.
func (g *guesses) check(from netip.Addr, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.from[clientaddr.Network(from)]
	left := guessWindow - now.Sub(was.since)
	if was.wrong < maxGuesses || left <= 0 {
		return nil
	}
	seconds := (left + time.Second - 1) / time.Second
	refused := fault.New(fault.TooMany, fault.Header, "Authorization", "Too many wrong keys came from your address; wait %d s.", seconds)
	refused.RetryAfter = left
	return refused
}

func (g *guesses) count(from netip.Addr, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.from == nil || len(g.from) >= maxGuessers {
		g.from = map[netip.Addr]guessed{}
	}
	was := g.from[clientaddr.Network(from)]
	if now.Sub(was.since) >= guessWindow {
		was = guessed{since: now}
	}
	was.wrong++
	g.from[clientaddr.Network(from)] = was
}
