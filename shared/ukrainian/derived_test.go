package ukrainian

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

var showApart = flag.Bool("apart", false, "show the derived pairs that do not meet")

// leastDerived is the share of the derived pairs that must meet.
const leastDerived = 0.98

// TestDerivedWordsMeet takes pairs of a noun and the adjective that is made of it. It searches for the noun in texts
// with four forms of the adjective. Most searches must find the text (leastDerived). The pairs in testdata follow a
// rule, and the other pairs are in derivedList.
func TestDerivedWordsMeet(t *testing.T) {
	byRule, err := os.ReadFile("testdata/derived.txt")
	expect.OK(t, err)
	pairs, met := 0, 0
	for line := range strings.Lines(derivedList + string(byRule)) {
		noun, adjective, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, ending := range []string{"ий", "а", "ого", "их"} {
			meets := false
			Each(adjective+ending, 1, func(key string) {
				meets = meets || slices.Contains(Words(noun)[0], key)
			})
			if pairs++; meets {
				met++
			} else if *showApart {
				t.Logf("%s and %s%s do not meet", noun, adjective, ending)
			}
		}
	}
	if got := float64(met) / float64(max(pairs, 1)); pairs < 500 || got < leastDerived {
		t.Errorf("got %.3f of %d pairs that meet, want %.2f of at least 500", got, pairs, leastDerived)
	}
	t.Logf("%d of %d derived pairs meet", met, pairs)
}
