package ukrainian

import (
	_ "embed"
	"strings"
	"sync"
)

// derivedList has nouns and the stems of adjectives that are made of them, one pair in each line. The variable
// `derivations` has no rule for these pairs, because such a rule would join too many other words.
//
//go:embed derived.txt
var derivedList string

// nounsOf returns a map from the stem of an adjective to its noun.
var nounsOf = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(derivedList) {
		noun, adjective, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[bareWord(adjective)] = bareWord(noun)
	}
	return all
})

// bareWord returns a word in the form from which the function `stems` cuts the endings.
func bareWord(word string) string { return strings.ReplaceAll(fold(word), "'", "") }
