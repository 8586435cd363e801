package ukrainian

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// numberKinds are the kinds of numbers and codes of docs/search.md. Each function makes all spellings of one random value.
var numberKinds = map[string]func(r *rand.Rand) []string{
	"number with thousands": func(r *rand.Rand) (all []string) {
		groups := []string{fmt.Sprint(1 + r.IntN(999))}
		for range 1 + r.IntN(3) {
			groups = append(groups, fmt.Sprintf("%03d", r.IntN(1000)))
		}
		fraction := fmt.Sprint(11 + r.IntN(80))
		for _, sign := range []string{"", " ", "\u00a0", "\u202f", "\u2009", "'", "’"} {
			number := strings.Join(groups, sign)
			all = append(all, number+","+fraction, number+"."+fraction, number+","+fraction+"0")
		}
		return append(all, strings.Join(groups, ".")+","+fraction, strings.Join(groups, ",")+"."+fraction)
	},
	"whole number with thousands": func(r *rand.Rand) (all []string) {
		a, b := 1+r.IntN(999), r.IntN(1000)
		for _, sign := range []string{"", " ", "\u00a0", "\u202f", "\u2009", "'", "’", "ʼ"} {
			all = append(all, fmt.Sprintf("%d%s%03d", a, sign, b))
		}
		return all
	},
	"cadastral number": func(r *rand.Rand) (all []string) {
		parts := []any{1 + r.Int64N(9), r.Int64N(1e9), r.IntN(100), r.IntN(1000), r.IntN(1e4)}
		for _, sign := range []string{":", "-", ".", " ", "", "\u00a0", "–"} {
			all = append(all, fmt.Sprintf(strings.ReplaceAll("%d%09d|%02d|%03d|%04d", "|", sign), parts...))
		}
		return append(all, fmt.Sprintf("%d%09d:%02d %03d-%04d", parts...),
			fmt.Sprintf("%d%09d : %02d : %03d : %04d", parts...), fmt.Sprintf("%d%09d: %02d: %03d: %04d", parts...),
			fmt.Sprintf("%d%09d :%02d :%03d :%04d", parts...), fmt.Sprintf("%d%09d\u00a0:\u00a0%02d:%03d: %04d", parts...))
	},
	"number of a vehicle": func(r *rand.Rand) (all []string) {
		const letters = "ABCDEFGHJKLMNPRSTUVWYZ0123456789" // without X, which stands in sizes
		var vin []byte
		for range 12 {
			vin = append(vin, letters[r.IntN(len(letters))])
		}
		text := "X" + string(vin) + fmt.Sprintf("%04d", r.IntN(1e4))
		return []string{text, text[:3] + " " + text[3:], text[:9] + " " + text[9:], text[:3] + " " + text[3:9] + " " + text[9:],
			strings.ToLower(text), text[:8] + "\u00a0" + text[8:]}
	},
	"date": func(r *rand.Rand) []string {
		d, m, y := 1+r.IntN(28), 1+r.IntN(12), 1991+r.IntN(40)
		uk := strings.Fields("січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня")[m-1]
		ru := strings.Fields("января февраля марта апреля мая июня июля августа сентября октября ноября декабря")[m-1]
		return []string{
			fmt.Sprintf("%02d.%02d.%d", d, m, y), fmt.Sprintf("%d.%02d.%d", d, m, y), fmt.Sprintf("%02d.%02d.%d р.", d, m, y),
			fmt.Sprintf("%02d.%02d.%dр.", d, m, y), fmt.Sprintf("%02d.%02d.%d року", d, m, y), fmt.Sprintf("%d-%02d-%02d", y, m, d),
			fmt.Sprintf("%02d/%02d/%d", d, m, y), fmt.Sprintf("%d %s %d", d, uk, y), fmt.Sprintf("%02d %s %d року", d, uk, y),
			fmt.Sprintf("%d %s %d", d, ru, y), fmt.Sprintf("%d %s %d г.", d, strings.ToUpper(ru), y), fmt.Sprintf("%d %s %dр.", d, uk, y),
		}
	},
	"code with letters like digits": func(r *rand.Rand) (all []string) {
		n := 1000 + r.IntN(9000)
		for _, maker := range []string{"ВАЗ", "BA3", "ВА3", "BAЗ", "ваз"} {
			for _, sign := range []string{"-", "", "–"} {
				if all = append(all, fmt.Sprint(maker, sign, n)); sign == "" { // five letters in a row are a word
					continue
				}
				all = append(all, fmt.Sprint(maker, sign, strings.ReplaceAll(fmt.Sprint(n), "0", "О")),
					fmt.Sprint(maker, sign, strings.ReplaceAll(fmt.Sprint(n), "3", "З")))
			}
		}
		return all
	},
}

// TestEverySpellingOfAKindHasOneKey makes random values of each kind of numbers. A question with any spelling must find a
// text with any other, and must not find another value.
// Promises: search-numbers
func TestEverySpellingOfAKindHasOneKey(t *testing.T) {
	r := rand.New(rand.NewPCG(62, 1))
	for kind, make := range numberKinds {
		for range 40 {
			all, others := make(r), make(r)
			for _, asked := range all {
				for _, written := range all {
					text := "опис, " + written + ", грн; стан"
					if !meets(asked, text) {
						t.Fatalf("%s: got no %q in %q, want it there; keys %q", kind, asked, text, Words(asked))
					}
				}
				if slices.Contains(others, asked) {
					continue
				}
				if text := "опис, " + others[r.IntN(len(others))] + "; стан"; !slices.Contains(all, others[0]) && meets(asked, text) {
					t.Errorf("%s: got %q in %q, want it not there; keys %q", kind, asked, text, Words(asked))
				}
			}
		}
	}
}

