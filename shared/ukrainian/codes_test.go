package ukrainian

import (
	"slices"
	"strings"
	"testing"
)

// TestNumbersAndCodesHaveOneKeyAKind has lists of ways to write the same code. It searches for each way of a list in
// texts with the other ways of this list. Each search must find the text.
// Promises: search-numbers
func TestNumbersAndCodesHaveOneKeyAKind(t *testing.T) {
	for _, kind := range [][]string{
		{"№145", "№ 145", "145", "№\u00a0145"},
		{"інв.№10310022", "інв. № 10310022"},
		{"240м²", "240 м²", "240 м2", "240м2"},
		{"12х24 м", "12x24м", "12×24 м", "12*24м"},
		{"0,7777", "0.7777", "0,77770"},
		{"36,6", "36.6", "36,60"},
		{"49-а", "49а", "49 А", "49-A", "49a", "49А", "49/а"},
		{"5 И", "5и", "5-и"},
		{"буд. 5 Б, 6 В", "буд. 5б, 6в", "буд. № 5 Б, 6 В"},
		{"Т-150К", "T-150K", "т150к", "Т150К"},
		{"III", "ІІІ", "iii"},
		{"XVIII", "ХVІІІ"},
		{"А-9", "A-9", "а9"},
		{"AA1234BC", "АА1234ВС", "аа1234вс"},
		{"ЗІЛ-130", "ЗИЛ-130", "зіл130"},
		{"2ПТС-4", "2птс4"},
		{"TП-412", "ТП-412"},
		{"ЖD-5A", "ЖD-5А"},
		{"DЖ-5A", "DЖ-5А"},
		{"екскаватор", "екска\u200bватор", "\ufeffекскаватор", "екска\u2060ватор", "екс\u00adка\u200dватор"},
		{"00032945", "32945", "0032945"},
		{"UA-EDR-36068147", "ua-edr-36068147"},
		{"04121000-2", "4121000-2"},
		{"0123456789abcdef0123456789abcdef", "https://registry.example/uk/assets/0123456789abcdef0123456789abcdef",
			"registry.example/api/2.5/assets/0123456789abcdef0123456789abcdef?opt_pretty=1"},
	} {
		for _, question := range kind {
			for _, text := range kind {
				if len(text) > 40 { // an address of a page; nobody writes one into a text of an asset
					continue
				}
				if !meets(question, "об'єкт "+text+", опис") {
					t.Errorf("%q in %q: got not found, want found; keys %q", question, text, Words(question))
				}
			}
		}
	}
}

// TestEachMixOfLettersIsOneCode writes codes with each mix of the letters that look alike, and with и and і. Each must have
// the key of the code. It also takes each letter of the table beside each letter that is not in it.
// Promises: search-numbers
func TestEachMixOfLettersIsOneCode(t *testing.T) {
	others := map[rune][]rune{}
	latin := []rune(latinLetters)
	for i, r := range []rune(cyrillicLetters) {
		same := []rune{r, latin[i]}
		if r == 'і' {
			same = append(same, 'и')
		}
		for _, one := range same {
			others[one] = same
		}
	}
	var mixes func(code []rune) []string
	mixes = func(code []rune) (all []string) {
		if len(code) == 0 {
			return []string{""}
		}
		first := others[code[0]]
		if first == nil {
			first = code[:1]
		}
		for _, rest := range mixes(code[1:]) {
			for _, one := range first {
				all = append(all, string(one)+rest, strings.ToUpper(string(one))+rest)
			}
		}
		return all
	}
	codes := []string{"ми-2", "мі-8т", "ми8", "зил-130", "авс-1к", "2-ми", "е1м", "ж-и5", "d-и5", "хті-3и", "1и", "и-1-и"}
	for letter := range others {
		for _, beside := range []string{"", "ж", "d", "и", "z", "п"} {
			codes = append(codes, string(letter)+beside+"-12", beside+"7"+string(letter), beside+"-"+string(letter)+"-12")
		}
	}
	for _, code := range codes {
		all := mixes([]rune(code))
		want := Words(all[0])
		for _, mix := range all {
			if got := Words(mix); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s: got the keys %q, want %q as of %s", mix, got, want, all[0])
			}
		}
	}
	for _, c := range [][2]string{{"Ми-2", "Му-2"}, {"Мі-2", "Мы-2"}, {"Ме-2", "Мэ-2"}, {"Б-5", "B-5"}, {"Н-5", "N-5"}, {"Ї-5", "І-5"}} {
		if meets(c[0], c[1]) {
			t.Errorf("%q in %q: got found, want not", c[0], c[1])
		}
	}
}

// TestLettersAfterOtherNumbersStayWords has texts in which a letter follows a number, but the number is not the number
// of a house. So the letter is a separate word. A search with the same words must find each text.
func TestLettersAfterOtherNumbersStayWords(t *testing.T) {
	for _, text := range []string{"A0 A", "1.5 A", "10/2 Б", "12345 В", "x5 C", "7-8 D", "5's A", "5 AB", "5 A-1"} {
		if !meets(text, text) {
			t.Errorf("%q: got not found in itself, want found; keys %q", text, Words(text))
		}
	}
}

func TestOtherNumbersAndCodesDoNotMeet(t *testing.T) {
	for _, c := range [][2]string{
		{"146", "№ 145"}, {"14", "145"}, {"1450", "145"}, {"0,777", "0,7777"}, {"49-б", "49-а"}, {"49а", "49"},
		{"Т-150М", "Т-150К"}, {"II", "III"}, {"А-8", "А-9"}, {"36068148", "UA-EDR-36068147"}, {"007", "7"},
		{"04121000-3", "04121000-2"}, {"12х25", "12х24"},
	} {
		if meets(c[0], c[1]) {
			t.Errorf("%q in %q: got found, want not; keys %q", c[0], c[1], Words(c[0]))
		}
	}
}
