package cells

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestHarmless puts each sign behind each character that could begin a cell, and behind others.
// Promises: export-formulas
func TestHarmless(t *testing.T) {
	begins := []string{"", "x;", "x\t", "x\n", "x\r", "x\r\n", "\n", ";", "x\v", "x\f", "x\u0085", "x\u2028", "x\u2029", `x;"`,
		`x;""`, "x\n\"", "x;;"}
	others := []string{"x", " ", "x,", "x|", "x; ", "'", `"`, "x;'", "\ufeff", "x\xff"}
	formulas := []string{"=1+1", "@SUM(A1)", "＝1", "＠A1", "+A1", "-A1", "＋cmd|' /C calc'!A0", "－(1)", "--1", "-'a'!A1", "-\xff",
		"-2+3+cmd|' /C calc'!A0", "+1-HYPERLINK(\"x\")", "- ГІПЕРПОСИЛАННЯ(1)", "- 1+'[x.xls]s'!$A$1"}
	texts := []string{"+380 (44) 123-45-67", "-5", "- будинок", "-\u00a0гараж", "－５", "+", "-", "x", "-\n", "- гараж(1 шт.)",
		"-5 кв. м (загальна)!", "- увага! A 1"}
	same := func(text string) {
		expect.Equal(t, Harmless(text), text, "%q", text)
	}
	for _, begin := range begins {
		for _, f := range formulas {
			got, want := Harmless(begin+f), begin+"'"+f
			if f == "=1+1" && got != want || !strings.HasPrefix(got, want) {
				t.Errorf("%q: got %q, want %q", begin+f, got, want)
			}
			expect.Equal(t, Harmless(got), got, "%q: at the second time", got)
			expect.Equal(t, Plain(got), begin+f, "%q: taken back", got)
		}
		for _, text := range texts {
			same(begin + text)
		}
	}
	for _, other := range others {
		for _, f := range formulas {
			same(other + f)
		}
	}
}

// TestPlainTakesNoOtherApostrophe reads cells with a ' that no export has put there.
func TestPlainTakesNoOtherApostrophe(t *testing.T) {
	for _, text := range []string{"", "'", "'ясно", "'-5", "'- будинок", "об'єкт", "x'=1", "a;'b'", "5'-6'", "''=1"} {
		expect.Equal(t, Plain(text), text, "%q", text)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("x;=1\n-A\"=")
	f.Fuzz(func(t *testing.T, text string) {
		harmless := Harmless(text)
		if again := Harmless(harmless); again != harmless {
			t.Errorf("%q: got %q, then %q", text, harmless, again)
		}
		expect.Equal(t, Plain(harmless), Plain(text), "%q: taken back", text)
	})
}

// patterns are ways in which people write about a thing. Only in the last one a sign stands directly before a word.
var patterns = []string{
	"%", "% (- 2 поверхи; + підвал)", "До складу входять:\n- %;\n- огорожа;\n+ ворота", "%:\r\n - перший\r\n - другий",
	"-15 °C взимку;\t+25 °C влітку; %", "%; +380 (44) 123-45-67; @ немає", "+380441234567 — %", "- %\n- %", "- ", "–%", "— %",
	"«%»; „друга“; 'третя'", "%; інв. № 10310022;a=b; c - d", "Площа = 5 м²; ціна=10; %", "%, mail@example.ua; x@example.ua",
	"1) %;\n2) 50%;\n3) 3+1;\n4) 10-12", "-%",
}

// TestHonestTextsStay counts the texts of honest people that change: fewer than 1 of 1,000. The texts are names and
// descriptions of assets, in many ways of writing, and codes of the lists that brokers use, where they are at hand.
// Promises: export-formulas
func TestHonestTextsStay(t *testing.T) {
	read := func(path string) []byte {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return text
	}
	var corpus []string
	things := strings.FieldsFunc(string(read("../../searchsvc/internal/index/testdata/recall/assets.txt")), func(r rune) bool {
		return r == '|' || r == '\n'
	})
	expect.FatalIf(t, len(things) < 500, "got %d things, want at least 500", len(things))
	for i, thing := range things {
		for n, pattern := range patterns {
			if n < len(patterns)-1 || i == 1 {
				corpus = append(corpus, strings.ReplaceAll(pattern, "%", thing))
			}
		}
	}
	var collect func(value any)
	collect = func(value any) {
		switch value := value.(type) {
		case string:
			corpus = append(corpus, value)
		case []any:
			for _, v := range value {
				collect(v)
			}
		case map[string]any:
			for _, v := range value {
				collect(v)
			}
		}
	}
	for _, list := range []string{"cpv_en", "dk018_uk", "dk021_uk", "identifier_scheme", "ua_regions"} {
		var value any
		if text := read("../../../shared/data/" + list + ".json"); text != nil {
			expect.OK(t, json.Unmarshal(text, &value))
		}
		collect(value)
	}
	var changed []string
	for _, text := range corpus {
		if Harmless(text) != text {
			changed = append(changed, text)
		}
	}
	if len(changed)*1000 >= len(corpus) {
		t.Errorf("got %d of %d changed, want fewer than 1 of 1,000: %.100q", len(changed), len(corpus), changed[:10])
	}
}
