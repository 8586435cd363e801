package record

import (
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// FuzzSkim compares the members and elements that Skim finds with those of the parsed value. Skim must not fail on a
// text that is no JSON, or that ends early.
func FuzzSkim(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b\"\\":[{"x":"}]"},2],"c":{"d":null}}`, " [ 1 , \"a,\\\\\" ,\n[],{ } ]\t", `{ "" : -1e5 , "\u0041" : true }`,
		`"text"`, `[`, `{"`, `{"a`, `{"a":`, `{"a":"`, `[,,]`, `{"a":}`, `[1 2]`, `{:}`, `]`, `{"id":"\`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var names []string
		var found List
		for name, value := range Skim(text) {
			if name != nil {
				quoted, err := Parse([]byte(`"` + string(name) + `"`))
				if err != nil {
					continue
				}
				names = append(names, quoted.(string))
			}
			parsed, _ := Parse(value)
			found = append(found, parsed)
		}
		whole, err := Parse(text)
		if err != nil {
			return
		}
		var want List
		switch whole := whole.(type) {
		case List:
			want = whole
		case Object:
			for i, m := range whole {
				if i >= len(names) || names[i] != m.Name {
					t.Fatalf("%s: got the names %q, want %q at %d", text, names, m.Name, i)
				}
				want = append(want, m.Value)
			}
		}
		expect.ErrorIf(t, len(found)+len(want) > 0 && !Equal(found, want), "%s: got %v, want %v", text, found, want)
	})
}

// TestSkimAllocatesNothing skims lists of 10 and of 10,000 elements.
func TestSkimAllocatesNothing(t *testing.T) {
	for _, n := range []int{10, 10_000} {
		text := []byte(`{"a":[` + strings.Repeat(`{"id":"x","text":"a \"quoted\" text \\"},`, n) + `1]}`)
		elements := 0
		got := testing.AllocsPerRun(5, func() {
			elements = 0
			for _, list := range Skim(text) {
				for range Skim(list) {
					elements++
				}
			}
		})
		if got > 4 || elements != n+1 {
			t.Errorf("got %v allocations and %d elements, want at most 4 and %d", got, elements, n+1)
		}
	}
}
