package asset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// colourful returns a published asset that has each field of AddLaterFields. Its second document has two
// versions.
func colourful(t *testing.T) Asset {
	t.Helper()
	o := origin()
	o.Version = "2.6"
	text := strings.NewReplacer(
		`"title":`, `"colour": "red", "title":`,
		`"quantity":`, `"colour": "red", "quantity":`,
		`"unit": {`, `"unit": {"colour": "red", `,
		`"decisionID":`, `"colour": "red", "decisionID":`,
		`"telephone":`, `"colour": "red", "telephone":`,
		`"assetCustodian":`,
		`"relatedProcesses": [{"colour": "red", "relatedProcessID": "`+strings.Repeat("d", 32)+`"}],
			"assetCustodian":`,
	).Replace(validText)
	a := expect.Get(rules.Create(parse(t, text), o))(t)
	a = change(t, a, Owner, `{"status":"pending"}`)
	document := strings.Replace(validDocument, "{", `{"colour":"red",`, 1)
	a, added := changePart(t, a, "2.6", PartChange{Verb: Add, Part: part(t, "documents"), Fields: parse(t, document)})
	newer := strings.Replace(document, "/a?", "/b?", 1)
	a, _ = changePart(t, a, "2.6", PartChange{
		Verb: Replace, Part: part(t, "documents"), ID: added.Text("id"), Fields: parse(t, newer),
	})
	return a
}

// changePart changes a part. The caller has the role that may change it.
func changePart(t *testing.T, a Asset, v Version, c PartChange) (Asset, record.Object) {
	t.Helper()
	c.Version, c.Caller, c.Now, c.NewID = v, Caller{Role: c.Part.writer}, night, ids()
	next, changed, err := rules.ChangePart(a, c)
	expect.OK(t, err)
	return next, changed
}

// colours is the number of fields of version 2.6 in the asset that the function `colourful` returns.
const colours = 8

func count(value record.Value) int {
	return strings.Count(string(record.Append(nil, value)), `"colour"`)
}

func members(t *testing.T, v *View, a Asset) string {
	t.Helper()
	return string(expect.Get(v.AppendMembers(nil, a.Encode(), func(string) bool { return true }))(t))
}

func TestOldVersionsShowNoLaterFields(t *testing.T) {
	AddLaterFields(t)
	a := colourful(t)
	for _, c := range []struct {
		version Version
		shown   bool
	}{{"2.4", false}, {"2.5", false}, {"2.6", true}, {"2.10", true}, {"", true}} {
		t.Run("version "+string(c.version), func(t *testing.T) {
			check := func(what, shown string, all int) {
				t.Helper()
				want := 0
				if c.shown {
					want = all
				}
				if got := strings.Count(shown, `colour"`); got != want { // finds names of fields, and paths of patches
					t.Errorf("%s: got %d later fields, want %d: %s", what, got, want, shown)
				}
			}
			v := NewView(c.version)
			check("the asset", members(t, v, a), colours)
			made := record.Patch(record.Object{}, a.Fields())
			check("the first revision", string(record.Append(nil, v.Patch(made))), colours)
			whole := record.Patch(nil, a.Fields())
			check("a revision that replaces the asset", string(record.Append(nil, v.Patch(whole))), colours)
			for _, p := range Parts() {
				list := a.Parts(p, AllVersions)
				check(p.Path, string(record.Append(nil, v.Parts(p, list))), count(list))
				for _, element := range list {
					one := expect.Get(a.Part(p, idOf(element)))(t)
					check("one of "+p.Path, string(record.Append(nil, v.Part(p, one))), count(one))
				}
			}
			recoloured := record.Patch(a.Fields(), parse(t, strings.ReplaceAll(string(a.Encode()), `"red"`, `"blue"`)))
			if got, want := len(v.Patch(recoloured)), len(recoloured); got != 0 && !c.shown || got != want && c.shown {
				t.Errorf("a revision of later fields: got %d of %d operations, want all %t, or none", got, want,
					c.shown)
			}
		})
	}
	expect.Equal(t, count(a.Fields()), colours, "later fields in the asset")
}

