package ukrainian

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"asset-registry/shared/testing/expect"
)

// long are texts whose words have many characters, before or after they get their normal form.
var long = map[string]string{
	"letters":                   strings.Repeat("y", 200_000),
	"vowels":                    strings.Repeat("a", 20_000),
	"Ukrainian letters":         strings.Repeat("ї", 20_000),
	"letters that look alike":   strings.Repeat("oо", 10_000),
	"apostrophes":               strings.Repeat("b'", 10_000),
	"other apostrophes":         strings.Repeat("bʼ", 10_000),
	"marks":                     "е" + strings.Repeat("\u0300", 20_000),
	"marks of many classes":     "е" + strings.Repeat("\u0300\u0316\u0345", 70_000),
	"letters with marks":        strings.Repeat("и\u0306", 10_000),
	"signs of eighteen letters": strings.Repeat("\ufdfa ", 70_000),
	"signs of four letters":     strings.Repeat("㌀", 70_000),
	"ligatures":                 strings.Repeat("ﬃ", 70_000),
	"digits":                    strings.Repeat("1", 20_000),
	"digits in circles":         strings.Repeat("①", 70_000),
	"soft hyphens":              "а" + strings.Repeat("\u00ad", 10_000) + "б",
	"a code":                    "1" + strings.Repeat("-a", 10_000),
	"a name with hyphens":       strings.Repeat("а-", 10_000),
	"Chinese":                   strings.Repeat("漢", 70_000),
	"Hangul letters":            strings.Repeat("각", 70_000),
	"no text":                   strings.Repeat("\xff", 20_000),
	"signs":                     strings.Repeat("-", 20_000),
	"no words":                  strings.Repeat("!", 20_000),
	"dotted capitals":           strings.Repeat("İ", 10_000),
}

// TestNoWordIsLong counts the characters that are processed at the same time. Their
// number must be bounded, whatever the text.
func TestNoWordIsLong(t *testing.T) {
	const mostNormal = 20 * pieceMost // normal makes up to 18 letters of one character
	for name, text := range long {
		t.Run(name, func(t *testing.T) { verifyBounds(t, text, mostNormal) })
	}
}

func verifyBounds(t *testing.T, text string, mostNormal int) {
	t.Helper()
	for piece := range pieces(text) {
		if got := utf8.RuneCountInString(piece); got > pieceMost {
			t.Fatalf("got a piece of %d characters, want at most %d", got, pieceMost)
		}
		if got := utf8.RuneCountInString(normal(piece)); got > mostNormal {
			t.Fatalf("got %d characters in their normal form, want at most %d", got, mostNormal)
		}
	}
	words := 0
	for w := range split(text) {
		words++
		for _, part := range w.parts {
			if got := utf8.RuneCountInString(part); got > maxWord {
				t.Fatalf("got a word of %d characters, want at most %d", got, maxWord)
			}
			if words > 200 { // the keys of 200 words are enough
				continue
			}
			for _, key := range keys(part) {
				if got := utf8.RuneCountInString(key); got > maxWord+2 {
					t.Fatalf("got a key of %d characters, want at most %d", got, maxWord+2)
				}
			}
		}
	}
	if got := utf8.RuneCountInString(Place(text)); got > maxPlace {
		t.Fatalf("got a place of %d characters, want at most %d", got, maxPlace)
	}
}

func TestLongWordsMeetThemselves(t *testing.T) {
	for name, text := range long {
		t.Run(name, func(t *testing.T) {
			asked := Cut(text, 256)
			if len(Ask(asked)) > 0 && !meets(asked, text) {
				t.Errorf("got no %.60q in the text that begins with it", asked)
			}
		})
	}
	if !meets(strings.Repeat("ж", 60)+" після", "до "+strings.Repeat("ж", 70)+" після") {
		t.Error("got no word after a long one, want it found")
	}
	if composed, apart := strings.Repeat("й", 60), strings.Repeat("и\u0306", 60); !meets(composed, apart) {
		t.Error("got no long word whose letters are written apart, want it found")
	}
}

func TestTheWordsOfATextEndAtTheirNumber(t *testing.T) {
	text := strings.Repeat("а1 Івано-Франківськ UA-1 ", 1000)
	for _, most := range []int{0, 1, 10, 999} {
		var keys []string
		if got := Each(text, most, func(key string) { keys = append(keys, key) }); got != most {
			t.Errorf("at most %d words: got %d", most, got)
		}
		expect.ErrorIf(t, most == 0 && len(keys) > 0, "at most 0 words: got the keys %q", keys)
	}
	expect.Equal(t, Each("один два", 10, func(string) {}), 2, "words")
}

func TestAQuestionHasWords(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "?! -": 0, "один два": 2, "Івано-Франківськ": 2, "04121000-2": 1, "а.б.в": 3, "\ufdfa": 4, "120,5 м²": 2, "№ 145": 1, "12х24м": 3, "Т-150К": 1,
		strings.Repeat("\ufdfa ", 100): 400,
	} {
		if got := len(Words(text)); got != want {
			t.Errorf("%.40q: got %d words, want %d", text, got, want)
		}
	}
}

// TestPiecesAreTheText makes a long text: a sentence that is repeated a hundred times. The words of the text must be
// the words of the sentence, a hundred times.
func TestPiecesAreTheText(t *testing.T) {
	const sentence = "Нежитлове приміщення «Ганок» №5 — об’єкт, м. Івано-Франківськ (04121000-2); e\u0301té "
	var got, want []string
	one := []string{}
	Each(sentence, 1000, func(key string) { one = append(one, key) })
	for range 100 {
		want = append(want, one...)
	}
	Each(strings.Repeat(sentence, 100), 100_000, func(key string) { got = append(got, key) })
	if !slices.Equal(got, want) {
		t.Errorf("got %d keys, want the %d keys of each sentence a hundred times", len(got), len(want))
	}
}
