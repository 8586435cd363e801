package ukrainian

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"asset-registry/shared/testing/expect"
)

// TestUsualCharactersAreNormal compares the assumptions of the faster code with Unicode's tables.
func TestUsualCharactersAreNormal(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		text := string(r)
		if isUsual(text) && (norm.NFKC.String(text) != text || apostrophes.Replace(text) != text) {
			t.Errorf("got %q (%U) usual, want not: it has another form", r, r)
		}
		if isUsual(text) && norm.NFKC.String("е"+text) != "е"+text {
			t.Errorf("got %q (%U) usual, want not: it joins the letter before", r, r)
		}
		if got, want := isLetter(r), unicode.IsLetter(r); got != want {
			t.Errorf("%q (%U): got letter %t, want %t", r, r, got, want)
		}
		want := otherScript
		switch {
		case unicode.Is(unicode.Cyrillic, r):
			want = cyrillic
		case unicode.Is(unicode.Latin, r):
			want = latin
		}
		expect.Equal(t, scriptOfRune(r), want, "%q (%U): script", r, r)
	}
}

// TestTheMemoChangesNoKeys gets the keys of words more than once, and of more words than a memo remembers.
// A word must have the same keys each time.
func TestTheMemoChangesNoKeys(t *testing.T) {
	var m memo
	for range 3 {
		for _, word := range strings.Fields("будинок приміщення ночі warehouses 04121000 ’ ь земля") {
			if got, want := strings.Join(m.keys(word), " "), strings.Join(keys(word), " "); got != want {
				t.Errorf("%s: got keys %q, want %q", word, got, want)
			}
		}
	}
	for n := range mostRemembered + 10 {
		m.keys(strings.Repeat("а", n%40) + string(rune('а'+n%32)) + string(rune(0x4e00+n)))
		if len(m.found) > mostRemembered {
			t.Fatalf("got %d words, want at most %d", len(m.found), mostRemembered)
		}
	}
}

func BenchmarkEach(b *testing.B) {
	const text = "Нежитлове приміщення першого поверху, окремий вхід; вул. Банкова, 11, м. Київ, Україна (04121000-2)"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Each(text, 1000, func(string) {})
	}
}
