package translog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// Promises: canonical-form
func TestCanonicalForm(t *testing.T) {
	for _, c := range []struct{ name, asset, want string }{
		{"members in the order of UTF-16", `{"ﬀ":1,"😀":2,"b":3,"a":4}`, `{"a":4,"b":3,"😀":2,"ﬀ":1}`},
		{"members of members", `{"a":{"c":1,"b":[{"y":1,"x":2}]}}`, `{"a":{"b":[{"x":2,"y":1}],"c":1}}`},
		{"no white space", " {\n\"a\" :\t[ 1 , true ]\r} ", `{"a":[1,true]}`},
		{"numbers as they are written", `{"a":240.50,"b":1E3,"c":9007199254740993,"d":-0.0,"e":1.234567890123456789012345678}`,
			`{"a":240.50,"b":1E3,"c":9007199254740993,"d":-0.0,"e":1.234567890123456789012345678}`},
		{"short escapes", `{"a":"\u0008\u0009\u000a\u000c\u000d\u0022\u005c\u002f\u001F\u007f"}`,
			`{"a":"\b\t\n\f\r\"\\/\u001f` + "\u007f" + `"}`},
		{"no other escapes", `{"a":"\u041f\ud83d\ude00<>&\u2028"}`, `{"a":"П😀<>&` + "\u2028" + `"}`},
		{"without dateModified", `{"dateModified":"x","a":1}`, `{"a":1}`},
		{"without an escaped dateModified", `{"a":1,"date\u004dodified":"x"}`, `{"a":1}`},
		{"with the dateModified of a part", `{"a":{"dateModified":"x"}}`, `{"a":{"dateModified":"x"}}`},
		{"nothing else", `{"dateModified":"x"}`, `{}`},
		{"an empty object", ` {} `, `{}`},
		{"the first of two members", `{"dateModified":"x","e":"y"}`, `{"e":"y"}`},
		{"the last of two members", `{"dateModified":"x","a":"y"}`, `{"a":"y"}`},
		{"one between two others", `{"a":1,"dateModified":{"a":[1,"}"]},"e":2}`, `{"a":1,"e":2}`},
		{"brackets and quotes in strings", `{"a":"}],:\"{[","b\"":{"c":["]\\"]},"dateModified":"\"}"}`,
			`{"a":"}],:\"{[","b\"":{"c":["]\\"]}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Canonical([]byte(c.asset))
			expect.FatalIf(t, err != nil || string(got) != c.want, "got %s, %v, want %s", got, err, c.want)
			if again, err := Canonical(got); err != nil || string(again) != c.want {
				t.Errorf("got %s, %v of the canonical form, want the same", again, err)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, c := range []struct{ name, asset string }{
		{"nothing", ``},
		{"a list", `[]`},
		{"two objects", `{}{}`},
		{"an end too early", `{"a":1`},
		{"a comma too many", `{"a":1,}`},
		{"a repeated name", `{"a":1,"a":2}`},
		{"a repeated name in a part", `{"b":{"a":1,"a":2}}`},
		{"a repeated dateModified", `{"dateModified":"x","dateModified":"y"}`},
		{"half of a surrogate pair", `{"a":"\ud83d"}`},
		{"bytes that are not UTF-8", "{\"a\":\"\xff\"}"},
		{"a number of another form", `{"a":01}`},
		{"not a number", `{"a":NaN}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.ErrOf(t, ErrAsset, "")(Canonical([]byte(c.asset)))
		})
	}
}

func TestCommitmentIsTheSpecifiedOne(t *testing.T) {
	got, err := Commit(goldenSalt(), []byte(goldenAsset))
	expect.ErrorIf(t, err != nil || got.String() != goldenCommitment, "got %s, %v, want %s", got, err, goldenCommitment)
}

