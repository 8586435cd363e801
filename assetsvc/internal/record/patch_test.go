package record

import (
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func mustParse(t *testing.T, text string) Value {
	t.Helper()
	value, err := Parse([]byte(text))
	expect.Must(t, err, "%s", text)
	return value
}

func TestPatch(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"nothing differs", `{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, `[]`},
		{"the order of members differs", `{"a":1,"b":2}`, `{"b":2,"a":1}`, `[]`},
		{"a value changes", `{"a":"x"}`, `{"a":"y"}`, `[{"op":"replace","path":"/a","value":"y"}]`},
		{"only the text of a number changes", `{"a":1}`, `{"a":1.0}`, `[{"op":"replace","path":"/a","value":1.0}]`},
		{"a value becomes an object", `{"a":1}`, `{"a":{}}`, `[{"op":"replace","path":"/a","value":{}}]`},
		{"an object becomes a list", `{"a":{}}`, `{"a":[]}`, `[{"op":"replace","path":"/a","value":[]}]`},
		{"a nested value changes", `{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1,"d":3}}}`,
			`[{"op":"replace","path":"/a/b/d","value":3}]`},
		{"a new member", `{}`, `{"a":{"b":1}}`, `[{"op":"add","path":"/a","value":{"b":1}}]`},
		{"a removed member", `{"a":1,"b":2}`, `{"b":2}`, `[{"op":"remove","path":"/a"}]`},
		{"a new null member", `{}`, `{"a":null}`, `[{"op":"add","path":"/a","value":null}]`},
		{"names with slashes and tildes", `{"a/b":{"~1":1}}`, `{"a/b":{"~1":2}}`,
			`[{"op":"replace","path":"/a~1b/~01","value":2}]`},
		{"an empty name", `{"":1}`, `{"":2}`, `[{"op":"replace","path":"/","value":2}]`},
		{"new elements at the end", `[1]`, `[1,2,3]`,
			`[{"op":"add","path":"/1","value":2},{"op":"add","path":"/2","value":3}]`},
		{"a new element at the start", `[2,3]`, `[1,2,3]`, `[{"op":"add","path":"/0","value":1}]`},
		{"a removed element in the middle", `[1,2,3]`, `[1,3]`, `[{"op":"remove","path":"/1"}]`},
		{"removed elements, the last first", `[1,2,3,4]`, `[4]`,
			`[{"op":"remove","path":"/2"},{"op":"remove","path":"/1"},{"op":"remove","path":"/0"}]`},
		{"a changed element", `[1,{"a":1},3]`, `[1,{"a":2},3]`, `[{"op":"replace","path":"/1/a","value":2}]`},
		{"a changed and a removed element", `[1,2,3,9]`, `[1,5,9]`,
			`[{"op":"replace","path":"/1","value":5},{"op":"remove","path":"/2"}]`},
		{"one of several equal elements is removed", `[1,1,1]`, `[1,1]`, `[{"op":"remove","path":"/2"}]`},
		{"the whole value changes", `1`, `"x"`, `[{"op":"replace","path":"","value":"x"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(Append(nil, Patch(mustParse(t, c.before), mustParse(t, c.after)))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPatchesOfTheDeepestValueAreParsed(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	patch := Patch(nil, mustParse(t, deep))
	if again, err := ParsePatch(Append(nil, patch)); err != nil || !Equal(again, patch) {
		t.Errorf("got %v, %v; want the patch as it was", again, err)
	}
}

func TestApplyRefusesAPatchThatDoesNotFit(t *testing.T) {
	for _, c := range []struct{ name, value, patch string }{
		{"a new member exists", `{"a":1}`, `[{"op":"add","path":"/a","value":2}]`},
		{"no member to replace", `{}`, `[{"op":"replace","path":"/a","value":2}]`},
		{"no member to remove", `{}`, `[{"op":"remove","path":"/a"}]`},
		{"a path into a number", `{"a":1}`, `[{"op":"replace","path":"/a/b","value":2}]`},
		{"an element beyond the end", `[1]`, `[{"op":"add","path":"/2","value":2}]`},
		{"no element to remove", `[1]`, `[{"op":"remove","path":"/1"}]`},
		{"a name in a list", `[1]`, `[{"op":"replace","path":"/a","value":2}]`},
		{"no value", `{"a":1}`, `[{"op":"replace","path":"/a"}]`},
		{"no operation", `{"a":1}`, `[1]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Apply(mustParse(t, c.value), mustParse(t, c.patch).(List))
			expect.ErrorIf(t, err == nil, "got %v, want an error", got)
		})
	}
}

// FuzzPatch checks that the patch of two values turns the first value into the second.
func FuzzPatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":[1,2,{"b":null}],"c/~":{"":[]}}`, `{"a":[2,{"b":1},3],"c/~":{"":[[]]},"d":"x"}`},
		{`[1,2,3,4,5]`, `[5,4,3]`}, {`[[],[[1]],{}]`, `[[[1]],{"0":1}]`}, {`{"0":{"-":1}}`, `{"0":{"-":[null]}}`},
		{`{"~01":1}`, `{"~01":[1,1]}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, one, other []byte) {
		before, err := Parse(one)
		after, err2 := Parse(other)
		if err != nil || err2 != nil {
			return
		}
		text := Append(nil, Patch(before, after))
		patch, err := ParsePatch(text)
		expect.Must(t, err, "%s", text)
		if got, err := Apply(before, patch); err != nil || !Equal(got, after) {
			t.Fatalf("%s on %s: got %v, %v; want %s", text, one, got, err, other)
		}
	})
}
