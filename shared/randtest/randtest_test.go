package randtest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestASeedRepeatsEachPlace asks for numbers at two places, and then, with the same seed, at only one of
// them. This place must get the same numbers again.
func TestASeedRepeatsEachPlace(t *testing.T) {
	restart := func(seed uint64) {
		all.seed, all.places = seed, map[string]*rand.Rand{}
	}
	defer restart(0)
	first := func() uint64 { return Uint64() }
	second := func() uint64 { return uint64(N(time.Hour)) + uint64(IntN(1000)) }
	draw := func(from ...func() uint64) (drawn []uint64) {
		for range 4 {
			for _, next := range from {
				drawn = append(drawn, next())
			}
		}
		return drawn
	}
	restart(7)
	both := draw(first, second)
	restart(7)
	alone := draw(second)
	for i, got := range alone {
		if want := both[2*i+1]; got != want {
			t.Errorf("number %d of a place: got %d alone, want %d as with another", i, got, want)
		}
	}
	restart(7)
	if got := draw(first, second); !slices.Equal(got, both) {
		t.Errorf("the same seed: got %d, want %d", got, both)
	}
	restart(8)
	if got := draw(first, second); slices.Equal(got, both) {
		t.Errorf("another seed: got %d again, want others", got)
	}
	expect.ErrorIf(t, alone[0] == alone[1], "got %d, want numbers that differ", alone)
}