// Promises: leaf-matches
func TestALeafMatchesItsAssetOnly(t *testing.T) {
	leaf, err := ParseLeaf([]byte(goldenLeaf))
	expect.OK(t, err)
	change := func(old, new string) string {
		expect.FatalIf(t, !strings.Contains(goldenAsset, old), "the asset has no %s", old)
		return strings.Replace(goldenAsset, old, new, 1)
	}
	other := goldenSalt()
	other[31]++
	for _, c := range []struct {
		name, asset string
		salt        Salt
		want        error
	}{
		{"its asset", goldenAsset, goldenSalt(), nil},
		{"in another zone", change("16:13:20.123456+02:00", "14:13:20.123456+00:00"), goldenSalt(), nil},
		{"another salt", goldenAsset, other, ErrMismatch},
		{"another quantity", change("240.50", "240.5"), goldenSalt(), ErrMismatch},
		{"another member", change(`"quantity"`, `"quantitÿ"`), goldenSalt(), ErrMismatch},
		{"another id", change(assetID, strings.Repeat("0", 32)), goldenSalt(), ErrMismatch},
		{"no id", change(`"id"`, `"ID"`), goldenSalt(), ErrMismatch},
		{"a time 1 µs later", change("123456", "123457"), goldenSalt(), ErrMismatch},
		{"a time with seven digits", change("123456", "1234560"), goldenSalt(), ErrMismatch},
		{"a time with a comma", change("20.123456", "20,123456"), goldenSalt(), ErrMismatch},
		{"a time in zone -00:00", change("16:13:20.123456+02:00", "14:13:20.123456-00:00"), goldenSalt(), ErrMismatch},
		{"no time", change(`"dateModified"`, `"datemodified"`), goldenSalt(), ErrMismatch},
		{"a number as time", change(`"2026-09-21T16:13:20.123456+02:00"`, `1790000000123456`), goldenSalt(), ErrMismatch},
		{"no object", `"x"`, goldenSalt(), ErrAsset},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := leaf.Match([]byte(c.asset), c.salt); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	elsewhere := leaf
	elsewhere.Asset = strings.Repeat("0", 32)
	if err := elsewhere.Match([]byte(goldenAsset), goldenSalt()); !errors.Is(err, ErrMismatch) {
		t.Errorf("got %v of a leaf with the right commitment and another id, want %v", err, ErrMismatch)
	}
	withdraw, err := ParseLeaf([]byte(goldenWithdraw))
	expect.OK(t, err)
	expect.Err(t, withdraw.Match([]byte(goldenAsset), goldenSalt()), ErrNoCommitment, "of a withdrawal")
}

func TestSaltsAreRandomAndHexadecimal(t *testing.T) {
	salt := NewSalt()
	expect.FatalIf(t, salt == NewSalt() || salt == (Salt{}), "got the salt %s twice or empty, want a random one", salt)
	text, err := json.Marshal(salt)
	expect.FatalIf(t, err != nil || string(text) != `"`+salt.String()+`"`, "got %s, %v, want %s", text, err, salt)
	var got Salt
	if err := json.Unmarshal(text, &got); err != nil || got != salt {
		t.Errorf("got %s, %v, want %s", got, err, salt)
	}
	for _, text := range []string{"", salt.String()[1:], strings.Repeat("g", 64), strings.Repeat("A", 64)} {
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("got no error for %q, want one", text)
		}
	}
}

// BenchmarkCommit commits to an asset of 3 KB.
func BenchmarkCommit(b *testing.B) {
	asset := []byte(`{"id":"` + assetID + `","items":[` + strings.Repeat(`{"quantity":240.50,"unit":"MTK","title":"`+
		strings.Repeat("Приміщення", 10)+`"},`, 12) + `{}]}`)
	b.SetBytes(int64(len(asset)))
	for b.Loop() {
		expect.Get(Commit(goldenSalt(), asset))(b)
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(goldenAsset))
	f.Add([]byte(`{"a":[1,{"b":null}],"c":"\ud83d\ude00"}`))
	f.Fuzz(func(t *testing.T, asset []byte) {
		text, err := Canonical(asset)
		if err != nil {
			return
		}
		if again, err := Canonical(text); err != nil || string(again) != string(text) {
			t.Errorf("got %s, %v of %s, want the same", again, err, text)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil || members["dateModified"] != nil {
			t.Errorf("got %s, %v, want an object without dateModified", text, err)
		}
	})
}
