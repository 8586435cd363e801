package admin

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/fault"
)

// TestAFloodOfNetworksDoesNotFillTheMemory sends wrong keys from very many networks. The first wrong key of a
// network begins a window in the store of a limiter. No store may have more than maxGuessers windows, so that it
// remembers no more networks than this.
func TestAFloodOfNetworksDoesNotFillTheMemory(t *testing.T) {
	var g guesses
	stores := map[limiter.Store]int{}
	var from [16]byte
	const networks = 3*maxGuessers + 7
	for i := range networks {
		binary.BigEndian.PutUint32(from[:], uint32(i)+1) // each address is in a different /64
		for range 2 {
			if err := g.count(t.Context(), netip.AddrFrom16(from)); err != nil {
				t.Fatal(err)
			}
		}
		stores[g.limiter.Store]++
		if g.windows > maxGuessers {
			t.Fatalf("got %d networks in a store, want at most %d", g.windows, maxGuessers)
		}
	}
	if len(stores) != 4 {
		t.Errorf("got %d stores for %d networks, want 4", len(stores), networks)
	}
	for range maxGuesses {
		if err := g.count(t.Context(), netip.AddrFrom16(from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.check(t.Context(), netip.AddrFrom16(from)); fault.KindOf(err) != fault.TooMany {
		t.Errorf("too many wrong keys after the flood: got %v, want a fault of kind TooMany", err)
	}
}
