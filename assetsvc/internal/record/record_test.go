package record

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func object(members ...Member) Object { return members }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Value
	}{
		{`null`, nil},
		{` true `, true},
		{`"\u0457жак \ud83e\udd94"`, "їжак 🦔"},
		{`-0.10e+5`, Number("-0.10e+5")},
		{`123456789012345678901234.5`, Number("123456789012345678901234.5")},
		{`[]`, List{}},
		{`[1,[null,"x"]]`, List{Number("1"), List{nil, "x"}}},
		{`{}`, Object{}},
		{`{"b":1,"a":{"c":false}}`, object(Member{"b", Number("1")}, Member{"a", object(Member{"c", false})})},
	} {
		got, err := Parse([]byte(c.text))
		expect.ErrorIf(t, err != nil || !Equal(got, c.want), "%s: got %v, %v; want %v", c.text, got, err, c.want)
	}
}

func TestMembersKeepTheirOrder(t *testing.T) {
	const text = `{"z":1,"a":[{"y":"<&>","b":null}],"m":"\u0000"}`
	value := expect.Get(Parse([]byte(text)))(t)
	expect.Equal(t, string(Append(nil, value)), text, "")
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"an empty text", ""}, {"a blank", " "}, {"a word", "x"}, {"half an object", `{"a":`}, {"half a list", `[1,`},
		{"half a string", `"x`}, {"half an escape", `"\u12"`}, {"a lone surrogate", `"\ud800"`},
		{"invalid UTF-8", "\"\xff\""}, {"a control character", "\"\n\""}, {"a second value", "1 2"},
		{"a trailing comma", `[1,]`}, {"a missing comma", `[1 2]`}, {"a leading zero", `01`},
		{"a point without decimals", `1.`}, {"a plus sign", `+1`}, {"NaN", `NaN`}, {"single quotes", `'x'`},
		{"a comment", `1 // x`}, {"a missing colon", `{"a" 1}`}, {"a number as a name", `{1:1}`},
		{"deep lists", strings.Repeat("[", 20_000)}, {"deep objects", strings.Repeat(`{"a":`, 20_000)},
		{"an extra bracket", `[]]`}, {"a byte order mark", "\ufeff{}"},
	} {
		expect.FaultOf(t, fault.Invalid, "%s", c.name)(Parse([]byte(c.text)))
	}
}

func TestDepthIsBounded(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	expect.NilOf(t, "depth %d", MaxDepth)(Parse(deep(MaxDepth)))
	expect.FailsOf(t, "depth %d", MaxDepth+1)(Parse(deep(MaxDepth + 1)))
}

func TestTheErrorListsAllRepeatedNames(t *testing.T) {
	many := make([]string, 0, 3*large)
	for i := range 3 * large {
		many = append(many, fmt.Sprintf(`"n%d":1`, i))
	}
	for _, c := range []struct{ text, want string }{
		{`{"a":1,"a":2,"a":3}`, "a a"},
		{`{"data":{"x":[{"b":1,"b":1}],"c":1,"c":1},"d":1,"d":1}`, "x.0.b c d"},
		{`{"\u0061":1,"a":1}`, "a"},
		{"{" + strings.Join(many, ",") + `,"n0":1,"n100":1}`, "n0 n100"},
	} {
		_, err := Parse([]byte(c.text))
		f, ok := errors.AsType[*fault.Error](err)
		expect.FatalIf(t, !ok, "%.60s: got %v, want a fault", c.text, err)
		var names []string
		for _, d := range f.Details {
			names = append(names, d.Name)
		}
		expect.Equal(t, strings.Join(names, " "), c.want, "%.60s", c.text)
	}
}

func TestEqual(t *testing.T) {
	values := []Value{
		nil, true, false, "", "x", Number("1"), Number("1.0"), List{}, List{nil}, List{"x"}, List{"x", "x"}, Object{},
		object(Member{"a", nil}), object(Member{"a", "x"}), object(Member{"b", "x"}),
		object(Member{"a", "x"}, Member{"b", List{Number("1")}}),
	}
	for i, a := range values {
		for j, b := range values {
			expect.Equal(t, Equal(a, b), (i == j), "%v and %v", a, b)
		}
	}
	if !Equal(object(Member{"a", "x"}, Member{"b", "y"}), object(Member{"b", "y"}, Member{"a", "x"})) {
		t.Error("members in another order: got false, want true")
	}
}

func TestWithAndWithoutReturnACopy(t *testing.T) {
	o := object(Member{"a", "1"}, Member{"b", "2"})
	if got := o.With("a", "x"); !Equal(got, object(Member{"a", "x"}, Member{"b", "2"})) {
		t.Errorf("with a: got %v, want a new value for a", got)
	}
	if got := o.With("c", "x"); !Equal(got, object(Member{"a", "1"}, Member{"b", "2"}, Member{"c", "x"})) {
		t.Errorf("with c: got %v, want c at the end", got)
	}
	if got := o.Without("a", "c"); !Equal(got, object(Member{"b", "2"})) {
		t.Errorf("without a: got %v, want only b", got)
	}
	if !Equal(o, object(Member{"a", "1"}, Member{"b", "2"})) {
		t.Errorf("the object afterwards: got %v, want a and b as they were", o)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"x",null,true,{}],"b":{"c":"\u0000"}}`, `{"a":1,"a":1}`, "\"\xff\"",
		`[[[[`, `1e5`, `"\ud83e\udd94"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := Parse(text)
		if err != nil {
			expect.FatalIf(t, fault.KindOf(err) != fault.Invalid, "%q: got %v, want kind Invalid", text, err)
			return
		}
		printed := Append(nil, value)
		again, err := Parse(printed)
		if err != nil || !Equal(again, value) || string(Append(nil, again)) != string(printed) {
			t.Fatalf("%q: got %q, which parses as %v, %v; want the same value", text, printed, again, err)
		}
	})
}
