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
	maxGuessers = 10_000 // networks and prefixes that are remembered; each takes about 150 bytes
)

// noKey is the hash of a request without a key. Such a request is not a guess.
var noKey = authapi.Hash("")

// guesses limits how many wrong keys an address may send to the admin API. Nobody can guess a key, but without a
// limit the attempts would be a load on the store. Each auth service counts separately. No network is forgotten before
// its window ends. If there is no room for another one, it counts with others of its prefix; if there is no room for
// prefixes either, it counts with all such networks.
type guesses struct {
	mu      sync.Mutex
	windows map[netip.Prefix]*guessing
	swept   time.Time // when the windows that had ended were removed
}

// guessing has the wrong keys of a network since the begin of its window.
type guessing struct {
	begun time.Time
	sent  int
}

// keysOf returns the keys under which the wrong keys of an address may count: its network, its prefix, and the key of
// all networks.
func keysOf(from netip.Addr) [3]netip.Prefix {
	network := clientaddr.Network(from)
	return [3]netip.Prefix{netip.PrefixFrom(network, network.BitLen()), clientaddr.Prefix(network), {}}
}

// of returns the counter for the network of an address. The caller holds the lock.
func (g *guesses) of(from netip.Addr, now time.Time) *guessing {
	most := maxGuessers * 3 / 4 // the others are for prefixes
	for _, key := range keysOf(from) {
		if w := g.windows[key]; w != nil {
			if now.Sub(w.begun).Abs() >= guessWindow {
				*w = guessing{begun: now}
			}
			return w
		}
		if len(g.windows) >= most {
			g.sweep(now)
		}
		if len(g.windows) < most || key == (netip.Prefix{}) {
			if g.windows == nil {
				g.windows = map[netip.Prefix]*guessing{}
			}
			g.windows[key] = &guessing{begun: now}
			return g.windows[key]
		}
		most = maxGuessers - 1
	}
	return nil // not reached: the last key always has room
}

// sweep removes the windows that have ended, once a second at most.
func (g *guesses) sweep(now time.Time) {
	if now.Sub(g.swept).Abs() < time.Second {
		return
	}
	g.swept = now
	for key, w := range g.windows {
		if now.Sub(w.begun).Abs() >= guessWindow {
			delete(g.windows, key)
		}
	}
}

// check returns a fault of kind TooMany for an address that sent maxGuesses wrong
// keys in its current window.
func (g *guesses) check(from netip.Addr, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range keysOf(from) {
		if w := g.windows[key]; w != nil && now.Sub(w.begun).Abs() < guessWindow {
			return w.refuse(now)
		}
	}
	return nil
}

func (w *guessing) refuse(now time.Time) error {
	if w.sent < maxGuesses {
		return nil
	}
	left := min(w.begun.Add(guessWindow).Sub(now), guessWindow)
	seconds := (left + time.Second - 1) / time.Second
	refused := fault.New(fault.TooMany, fault.Header, "Authorization",
		"Too many wrong keys came from your address; wait %d s.", seconds)
	refused.RetryAfter = left
	return refused
}

// count counts a wrong key.
func (g *guesses) count(from netip.Addr, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(from, now).sent++
}
