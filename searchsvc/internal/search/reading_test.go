package search

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// Promises: cursor-words
func TestACursorCarriesTheWords(t *testing.T) {
	c := Cursor{Sort: ByRelevance, Key: 7, At: 8, Reading: Reading{Steps: []Step{ByNearest, ByMissing}, Words: []Word{
		{Text: "ексковатор", By: []string{"=екскаватор"}, Said: "екскаватор"}, {Text: "суми", Fixed: true}, {Text: "у", Out: true},
	}}}
	got := expect.Get(ParseCursor(c.String()))(t)
	expect.NoDiff(t, cmp.Diff(c, got), "the cursor differs")
}

func TestACursorCarriesTheWeights(t *testing.T) {
	for _, weights := range [][]int64{nil, {1}, {1, 65, 9}, slices.Repeat([]int64{65}, MaxWeights)} {
		c := Cursor{Sort: ByRelevance, Key: 1 << 40, At: 1764000000000000, Weights: weights}
		got, err := ParseCursor(c.String())
		if diff := cmp.Diff(c, got); err != nil || diff != "" {
			t.Errorf("got %v; the cursor differs (-want +got):\n%s", err, diff)
		}
	}
	for _, weights := range [][]int64{{0}, {-1}, {66}, slices.Repeat([]int64{1}, MaxWeights+1)} {
		expect.FailsOf(t, "the weights %v", weights)(ParseCursor(Cursor{Sort: ByRelevance, Weights: weights}.String()))
	}
}

// TestTheMarksOfFormerVersionsAreRead parses cursors that earlier versions wrote, because old links to pages may
// have them (docs/versions.md).
func TestTheMarksOfFormerVersionsAreRead(t *testing.T) {
	const at = 1795000000000001
	words := Reading{Steps: []Step{ByNearest}, Words: []Word{{Text: "гаражж", By: []string{"=гараж"}, Said: "гараж"}}}
	for text, want := range map[string]Cursor{
		"LW1vZGlmaWVkLDAsaG85dm02aDFqNQ":  {Sort: NewestFirst, At: at},
		"PC1hcmVhLDduYzFjLGhvOXZtNmgxajU": {Sort: LargestFirst, Back: true, Key: 12_846_000, At: at},
		"cmVsZXZhbmNlLDE2LGhvOXZtNmgxajUsMy5oLg.eyJzIjpbIm5lYXJlc3QiXSwidyI6W3sidCI6ItCz0LDRgNCw0LbQtiIsImIiOlsiPdCz0LDRgNCw" +
			"0LYiXSwiZCI6ItCz0LDRgNCw0LYifV19": {Sort: ByRelevance, Key: 42, At: at, Weights: []int64{3, 17}, Reading: words},
	} {
		got, err := ParseCursor(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: got %v; the mark differs (-want +got):\n%s", text, err, diff)
		}
	}
}

// encoded returns a text in the encoding of a cursor.
func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestACursorOfOthersIsRefused(t *testing.T) {
	good := Cursor{Sort: ByRelevance}.String()
	long := Reading{Steps: []Step{ByNearest}, Words: make([]Word, MaxWords+1)}
	for name, text := range map[string]string{
		"no base64":    good + ".!",
		"no JSON":      good + ".AAAA",
		"many words":   good + "." + long.text(),
		"no word":      good + "." + Reading{Steps: []Step{BySmall}, Words: []Word{{Text: "а", Out: true}}}.text(),
		"no step":      good + "." + Reading{Words: []Word{{Text: "а"}}}.text(),
		"another step": good + "." + Reading{Steps: []Step{"all"}, Words: []Word{{Text: "а"}}}.text(),
		"a long word":  good + "." + Reading{Steps: []Step{ByNearest}, Words: []Word{{Text: strings.Repeat("а", MaxPhrase+1)}}}.text(),
		"a sign among phrases": good + "." + Reading{
			Steps: []Step{ByNearest}, Words: []Word{{By: []string{"а", Beginning}}}}.text(),
		"many synonyms": good + "." + Reading{
			Steps: []Step{BySynonym}, Words: slices.Repeat([]Word{{By: []string{"а", "б"}}}, 1+MaxOthers/2)}.text(),
		"long synonyms": good + "." + Reading{Steps: []Step{BySynonym}, Words: slices.Repeat(
			[]Word{{By: []string{strings.Repeat("а", 50), strings.Repeat("а", 50)}}}, 1+MaxLetters/100)}.text(),
		"many phrases": good + "." + Reading{Steps: []Step{ByNearest}, Words: []Word{{By: make([]string, maxBy+1)}}}.text(),
		"a NUL":        good + "." + Reading{Steps: []Step{ByNearest}, Words: []Word{{Text: "а\x00"}}}.text(),
		"long words": good + "." + Reading{Steps: []Step{ByNearest}, Words: slices.Repeat(
			[]Word{{Text: strings.Repeat("а", MaxPhrase), Said: strings.Repeat("а", MaxPhrase)}}, MaxWords)}.text(),
		"a long order":    Cursor{Sort: Sort(strings.Repeat("x", maxCursor))}.String(),
		"a sign of a key": encoded(string(ByRelevance) + ",+1,1"),
		"a leading zero":  encoded(string(ByRelevance) + ",1,01"),
	} {
		expect.FailsOf(t, "%s", name)(ParseCursor(text))
	}
}
