package admin

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestAFloodOfNetworksForgetsNoGuesses sends wrong keys from more networks than are remembered. The memory must be
// bounded, a network that sent too many must be refused until its window ends, and the newest one must be too.
func TestAFloodOfNetworksForgetsNoGuesses(t *testing.T) {
	var g guesses
	now := time.Now()
	network := func(n int) netip.Addr { // each one is in a /32 of its own
		var a [16]byte
		binary.BigEndian.PutUint32(a[:], uint32(n)+1<<28)
		return netip.AddrFrom16(a)
	}
	refused := func(from netip.Addr) bool { return fault.KindOf(g.check(from, now)) == fault.TooMany }
	first, last := netip.MustParseAddr("192.0.2.1"), network(3*maxGuessers)
	for range maxGuesses {
		expect.FatalIf(t, refused(first), "the first network is refused too early")
		g.count(first, now)
	}
	for n := range 3 * maxGuessers {
		g.count(network(n), now)
	}
	for range maxGuesses {
		g.count(last, now)
	}
	expect.ErrorIf(t, len(g.windows) > maxGuessers, "got %d windows, want at most %d", len(g.windows), maxGuessers)
	now = now.Add(guessWindow - 1)
	if !refused(first) || !refused(last) {
		t.Errorf("within the window: got refused %t and %t, want both networks", refused(first), refused(last))
	}
	expect.ErrorIf(t, refused(network(0)), "a network with one wrong key is refused")
	now = now.Add(1)
	if refused(first) || refused(last) {
		t.Errorf("after the window: got refused %t and %t, want none", refused(first), refused(last))
	}
	g.count(network(maxGuessers+1), now)
	now = now.Add(time.Second)
	for n := range 10 {
		g.count(network(4*maxGuessers+n), now)
	}
	expect.ErrorIf(t, len(g.windows) > 20, "after the window: got %d windows, want the new ones", len(g.windows))
}