func TestAViewHidesOnlyLaterFields(t *testing.T) {
	AddLaterFields(t)
	a := colourful(t)
	got := "{" + strings.TrimPrefix(members(t, NewView("2.5"), a), ",") + "}"
	want := strings.ReplaceAll(string(a.Encode()), `,"colour":"red"`, "")
	expect.ErrorIf(t, got != want, "got  %s\nwant %s", got, want)
}

func TestOldVersionsRefuseLaterFields(t *testing.T) {
	AddLaterFields(t)
	a := colourful(t)
	const says = "Rogue field: this version of the API does not have it"
	for _, c := range []struct {
		name, sent, part, place string
	}{
		{"in the asset", `{"colour":"x"}`, "", "colour"},
		{"in an item", `{"items":[{"colour":"x"}]}`, "", "items.0.colour"},
		{"below an item", `{"items":[{"unit":{"colour":null}}]}`, "", "items.0.unit.colour"},
		{"below the custodian", `{"assetCustodian":{"contactPoint":{"colour":"x"}}}`, "",
			"assetCustodian.contactPoint.colour"},
		{"in an ignored list", `{"decisions":[{"colour":"x"}]}`, "", "decisions.0.colour"},
		{"in the request for an item", `{"colour":"x"}`, "items", "colour"},
		{"below the item in a request for it", `{"unit":{"colour":"x"}}`, "items", "unit.colour"},
		{"in the request for a document", `{"colour":"x"}`, "documents", "colour"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range []Version{"2.4", "2.5"} {
				var err error
				if c.part == "" {
					_, _, err = rules.Change(a, Change{
						Fields: parse(t, c.sent), Caller: Caller{Role: Owner}, Version: v, Now: night, NewID: ids(),
					})
				} else {
					p := part(t, c.part)
					_, _, err = rules.ChangePart(a, PartChange{
						Part: p, ID: first(t, a, c.part), Verb: Merge, Fields: parse(t, c.sent),
						Caller: Caller{Role: p.writer}, Version: v, Now: night, NewID: ids(),
					})
				}
				if fault.KindOf(err) != fault.Invalid || places(err) != c.place ||
					!strings.HasSuffix(err.Error(), says) {
					t.Errorf("version %s: got %v, want a fault at %s with %q", v, err, c.place, says)
				}
			}
		})
	}
}

func TestOldVersionsKeepLaterFields(t *testing.T) {
	AddLaterFields(t)
	a := colourful(t)
	p := part(t, "documents")
	for _, c := range []struct {
		name   string
		change func(t *testing.T) Asset
		want   int
	}{
		{"a PATCH", func(t *testing.T) Asset {
			sent := parse(t, `{"title":"y","items":[{"quantity":7,"unit":{"name":"y"}}],"assetCustodian":{"name":"y"}}`)
			next, _, err := rules.Change(a, Change{
				Fields: sent, Caller: Caller{Role: Owner}, Version: "2.5", Now: night, NewID: ids(),
			})
			expect.OK(t, err)
			return next
		}, colours},
		{"a PUT", func(t *testing.T) Asset {
			sent := parse(t, strings.Replace(validText, "{",
				`{"relatedProcesses":[{"relatedProcessID":"`+strings.Repeat("e", 32)+`"}],`, 1))
			next, _, err := rules.Change(a, Change{
				Fields: sent, Whole: true, Caller: Caller{Role: Owner}, Version: "2.5", Now: night, NewID: ids(),
			})
			expect.OK(t, err)
			return next
		}, colours},
		{"a PATCH of an item", func(t *testing.T) Asset {
			sent := parse(t, `{"quantity":7,"unit":{"name":"y"}}`)
			next, _ := changePart(t, a, "2.5", PartChange{
				Part: part(t, "items"), ID: first(t, a, "items"), Verb: Merge, Fields: sent,
			})
			return next
		}, colours},
		{"a new version of a document", func(t *testing.T) Asset {
			list := a.Parts(p, AllVersions)
			next, _ := changePart(t, a, "2.5", PartChange{
				Part: p, ID: idOf(list[len(list)-1]), Verb: Replace,
				Fields: parse(t, strings.Replace(validDocument, "/a?", "/c?", 1)),
			})
			return next
		}, colours + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := c.change(t)
			if got := count(next.Fields()); got != c.want || next.Equal(a) {
				t.Errorf("got %d later fields, want %d, in a changed asset: %s", got, c.want, next.Encode())
			}
		})
	}
}

