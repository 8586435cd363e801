package asset

import (
	"encoding/json"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

// TestNumbersComeBackAsSentOrAreRefused sends values to fields that accept strings and numbers. If a case has an
// empty text in the field `want`, the value must be refused.
// Promises: numbers-as-sent
func TestNumbersComeBackAsSentOrAreRefused(t *testing.T) {
	const id, latitude, elevation = "assetCustodian.identifier.id", "items.0.location.latitude",
		"items.0.location.elevation"
	for _, c := range []struct{ name, path, sent, want string }{
		{"an id in a string", id, `"00037256"`, `"00037256"`},
		{"an id in an integer", id, `37256`, `37256`},
		{"an id of 15 digits", id, `-999999999999999`, `-999999999999999`},
		{"an id of 16 digits", id, `1000000000000000`, ""},
		{"an id of 5,000 digits", id, strings.Repeat("9", 5000), ""},
		{"an id with an exponent", id, `1e400`, ""},
		{"an id with a fraction", id, `1.0`, ""},
		{"a null id", id, `null`, ""},
		{"an empty id", id, `""`, ""},
		{"a boolean id", id, `true`, ""},
		{"an id in a list", id, `[1e400]`, ""},
		{"an id in an object", id, `{"a":1e400}`, ""},
		{"a latitude in a number", latitude, `50.4501000`, `50.4501000`},
		{"a latitude in a string", latitude, `"50.4501000"`, `"50.4501000"`},
		{"a latitude with an exponent", latitude, `5.04501e1`, `5.04501e1`},
		{"a latitude beyond a float", latitude, `1e400`, ""},
		{"a latitude of 40 characters", latitude, "50." + strings.Repeat("4", 37), "50." + strings.Repeat("4", 37)},
		{"a latitude of 41 characters", latitude, "50." + strings.Repeat("4", 38), ""},
		{"a latitude of 5,000 digits", latitude, strings.Repeat("9", 5000), ""},
		{"a latitude of 5,000 decimals", latitude, "50." + strings.Repeat("4", 5000), ""},
		{"a boolean latitude", latitude, `true`, ""},
		{"an empty latitude", latitude, `""`, ""},
		{"a null latitude", latitude, `null`, ""},
		{"an elevation in a string", elevation, `"170 m"`, `"170 m"`},
		{"an elevation in a number", elevation, `-170`, `-170`},
		{"an elevation beyond a float", elevation, `-1e309`, ""},
		{"an elevation in a list", elevation, `[1]`, ""},
		{"an elevation close to zero", elevation, `1e-400`, `1e-400`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent := parse(t, `{"x":`+c.sent+`}`).Get("x")
			in := put(parse(t, validText), "items.0.location", parse(t, `{"latitude":"50.45","longitude":30.5234}`))
			a, err := rules.Create(put(in, c.path, sent).(record.Object), origin())
			if c.want == "" {
				if places(err) != c.path {
					t.Errorf("got %s, %v; want a fault at %s", a.Encode(), err, c.path)
				}
				return
			}
			if got := string(record.Append(nil, at(a.fields, c.path))); err != nil || got != c.want {
				t.Fatalf("got %s, %v; want %s", got, err, c.want)
			}
			var decoded map[string]any
			expect.Nil(t, json.Unmarshal(a.Encode(), &decoded), "decode %s with encoding/json", a.Encode())
		})
	}
}

func FuzzNumbers(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1e308", "1e309", "-1.5e-999", "123456789012345", "0.1e1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := record.Parse([]byte(text))
		number, ok := value.(record.Number)
		if err != nil || !ok {
			return
		}
		for _, of := range []plain{identifierID, coordinate} {
			kept := of.convert(&walk{rules: rules}, "x", nil, number)
			if kept == nil {
				continue
			}
			var decoded float64
			if err := json.Unmarshal([]byte(kept.(record.Number)), &decoded); err != nil || kept != number {
				t.Fatalf("%s: got %v, %v; want the number as sent", text, kept, err)
			}
		}
	})
}

// Promises: index
func TestAnIndexHasAtMost18Digits(t *testing.T) {
	for index, fits := range map[string]bool{"999999999999999999": true, "-999999999999999999": true, "1000000000000000000": false} {
		document := strings.Replace(validDocument, "{", `{"index":`+index+`,`, 1)
		_, _, err := ask(t, in(t, Pending), Owner, "documents", Add, document)
		if fits && err != nil || !fits && places(err) != "index" {
			t.Errorf("%s: got %v, want a fault at index: %t", index, err, !fits)
		}
	}
}