// TestWordsBeforeANumberAreNoPartOfIt has words that stand directly before a number, perhaps with a sign between them.
// Promises: search-numbers
func TestWordsBeforeANumberAreNoPartOfIt(t *testing.T) {
	for _, before := range []string{
		"пл.", "заг.пл.", "площа:", "площею-", "S=", "п.", "S-", "S", "площа", "площа ", "(", "№", "~", "≈", "S:", "а.", "загальна.площа:",
	} {
		for number, want := range map[string]string{
			"36,6": "36.6", "36.6": "36.6", "1 234,5": "1234.5", "1'234.5": "1234.5", "1.234,56": "1234.56", "4.15": "4.15",
		} {
			for _, unit := range []string{"", "кв.м", " кв.м", "м²", "м2", "га", ", "} {
				text := before + number + unit
				keys := Words(text)
				if !slices.ContainsFunc(keys, func(keys []string) bool { return slices.Equal(keys, []string{want}) }) {
					t.Errorf("the question %q: got the keys %q, want %s among them", text, keys, want)
				}
				expect.ErrorIf(t, !meets(want, "опис "+text+" опис"), "got no %s in the text %q", want, text)
			}
		}
	}
	for _, code := range []string{"Т-150К", "ЗІЛ-130", "UA-EDR-36068147", "А-9", "№145", "ТП-412"} {
		if got := Words(code); len(got) != 1 {
			t.Errorf("%s: got the keys %q, want one code", code, got)
		}
	}
}

// TestABlankMaySeparateNumbers has texts in which a blank stands between two numbers, or within one. A question finds
// either.
// Promises: search-numbers
func TestABlankMaySeparateNumbers(t *testing.T) {
	for text, questions := range map[string]string{
		"буд. 5 100 м²":                  "5|100|5100|5 100|буд 5|100 м2|5100 м²|буд. 5 100 м²",
		"кв. 12 345 грн":                 "12|345|12345|12 345|12 345 грн",
		"буд. 5, площа 100 м²":           "5 100|5|100",
		"100 200 300":                    "100|200|300|100200300|100 200 300",
		"1 234,5":                        "1234,5|1 234,5|1234.5|1",
		"25 листопада 2019 р.":           "25.11.2019|листопад 2019|25|2019-11-25",
		"пл.1 234,5кв.м":                 "1234,5 м2|1 234,5 кв.м",
		"ділянка 3220882600:04:001:0417": "3220882600|0417|3220882600 04 001 0417",
	} {
		for question := range strings.SplitSeq(questions, "|") {
			if !meets(question, text) {
				t.Errorf("%q in %q: got not found, want found; keys %q", question, text, Words(question))
			}
		}
	}
	for text, questions := range map[string]string{
		"буд. 5, 100 м²": "5100|5 101", "100 200 300": "100200|200300|100 201|1002", "5100 м²": "5|100|51", "5. 100": "5100", "5 -100": "5100",
		"05 100": "05100|5100", "1234 567": "1234567|234567", "5 1000": "51000", "1,234": "1234", "1.234": "1234|1.2340,5", "1 234": "1,234",
		"10:30": "1030", "25.13.2019": "2019-13-25", "25 листопада": "25.11.2019", "ВАЗ-2101": "ВАЗ-2102", "3А": "ЗА|за", "3 А": "за",
		"О5": "05", "5О": "50", "5-О": "50", "30": "ЗО|3О", "З5": "35", "15З": "153", "А3": "АЗ", "за 5": "35", "зо": "30", "0": "о",
		"3220882600:04:001:0417": "3220882600:04:001:0418|322088260004001041",
		"1 : 234":                "1234", "5: 100": "5100", "буд. 5: січня 2019": "5.01.2019", "Т-1 234": "1234",
	} {
		for question := range strings.SplitSeq(questions, "|") {
			if meets(question, text) {
				t.Errorf("%q in %q: got found, want not; keys %q", question, text, Words(question))
			}
		}
	}
}

// FuzzNumbers makes texts of numbers. A question must find itself, and the keys must be few.
func FuzzNumbers(f *testing.F) {
	for _, make := range numberKinds {
		for _, text := range make(rand.New(rand.NewPCG(62, 2))) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys := 0
		Each(text, 10_000, func(string) { keys++ })
		if most := 20 * (len(text) + 1); keys > most {
			t.Errorf("%q: got %d keys, want at most %d", text, keys, most)
		}
		if again := asking(text); !slices.EqualFunc(Ask(again), Ask(text), func(a, b Asked) bool { return a.Text == b.Text }) {
			t.Errorf("%q: got other words in its own words %q", text, again)
		}
		for _, a := range Ask(text) {
			if found := Ask(a.Text); a.Apart != nil && (len(found) != 1 || found[0].Keys[0] != a.Keys[0]) {
				t.Errorf("%q: got the run %+v, and %+v of its text", text, a, found)
			}
		}
	})
}

// TestARunAddsOneKey has texts of groups of three digits. The number of their keys must grow with their length only.
func TestARunAddsOneKey(t *testing.T) {
	for _, n := range []int{2, mostFields, 10 * mostFields, 1000} {
		var got []string
		Each(strings.Repeat("100 ", n), 10*n, func(key string) { got = append(got, key) })
		if most := n + n/2; len(got) > most || len(got) < n {
			t.Errorf("%d groups: got %d keys, want from %d to %d", n, len(got), n, most)
		}
	}
}
