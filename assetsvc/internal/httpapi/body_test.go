package httpapi

import (
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func TestParseBody(t *testing.T) {
	cases := []struct {
		name, body, token string
		pretty            bool
	}{
		{name: "only data", body: `{"data":{"a":1}}`},
		{name: "a token", body: `{"access":{"token":"t"},"data":{"a":1}}`, token: "t"},
		{name: "the access block of a creation", body: `{"access":{"token":"t","transfer":"u"},"data":{"a":1}}`,
			token: "t"},
		{name: "a null access block", body: `{"access":null,"data":{"a":1}}`},
		{name: "a null token", body: `{"access":{"token":null},"data":{"a":1}}`},
		{name: "the option pretty", body: `{"data":{"a":1},"options":{"pretty":true}}`, pretty: true},
		{name: "white space between all parts", body: " \n{ \"data\" : { \"a\" : 1 } }\r\n\t"},
		{name: "unknown members", body: `{"data":{"a":1},"next":[1,2]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := expect.Get(parseBody([]byte(c.body)))(t)
			if !record.Equal(got.data, record.Object{{Name: "a", Value: record.Number("1")}}) ||
				got.token != c.token || got.pretty != c.pretty {
				t.Errorf("got %+v, want data {\"a\":1}, token %q and pretty %t", got, c.token, c.pretty)
			}
		})
	}
}

const brokenJSON = "The body is not JSON: it breaks off or has a fault near byte "

func TestParseBodyRefuses(t *testing.T) {
	cases := []struct{ name, body, place, says string }{
		{"an empty body", ``, "data", brokenJSON},
		{"a body that is not JSON", `title=x`, "data", brokenJSON},
		{"half a body", `{"data":{"a":`, "data", brokenJSON},
		{"a second value", `{"data":{}} {}`, "data", brokenJSON},
		{"trailing bytes", `{"data":{}}x`, "data", brokenJSON},
		{"invalid UTF-8", "{\"data\":{\"a\":\"\xff\"}}", "data", "could not decode params"},
		{"a list", `[]`, "data", "Data not available"},
		{"null", `null`, "data", "Data not available"},
		{"no data", `{}`, "data", "Data not available"},
		{"null data", `{"data":null}`, "data", "Data not available"},
		{"data in a list", `{"data":[{}]}`, "data", "Data not available"},
		{"data in a string", `{"data":"{}"}`, "data", "Data not available"},
		{"a repeated name", `{"data":{"a":1,"a":2}}`, "a", "more than once"},
		{"a repeated name in a nested object", `{"data":{"items":[{"b":{"c":1,"c":1}}]}}`, "items.0.b.c",
			"more than once"},
		{"repeated data", `{"data":{},"data":{}}`, "data", "more than once"},
		{"a list of tokens", `{"access":{"token":["t"]},"data":{}}`, "access.token", "string"},
		{"access in a string", `{"access":"t","data":{}}`, "access", "object"},
		{"lists 20,000 deep", `{"data":` + strings.Repeat(`[`, 20000) + strings.Repeat(`]`, 20000) + `}`, "data",
			"deeper"},
		{"objects 20,000 deep", strings.Repeat(`{"data":`, 20000), "data", "deeper"},
		{"a text without its end", `{"data":{"a":"x`, "data", brokenJSON},
		{"an unknown escape", `{"data":{"a":"\x"}}`, "data", brokenJSON},
		{"a comma at the end", `{"data":{"a":1,}}`, "data", brokenJSON},
		{"NaN", `{"data":{"a":NaN}}`, "data", brokenJSON},
		{"a number with a leading zero", `{"data":{"a":01}}`, "data", brokenJSON},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseBody([]byte(c.body))
			f, ok := err.(*fault.Error)
			expect.FatalIf(t, !ok || f.Kind != fault.Invalid, "got %v, want a fault of kind Invalid", err)
			d := f.Details[0]
			if d.Location != fault.Body || d.Name != c.place || !strings.Contains(d.Description, c.says) {
				t.Errorf("got %+v, want a fault at body/%s with %q", d, c.place, c.says)
			}
		})
	}
}

func FuzzParseBody(f *testing.F) {
	for _, seed := range []string{
		`{"data":{"title":"x","items":[{"quantity":5.0001}]},"access":{"token":"t"},"options":{"pretty":true}}`,
		`{"data":{"a":1,"a":2}}`, `{"data":null}`, `[]`, "\xff", `{"data":{"a":"\ud800"}}`, `{"data":{}}{}`,
		strings.Repeat(`{"data":`, 100),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseBody(body)
		if err != nil {
			expect.FatalIf(t, fault.KindOf(err) != fault.Invalid, "%q: got %v, want kind Invalid", body, err)
			return
		}
		printed := record.Append(nil, got.data)
		again, err := record.Parse(printed)
		if err != nil || !record.Equal(again, got.data) {
			t.Fatalf("%q: got %q, which parses as %v, %v; want the same data", body, printed, again, err)
		}
	})
}
