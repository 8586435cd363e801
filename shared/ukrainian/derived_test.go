package ukrainian

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var showApart = flag.Bool("apart", false, "show the derived pairs that do not meet")

// leastDerived is the share of the derived pairs that must meet.
const leastDerived = 0.98

// TestDerivedWordsMeet searches for nouns in texts that have the adjective made of the noun, in four forms. The
// pairs in testdata follow a rule; the others are in derivedList.
func TestDerivedWordsMeet(t *testing.T) {
	byRule, err := os.ReadFile("testdata/derived.txt")
	if err != nil {
		t.Fatal(err)
	}
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
