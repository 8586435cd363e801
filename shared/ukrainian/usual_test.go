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
		expect.Equal(t, isLetter(r), unicode.IsLetter(r), "%q (%U), letter", r, r)
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
			expect.Equal(t, strings.Join(m.keys(word), " "), strings.Join(keys(word), " "), "%s, keys", word)
		}
	}
	for n := range mostRemembered + 10 {
		m.keys(strings.Repeat("а", n%40) + string(rune('а'+n%32)) + string(rune(0x4e00+n)))
		expect.FatalIf(t, len(m.found) > mostRemembered, "got %d words, want at most %d", len(m.found), mostRemembered)
	}
}

func BenchmarkEach(b *testing.B) {
	const text = "Нежитлове приміщення першого поверху, окремий вхід; вул. Банкова, 11, м. Київ, Україна (04121000-2)"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Each(text, 1000, func(string) {})
	}
}

// TestWordsTakeFewAllocations has texts of words that the memo knows. Words without digits must take
// little more than one allocation each, and numbers few more, because an index is built of such texts.
func TestWordsTakeFewAllocations(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		words int
		most  float64
	}{
		"words":    {"Нежитлове приміщення першого поверху; окремий вхід, вулиця Банкова, Київ «Україна» ", 10, 14},
		"numbers":  {"будинок 11 площею 36,6 кв.м та 25.11.2019 ", 7, 45},
		"a colon":  {"Адреса: місто Львів, поверх: перший ", 5, 7},
		"a comma":  {"сад, 5, 6, ліс ", 4, 6},
		"one code": {"автомобіль ВАЗ-21074 білий ", 3, 20},
	} {
		const times = 20
		text := strings.Repeat(c.text, times)
		got := testing.AllocsPerRun(10, func() { Each(text, 10_000, func(string) {}) }) / times
		if got > c.most {
			t.Errorf("%s: got %.1f allocations for %d words, want at most %.1f", name, got, c.words, c.most)
		}
	}
}
