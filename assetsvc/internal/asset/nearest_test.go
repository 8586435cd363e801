package asset

import (
	"fmt"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

// The function `at` returns the value at a dotted path, or nil if the path does not exist.
func at(value record.Value, path string) record.Value {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case record.Object:
			value = v.Get(step)
		case record.List:
			value = nil
			if i := int(step[0] - '0'); i < len(v) {
				value = v[i]
			}
		}
	}
	return value
}

// put returns a copy of a value, in which the value at a dotted path is replaced by the last argument.
func put(value record.Value, path string, by record.Value) record.Value {
	if path == "" {
		return by
	}
	step, rest, _ := strings.Cut(path, ".")
	if l, ok := value.(record.List); ok {
		changed := append(record.List{}, l...)
		i := int(step[0] - '0')
		changed[i] = put(l[i], rest, by)
		return changed
	}
	o, _ := value.(record.Object)
	return o.With(step, put(o.Get(step), rest, by))
}

// TestRefusalsNameTheNearest sends invalid values. The error text must name the nearest valid value, or the
// valid form.
func TestRefusalsNameTheNearest(t *testing.T) {
	const scheme, code = "assetCustodian.identifier.scheme", "items.0.classification.id"
	for _, c := range []struct{ name, path, sent, want string }{
		{"a scheme with a typing error", scheme, `"UA-EDRPOU"`,
			"Value must be one of 155 values: the nearest is 'UA-EDR'."},
		{"a scheme in another case", scheme, `"ua_edr"`, "Value must be one of 155 values: the nearest is 'UA-EDR'."},
		{"a code with another last digit", code, `"04121000-9"`,
			"Value must be one of 85 values: the nearest is '04121000-2'."},
		{"a code without the last digit", code, `"06111000"`,
			"Value must be one of 85 values: the nearest is '06111000-3'."},
		{"a code that is too coarse", code, `"06100000-3"`,
			"At least CAV-PS classification class (XXXX0000-Y) should be specified more precisely: the nearest is '06110000-6'"},
		{"a short list is printed", "items.0.classification.scheme", `"CAVPS"`,
			"Value must be one of ['CAV-PS', 'CPV']."},
		{"a code of another form", "items.0.additionalClassifications.0",
			`{"scheme":"dk018","id":"x","description":"x"}`,
			`String value did not match validation regex. An id of dk018 has the form ^[0-9]{1,4}(\.[0-9]{1,2})?$.`},
		{"a field in another case", "Title", `"x"`, "Rogue field: the nearest is 'title'"},
		{"a field in another style", "asset_custodian", `{}`, "Rogue field: the nearest is 'assetCustodian'"},
		{"a field of an item's unit", "items.0.unit.cod", `"x"`, "Rogue field: the nearest is 'code'"},
		{"a field far from all others", "items.0.unit.ъъъъъъъъъъъъъъъъъъъ", `"x"`, "Rogue field"},
		{"a field within a third", "titel_enx", `"x"`, "Rogue field: the nearest is 'title_en'"},
		{"a field beyond a third", "titleABC", `"x"`, "Rogue field"},
		{"a token field is not suggested", "ownerToken", `"x"`, "Rogue field"},
		{"a field of a later version", "rectificationPeriod", `{}`,
			"Rogue field: this version of the API does not have it"},
		{"a field of sandboxes", "sandboxParameters", `"x"`, "Rogue field: only a sandbox has it"},
		{"a hidden field is not suggested", "sandboxParameter", `"x"`, "Rogue field"},
		{"an unknown type", "assetType", `"castle"`, "Not implemented: the types are 'bounce', 'domain'"},
		{"a missing type", "assetType", `null`, "This field is required."},
		{"an empty type", "assetType", `""`, "This field is required."},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent := put(parse(t, validText), c.path, parse(t, `{"x":`+c.sent+`}`).Get("x")).(record.Object)
			o := origin()
			o.Version = "2.4"
			_, err := rules.Create(sent, o)
			if err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestNearestIsBounded sends more than maxNearest unknown names. Each must have a fault, but only maxNearest
// faults may suggest a name.
func TestNearestIsBounded(t *testing.T) {
	sent := parse(t, validText)
	for i := range 2 * maxNearest {
		sent = append(sent, record.Member{Name: fmt.Sprintf("description%d", i), Value: true})
	}
	_, err := rules.Create(sent, origin())
	expect.Equal(t, strings.Count(err.Error(), "the nearest is"), maxNearest, "suggestions")
	expect.Equal(t, strings.Count(err.Error(), rogue), 2*maxNearest, "faults")
}
