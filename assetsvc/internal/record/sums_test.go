package record

import (
	"crypto/sha256"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestTheSameRequestHasOneSum compares the sums of all texts with each other. The texts of one line are the same
// request, and those of different lines are different requests.
// Promises: same-request
func TestTheSameRequestHasOneSum(t *testing.T) {
	const digits = "1.00000000000000000000000000000" // 30 digits
	requests := [][]string{
		{`{}`, `{"a":null}`, `{"a":null,"b":null}`},
		{`{"a":[]}`}, {`{"a":[null]}`}, {`{"a":{}}`, `{"a":{"b":null}}`}, {`{"a":""}`}, {`{"a":false}`},
		{`{"a":0}`, `{"a":-0}`, `{"a":0.00}`, `{"a":0e9}`, `{"a":-0.0E-99999999999999999999}`},
		{`{"a":5}`, `{"a":5.0}`, `{"a":5e0}`, `{"a":50e-1}`, `{"a":0.05E+02}`, `{"a":5e` + strings.Repeat("0", 99) + `}`},
		{`{"a":-5}`, `{"a":-5.00}`}, {`{"a":"5"}`}, {`{"a":"5.0"}`}, {`{"a":50}`, `{"a":5e1}`}, {`{"a":0.5}`, `{"a":5E-1}`},
		{`{"a":` + digits + `1}`, `{"a":` + digits + `10}`}, {`{"a":` + digits + `2}`}, {`{"a":1}`, `{"a":` + digits + `}`},
		{`{"a":1e999999999}`, `{"a":10e999999998}`}, {`{"a":1e-999999999}`, `{"a":0.1e-999999998}`},
		{`{"a":1e9223372036854775807}`}, {`{"a":1e99999999999999999999}`}, {`{"a":1e-99999999999999999999}`},
		{`{"a":"x","b":[{"c":1,"d":2},3]}`, `{"b":[{"d":2.0,"c":1e0,"e":null},3],"a":"x"}`},
		{`{"a":"x","b":[3,{"c":1,"d":2}]}`}, {`{"a":"x","b":[{"c":2,"d":1},3]}`},
		{`{"a":"é"}`, `{"\u0061":"\u00e9"}`}, {`{"a":"e\u0301"}`}, {`{"A":"é"}`},
	}
	seen := map[string]int{}
	for i, request := range requests {
		for _, text := range request {
			value, err := Parse([]byte(text))
			expect.FatalIf(t, err != nil, "%s: got %v, want JSON", text, err)
			sum := SumsOf(sha256.New, "", value.(Object)).Canonical
			first, found := seen[sum]
			if found != (text != request[0]) || found && first != i {
				t.Errorf("%.60s: got the sum of another request: %t, want that of %s", text, found, request[0])
			}
			seen[sum] = i
		}
	}
}

// TestOneSumInCommonIsEnough compares sums of a request with stored ones. A former program stores no canonical sum. A
// later one stores no sum of the bytes, or has another canonical form.
func TestOneSumInCommonIsEnough(t *testing.T) {
	asked := Sums{Canonical: "1:a", Bytes: "b"}
	for stored, want := range map[Sums]bool{
		asked: true, {Bytes: "b"}: true, {Canonical: "1:a"}: true, {Canonical: "2:c", Bytes: "b"}: true,
		{}: false, {Canonical: "2:a"}: false, {Canonical: "1:c", Bytes: "d"}: false,
	} {
		expect.Equal(t, asked.Match(stored), want, "%+v", stored)
	}
}
