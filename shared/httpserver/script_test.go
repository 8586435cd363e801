package httpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/gzip"

	"asset-registry/shared/testing/expect"
)

func TestAScriptIsASCIIAndMeansTheSame(t *testing.T) {
	for _, text := range []string{
		"plain", "Дім\u2028і\u2029ліс", "😀\U0010FFFF", "\u007f\u0080\u00a0", "</script>", `"\`, "\ufeff\uffff", "",
	} {
		sent, err := json.Marshal(map[string]string{text: text})
		expect.OK(t, err)
		kind, script := Script("a.b", sent)
		inner := strings.TrimSuffix(strings.TrimPrefix(string(script), "a.b("), ");")
		var got map[string]string
		if err := json.Unmarshal([]byte(inner), &got); err != nil || got[text] != text {
			t.Errorf("%q: got %s, %v; want the same value", text, script, err)
		}
		for _, b := range script {
			expect.ErrorIf(t, b >= 0x80, "%q: got the byte %#x in %q, want ASCII", text, b, script)
		}
		if kind != "application/javascript; charset=utf-8" {
			t.Errorf("got the type %s, want one with its charset", kind)
		}
	}
}

// asText returns a text with every character beyond ASCII as an escape sequence.
func asText(text string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if unit < 0x80 {
			out.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// TestAScriptIsMadeInOneAllocation makes scripts of texts whose characters have one to four bytes, in every order, with
// every length up to some words of the machine, and once of a page's size. Malformed texts may take more allocations.
func TestAScriptIsMadeInOneAllocation(t *testing.T) {
	var texts []string
	units := []string{
		"a", "ж", "—", "😀", "Дім ", "aж", "ж—", "—😀a", "😀ж", "п'ять", "\u0080\u07ff\u0800\uffff\U0010ffff",
	}
	for _, unit := range units {
		for before := range 9 {
			for n := range 9 {
				texts = append(texts, strings.Repeat("x", before)+strings.Repeat(unit, n))
			}
		}
		texts = append(texts, strings.Repeat(unit, 1<<16))
	}
	for _, text := range texts {
		sent, script := []byte(text), []byte(nil)
		allocations := 0.0
		for range 10 { // goroutines of other tests may allocate meanwhile
			if allocations = testing.AllocsPerRun(4, func() { _, script = Script("f", sent) }); allocations == 1 {
				break
			}
		}
		if got, want := string(script), "f("+asText(text)+");"; got != want {
			t.Fatalf("%.40q: got %.80q, want %.80q", text, got, want)
		}
		if allocations != 1 || cap(script) != len(script) {
			t.Errorf("%.40q of %d bytes: got %v allocations and room for %d bytes, want 1 and %d",
				text, len(text), allocations, cap(script), len(script))
		}
	}
	for _, text := range []string{"\xff", "ж\xd0", "\xe2\x80", "\xf0\x9f\x98", "\x80\x80\x80", "abcdefg\xffabcdefgh"} {
		for n := range 20 {
			repeated := strings.Repeat(text, n)
			if _, got := Script("f", []byte(repeated)); string(got) != "f("+asText(repeated)+");" {
				t.Errorf("%q: got %q, want %q", repeated, got, asText(repeated))
			}
		}
	}
}

// page returns a page of assets with texts in Ukrainian, about as long as the largest one.
func page() []byte {
	var b bytes.Buffer
	for n := uint64(1); b.Len() < 4<<20; n = n*6364136223846793005 + 1442695040888963407 {
		fmt.Fprintf(&b, `{"id":"%016x%016x","quantity":%d.5,"title":"`, n, n>>3, n>>56)
		for word := n; word > 1<<32; word -= word / 40 {
			for letter := word >> 7 % (1 << 40); letter > 1<<8; letter /= 97 {
				b.WriteRune('а' + rune(letter%32))
			}
			b.WriteByte(' ')
		}
		b.WriteString(`"},`)
	}
	return b.Bytes()
}

// BenchmarkScript makes a script of a page, and compresses both. A script takes about half as long as the compression of
// its page.
func BenchmarkScript(b *testing.B) {
	text := page()
	made := func() []byte { _, script := Script("f", text); return script }
	compressed := func(make func() []byte) func() {
		w := gzip.NewWriter(io.Discard)
		return func() {
			w.Reset(io.Discard)
			_, _ = w.Write(make())
			_ = w.Close()
		}
	}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"made", func() { made() }},
		{"compressed", compressed(made)},
		{"page-compressed", compressed(func() []byte { return text })},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				c.run()
			}
		})
	}
}
