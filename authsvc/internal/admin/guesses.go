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
	maxGuesses  = 30 // wrong keys from one network within guessWindow
	guessWindow = time.Minute
	maxGuessers = 10_000 // networks in memory
)

// noKey is the hash of a request without a key. Such a request is not a guess.
var noKey = authapi.Hash("")

// guesses bounds the wrong keys that an address may send to the admin API. Nobody
// can guess a key; the bound keeps the load of attempts away from the store. Each
// auth service counts on its own.
type guesses struct {
	mu   sync.Mutex
	from map[netip.Addr]guessed // by clientaddr.Network
}

type guessed struct {
	since time.Time
	wrong int
}

// check returns a fault of kind TooMany for an address that sent maxGuesses wrong
// keys in its current window.
func (g *guesses) check(from netip.Addr, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.from[clientaddr.Network(from)]
	left := guessWindow - now.Sub(was.since)
	if was.wrong < maxGuesses || left <= 0 {
		return nil
	}
	seconds := (left + time.Second - 1) / time.Second
	refused := fault.New(fault.TooMany, fault.Header, "Authorization",
		"Too many wrong keys came from your address; wait %d s.", seconds)
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
