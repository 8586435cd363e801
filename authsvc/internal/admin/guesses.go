package admin

import (
	"net/netip"
	"sync"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

const (
	maxGuesses  = 30 // wrong keys from one address within guessWindow
	guessWindow = time.Minute
	maxGuessers = 10_000 // addresses that are remembered
	ownBits     = 64     // of an IPv6 address tell whose it is; the rest its owner chooses
)

// noKey is what a request without a key has in its place: no guess.
var noKey = authapi.Hash("")

// guesses bounds how many wrong keys for the admin API an address may send. No
// key can be guessed; this is for who tries nonetheless, so that the store need
// not answer them all. Each auth service counts by itself.
type guesses struct {
	mu   sync.Mutex
	from map[netip.Addr]guessed
}

type guessed struct {
	since time.Time
	wrong int
}

// check refuses an address for the rest of its window, once it has used it up.
func (g *guesses) check(from netip.Addr, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.from[guesser(from)]
	left := guessWindow - now.Sub(was.since)
	if was.wrong < maxGuesses || left <= 0 {
		return nil
	}
	refused := fault.New(fault.TooMany, fault.Header, "Authorization", "Too many wrong keys came from your address; wait a minute.")
	refused.RetryAfter = left
	return refused
}

func (g *guesses) count(from netip.Addr, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.from == nil || len(g.from) >= maxGuessers {
		g.from = map[netip.Addr]guessed{}
	}
	was := g.from[guesser(from)]
	if now.Sub(was.since) >= guessWindow {
		was = guessed{since: now}
	}
	was.wrong++
	g.from[guesser(from)] = was
}

func guesser(from netip.Addr) netip.Addr {
	if from = from.Unmap(); from.Is4() {
		return from
	}
	network, err := from.WithZone("").Prefix(ownBits)
	if err != nil { // no address at all
		return from
	}
	return network.Addr()
}