func TestOldVersionsNeedNoLaterField(t *testing.T) {
	AddLaterFields(t)
	itemModel.fields[len(itemModel.fields)-1].required = true
	for _, c := range []struct {
		version Version
		want    string
	}{{"2.4", "<nil>"}, {"2.5", "<nil>"}, {"2.6", "items.0.colour"}} {
		o := origin()
		o.Version = c.version
		if _, err := rules.Create(parse(t, validText), o); places(err) != c.want {
			t.Errorf("version %s: got %v, want a fault at %s", c.version, err, c.want)
		}
	}
}

func TestNoErrorSuggestsALaterField(t *testing.T) {
	AddLaterFields(t)
	for _, c := range []struct {
		version Version
		want    bool
	}{{"2.5", false}, {"2.6", true}} {
		o := origin()
		o.Version = c.version
		_, err := rules.Create(parse(t, validText).With("color", "x"), o)
		if got := err != nil && strings.Contains(err.Error(), "'colour'"); got != c.want {
			t.Errorf("version %s: got %v, want a suggestion of the field: %t", c.version, err, c.want)
		}
	}
}

// TestHiddenFieldsOfTheVersions checks that the hidden paths and their order stay the same. Fingerprints of
// creations depend on both: with another order, an upgraded registry would refuse to repeat a creation.
func TestHiddenFieldsOfTheVersions(t *testing.T) {
	for _, c := range []struct {
		version Version
		groups  []Group
		want    []string
	}{
		{"2.4", nil, []string{
			"rectificationPeriod", "assetCustodian.additionalContactPoints", "assetHolder.additionalContactPoints",
			"documents.sha256", "documents.size",
		}},
		{"2.5", nil, nil},
		{"2.5", []Group{Contacts}, []string{
			"assetCustodian.additionalContactPoints", "assetCustodian.contactPoint",
			"assetHolder.additionalContactPoints", "assetHolder.contactPoint",
		}},
		{"2.5", []Group{Addresses, Locations}, []string{
			"items.location", "assetCustodian.address.postalCode", "assetCustodian.address.streetAddress",
			"assetHolder.address.postalCode", "assetHolder.address.streetAddress",
			"items.address.postalCode", "items.address.streetAddress",
		}},
	} {
		expect.NoDiff(t, cmp.Diff(c.want, NewView(c.version, c.groups...).Hidden()),
			"version %s without %v: the hidden fields differ", c.version, c.groups)
	}
}

func TestOnlyKnownGroupsAreHidden(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  []Group
		fails bool
	}{
		{nil, nil, false},
		{[]string{"locations", "contacts", "locations"}, []Group{Contacts, Locations}, false},
		{[]string{"contacts", "titles"}, []Group{Contacts, "titles"}, true},
		{[]string{""}, []Group{""}, true},
	} {
		got, err := ParseGroups(c.names)
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.fails {
			t.Errorf("%q: got %v, %v; want %v and failure %t", c.names, got, err, c.want, c.fails)
		}
	}
}

func TestVersionsAreOrderedAsNumbers(t *testing.T) {
	for _, c := range []struct {
		version, since Version
		want           bool
	}{
		{"2.4", "2.5", true}, {"2.5", "2.5", false}, {"2.6", "2.5", false}, {"2.9", "2.10", true},
		{"2.10", "2.9", false},
		{"2.4", "3.0", true}, {"3.0", "2.4", false}, {"", "2.5", false}, {"2.4", "", false},
	} {
		expect.Equal(t, c.version.before(c.since), c.want, "%q before %q", c.version, c.since)
	}
}
