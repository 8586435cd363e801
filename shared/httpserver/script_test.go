package httpserver

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAScriptIsASCIIAndMeansTheSame(t *testing.T) {
	for _, text := range []string{
		"plain", "Дім\u2028і\u2029ліс", "😀\U0010FFFF", "\u007f\u0080\u00a0", "</script>", `"\`, "\ufeff\uffff", "",
	} {
		sent, err := json.Marshal(map[string]string{text: text})
		if err != nil {
			t.Fatal(err)
		}
		kind, script := Script("a.b", sent)
		inner := strings.TrimSuffix(strings.TrimPrefix(string(script), "a.b("), ");")
		var got map[string]string
		if err := json.Unmarshal([]byte(inner), &got); err != nil || got[text] != text {
			t.Errorf("%q: got %s, %v; want the same value", text, script, err)
		}
		for _, b := range script {
			if b >= 0x80 {
				t.Errorf("%q: got the byte %#x in %q, want ASCII", text, b, script)
			}
		}
		if kind != "application/javascript; charset=utf-8" {
			t.Errorf("got the type %s, want one with its charset", kind)
		}
	}
}
