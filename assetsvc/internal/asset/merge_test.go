package asset

import (
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// Promises: merge
func TestMerge(t *testing.T) {
	two := `{"items":[{},{"description":"Друге","classification":{"id":"06111000-3","description":"Земля"},"unit":{"code":"x"},"quantity":1,"address":{"countryName":"У"},"registrationDetails":{}}]}`
	for _, c := range []struct{ name, patch, path, want string }{
		{"a scalar replaces", `{"title":"нова"}`, "title", `"нова"`},
		{"an object merges", `{"assetCustodian":{"name":"x"}}`, "assetCustodian.contactPoint.telephone",
			`"0440000000"`},
		{"null clears an optional field", `{"assetCustodian":{"contactPoint":{"email":"a@b.ua"}},"title_en":null}`,
			"title_en", `null`},
		{"null clears a field of an item", `{"items":[{"unit":{"name":null}}]}`, "items.0.unit.name", `null`},
		{"a list merges by index", `{"items":[{},{"quantity":2}]}`, "items.1.description", `"Друге"`},
		{"an empty element changes nothing", `{"items":[{},{"quantity":2}]}`, "items.0.quantity", `5.0001`},
		{"a shorter list truncates", `{"items":[{}]}`, "items.1", `null`},
		{"an empty list clears", `{"items":[{"additionalClassifications":[]},{}]}`,
			"items.0.additionalClassifications", `null`},
		{"null clears a list", `{"items":[{},{}],"relatedProcesses":null}`, "relatedProcesses", `null`},
		{"an id in the patch replaces", `{"items":[{"id":"` + strings.Repeat("d", 32) + `"},{}]}`, "items.0.id",
			`"` + strings.Repeat("d", 32) + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := change(t, valid(t, two), Owner, c.patch)
			expect.Equal(t, string(record.Append(nil, at(a.fields, c.path))), c.want, "%s", c.path)
		})
	}
}

func TestPutReplacesTheWholeAsset(t *testing.T) {
	a := valid(t, `{"title_en":"premises","assetCustodian":{"additionalContactPoints":[{"name":"x","email":"a@b.ua"}]}}`)
	put := func(text string, v Version) (Asset, bool, error) {
		return rules.Change(a, Change{Fields: parse(t, text), Whole: true, Caller: Caller{Role: Owner}, Version: v,
			Now: evening, NewID: ids()})
	}
	next, differs, err := put(validText, "2.5")
	if err != nil || !differs || next.fields.Get("title_en") != nil ||
		next.fields.Object("assetCustodian").Get("additionalContactPoints") != nil || next.Status() != Draft {
		t.Errorf("got %v, %v; want a draft without the fields that the PUT leaves out", next.fields, err)
	}
	if next, _, err = put(validText, "2.4"); err != nil ||
		next.fields.Object("assetCustodian").Get("additionalContactPoints") == nil {
		t.Errorf("version 2.4: got %v, %v; want the fields of later versions kept", next.fields, err)
	}
	if _, _, err := put(`{"title":"x"}`, "2.5"); fault.KindOf(err) != fault.Invalid ||
		places(err) != "description assetCustodian" {
		t.Errorf("required fields left out: got %v, want faults at description and assetCustodian", err)
	}
}

// TestPutOfAStatusChangesNothingElse has an administrator who sends a PUT with only a status to an asset in test
// mode. The other fields must stay. Only a null in the PUT may remove a field.
func TestPutOfAStatusChangesNothingElse(t *testing.T) {
	a := valid(t, `{"mode":"test","rectificationPeriod":{"startDate":"2026-11-20T00:00:00+00:00"}}`)
	put := func(text string) Asset {
		t.Helper()
		next, _, err := rules.Change(a, Change{Fields: parse(t, text), Whole: true, Caller: Caller{Role: Administrator},
			Version: "2.5", Now: evening, NewID: ids()})
		expect.OK(t, err)
		return next
	}
	if next := put(`{"status":"draft"}`); !record.Equal(next.fields, a.fields) {
		t.Errorf("got %s, want %s", next.Encode(), a.Encode())
	}
	next := put(`{"status":"draft","mode":null,"rectificationPeriod":null}`)
	if next.fields.Get("mode") != nil || next.fields.Get(periodField) != nil {
		t.Errorf("with null: got %s, want neither mode nor period", next.Encode())
	}
}

func FuzzMergePatch(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"title":"x"}`, `{"items":[{},{"quantity":1e5}]}`, `{"items":[]}`, `{"items":null,"status":"pending"}`,
		`{"assetCustodian":{"contactPoint":null}}`,
		`{"mode":"test","rectificationPeriod":{"endDate":"2026-01-01"}}`,
		`{"status":"deleted","documents":[{"documentType":"cancellationDetails"}]}`, `{"decisions":["x"]}`,
		`{"items":[{"id":null}],"relatedProcesses":[{"id":null}]}`,
		`{"relatedProcesses":[{"type":"lot","relatedProcessID":"` + strings.Repeat("b", 32) + `"}]}`,
		`{"title":["x"],"colour":{"a":[1]}}`,
	} {
		for role := range allRoles {
			f.Add([]byte(seed), uint8(role), uint8(len(seed)), len(seed)%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, role, status uint8, whole bool) {
		value, err := record.Parse(text)
		patch, ok := value.(record.Object)
		if err != nil || !ok {
			return
		}
		before := in(t, Statuses[int(status)%len(Statuses)])
		kept := string(before.Encode())
		c := Change{Fields: patch, Whole: whole, Caller: Caller{Role: allRoles[int(role)%len(allRoles)]},
			Now: evening, NewID: ids()}
		next, differs, err := rules.Change(before, c)
		if string(before.Encode()) != kept {
			t.Fatalf("%s: got argument %s after the call, want %s", text, before.Encode(), kept)
		}
		if err != nil {
			if kind := fault.KindOf(err); kind != fault.Invalid && kind != fault.Forbidden || differs {
				t.Fatalf("%s: got %v, differs %t; want kind Invalid or Forbidden and no change", text, err, differs)
			}
			return
		}
		again, err := Decode(next.Encode())
		if err != nil || !record.Equal(again.fields, next.fields) {
			t.Fatalf("%s: decoded: got %s, %v; want %s", text, again.Encode(), err, next.Encode())
		}
		if next.ID() != before.ID() || next.Owner() != before.Owner() ||
			!before.Status().mayBecome(next.Status(), c.Role) {
			t.Fatalf("%s: got %s from %s, want the same id and owner, and an allowed step", text, next.Encode(),
				before.Encode())
		}
		if next.Status().mayChange(c.Role) && !whole {
			again := Change{Fields: patch, Caller: Caller{Role: c.Role}, Now: evening, NewID: ids()}
			if _, differs, err = rules.Change(next, again); differs && err == nil && next.Status() == before.Status() {
				t.Fatalf("%s again: got a change of %s, want none", text, next.Encode())
			}
		}
	})
}
