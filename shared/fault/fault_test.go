package fault

import "testing"

func TestSaysSomething(t *testing.T) {
	for _, text := range []string{"помилка", "7", "№ 5", "  a ", "中", "٣"} {
		if !SaysSomething(text) {
			t.Errorf("%q: got false, want true", text)
		}
	}
	for _, text := range []string{"", " \t\u00a0", "\u200b", "\u200b\u2060", "\ufeff", "\u00ad", "\u3164", "\uffa0", "\u115f", "\u2800", "-!",
		"\x00", "a\x00b", "a\xff", "\u0301"} {
		if SaysSomething(text) {
			t.Errorf("%q: got true, want false", text)
		}
	}
}
