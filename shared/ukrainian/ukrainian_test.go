package ukrainian

import (
	"asset-registry/shared/testing/expect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// meets reports whether a text has each word of a question.
func meets(question, text string) bool {
	var has []string
	Each(text, 1000, func(key string) { has = append(has, key) })
	hasOne := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(has, key) })
	}
	asked := Ask(question)
	for _, a := range asked {
		if !a.IsIn(hasOne) {
			return false
		}
	}
	return len(asked) > 0
}

// Promises: search-letters
func TestQuestionsMeetTexts(t *testing.T) {
	for _, c := range []struct {
		name, question, text string
		want                 bool
	}{
		{"the same word", "будинок", "Будинок", true},
		{"another case", "нежитлових приміщень", "нежитлове приміщення 240 м²", true},
		{"the plural", "земельні ділянки", "земельної ділянки", true},
		{"a short word", "ліс", "у лісі", true},
		{"a vowel that comes and goes", "ніч", "ночі", true},
		{"a typographic apostrophe", "об’єкт", "об'єкта", true},
		{"a modifier letter as apostrophe", "обʼєкт", "Об'єкт", true},
		{"ґ for г", "ґанок", "ганок", true},
		{"Latin letters that look alike", "Kиїв", "м. Київ", true},
		{"a code", "UA-AR-2026", "лот UA-AR-2026", true},
		{"a part of a code", "2026", "лот UA-AR-2026", true},
		{"parts of a name with a hyphen", "Франківськ", "Івано-Франківськ", true},
		{"English", "houses", "a house near the lakes", true},
		{"accents that are written apart", "кафе\u0301", "кафе", true},
		{"two words, one of them missing", "будинок ставок", "будинок", false},
		{"another word with the same beginning", "лісок", "лісник", false},
		{"an empty question", "", "будинок", false},
		{"marks only", "?! -", "будинок", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, meets(c.question, c.text), c.want, "%q in %q", c.question, c.text)
		})
	}
}

// Promises: search-letters
func TestAllApostrophesAreOne(t *testing.T) {
	signs := []string{"'", "ʼ", "ʻ", "ʹ", "’", "‘", "`", "´", "′", "", `"`, "*", "“", "”"}
	for _, asked := range signs {
		for _, written := range signs {
			question, text := "об"+asked+"єкти", "кам"+written+"яний об"+written+"єкт"
			if !meets(question, text) {
				t.Errorf("got no %q in %q, want it there; keys %q", question, text, Words(question))
			}
		}
	}
}

// TestASignMayBeAnApostrophe has all letters between which a quotation mark or an asterisk may be an apostrophe. The sign
// may also end a word, so both readings are found.
// Promises: search-letters
func TestASignMayBeAnApostrophe(t *testing.T) {
	for before := range strings.SplitSeq("б в г ґ д ж з к л м н п р с т ф х ц ч ш щ", " ") {
		for after := range strings.SplitSeq("я ю є ї", " ") {
			for _, sign := range []string{`"`, "*", "”"} {
				word := "Ку" + before + sign + after + "лас"
				for _, question := range []string{"ку" + before + "'" + after + "лас", word, after + "лас", "ку" + before, strings.ToUpper(word)} {
					if !meets(question, "опис "+word+", опис") || !meets(word, word) {
						t.Errorf("got no %q in %q, want it there; keys %q", question, word, Words(question))
					}
				}
				if !meets(word, "ку"+before+"’"+after+"лас") || !meets(word, "ку"+before+" "+after+"лас") {
					t.Errorf("got no %q in its readings; keys %q", word, Words(word))
				}
			}
		}
	}
	for question, text := range map[string]string{
		"явір": `ТОВ"Явір"`, "юність": `ДП"Юність"`, "агро": `ТОВ"Агро"`, "об'єкт": `Об"єкт`, "об’єктів": "об*єкт", `ТОВ"Явір"`: "ТОВ «Явір»",
		"тов": `ТОВ"Явір"`, "п'яний": `п"яного`, "подвір'я": `подвір"я`,
	} {
		expect.ErrorIf(t, !meets(question, text), "got no %q in %q, want it there", question, text)
	}
	for question, text := range map[string]string{"об'агро": `об"агро`, "об'єкт": `об" єкт`, "а'я": `а"я`, "обв": `об"в`} {
		expect.ErrorIf(t, meets(question, text), "got %q in %q, want it not there", question, text)
	}
}

// FuzzWords splits arbitrary texts into words. A question with the words of a text must find the text. Each key must
// be valid UTF-8. Keys may have any length here, because package index cuts them.
func FuzzWords(f *testing.F) {
	for _, text := range []string{
		"Нежитлове приміщення", "об’єкт ґанок", "UA-EDR-00032945", "Kиїв", "houses' ends", "\xff\xfe", "é́́", "a-b--c", "'", "ʼʼ", "Ъ",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := Words(text)
		for _, keys := range words {
			expect.ErrorIf(t, len(keys) == 0, "%q: got a word without keys", text)
			for _, key := range keys {
				expect.ErrorIf(t, key == "" || !utf8.ValidString(key), "%q: got the key %q, want a text", text, key)
			}
		}
		if len(words) > 0 && !meets(text, strings.ToUpper(text)) && !meets(text, text) {
			t.Errorf("%q does not meet itself; keys %q", text, words)
		}
	})
}
