package meaning

import (
	_ "embed"
	"slices"
	"strings"
	"unicode/utf8"

	"asset-registry/shared/ukrainian"
)

// smallWords do not decide what a question means: prepositions, words about buying and selling, kinds of streets
// and places, and words before numbers. They are in their normal form.
var smallWords = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(smallList) {
		set[word] = true
	}
	return set
}()

//go:embed small.txt
var smallList string

// isSmall reports whether a word is a unit, one of smallWords, or a single letter, such as the letter of a house.
func isSmall(a ukrainian.Asked) bool {
	return a.IsUnit || !a.HasDigit && (smallWords[a.Text] || utf8.RuneCountInString(a.Text) == 1)
}

// areSmall reports whether a text has only small words.
func areSmall(text string) bool {
	return !slices.ContainsFunc(ukrainian.Ask(text), func(a ukrainian.Asked) bool { return !isSmall(a) })
}
