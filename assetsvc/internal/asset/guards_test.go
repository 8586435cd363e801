package asset

import (
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func parseList(t *testing.T, text string) record.List {
	t.Helper()
	return expect.Get(record.Parse([]byte(text)))(t).(record.List)
}

// TestAPatchShowsNoHiddenField has a patch with each kind of change, in hidden and in visible fields. Only the
// visible fields must remain.
func TestAPatchShowsNoHiddenField(t *testing.T) {
	v := NewView("", Contacts, Addresses)
	got := v.Patch(parseList(t, `[
		{"op":"replace","path":"/title","value":"x"},
		{"op":"replace","path":"/assetCustodian/contactPoint/name","value":"secret"},
		{"op":"replace","path":"/assetCustodian","value":{"name":"n","contactPoint":{"name":"secret"}}},
		{"op":"replace","path":"/assetCustodian/name","value":"n"},
		{"op":"remove","path":"/assetHolder"},
		{"op":"remove","path":"/assetHolder/contactPoint"},
		{"op":"add","path":"/items/0/address/streetAddress","value":"secret"},
		{"op":"add","path":"/items/-","value":{"description":"d","address":{"region":"r","postalCode":"secret"}}},
		{"op":"add","path":"/items/0/address","value":{"region":"r","postalCode":"secret"}}]`))
	want := parseList(t, `[
		{"op":"replace","path":"/title","value":"x"},
		{"op":"replace","path":"/assetCustodian","value":{"name":"n"}},
		{"op":"replace","path":"/assetCustodian/name","value":"n"},
		{"op":"remove","path":"/assetHolder"},
		{"op":"add","path":"/items/-","value":{"description":"d","address":{"region":"r"}}},
		{"op":"add","path":"/items/0/address","value":{"region":"r"}}]`)
	if g, w := string(record.Append(nil, got)), string(record.Append(nil, want)); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

func TestAViewIsWholeOrHides(t *testing.T) {
	for _, c := range []struct {
		view  *View
		whole bool
	}{
		{NewView(""), true}, {NewView("2.5"), true}, {NewView("", Locations), false}, {NewView("2.3"), false},
	} {
		expect.Equal(t, c.view.IsWhole(), c.whole, "a view that hides %v, whole", c.view.Hidden())
	}
	items := parts[0]
	v := NewView("", Locations)
	if got := v.Part(items, nil); got != nil {
		t.Errorf("no part: got %v, want none", got)
	}
	part := record.Object{{Name: "id", Value: "x"}}
	if got := v.Part(items, part.With("location", "secret")); string(record.Append(nil, got)) != `{"id":"x"}` {
		t.Errorf("a part with a location: got %s, want nothing but its id", record.Append(nil, got))
	}
}

func TestMembersAreShownAsWanted(t *testing.T) {
	v := NewView("", Contacts)
	wanted := func(name string) bool { return name != "title" }
	for _, c := range []struct {
		encoded, want string
		fails         bool
	}{
		{`{"id":"x","title":"y","assetCustodian":{"name":"n","contactPoint":{"name":"secret"}}}`,
			`,"id":"x","assetCustodian":{"name":"n"}`, false},
		{`{"id":"x","assetCustodian":{"name":"n"}}`, `,"id":"x","assetCustodian":{"name":"n"}`, false},
		{`{"id":"x","title"`, "", true},
		{`{"assetCustodian":{"contactPoint"}}`, "", true},
	} {
		got, err := v.AppendMembers(nil, []byte(c.encoded), wanted)
		if (err != nil) != c.fails || !c.fails && string(got) != c.want || strings.Contains(string(got), "secret") {
			t.Errorf("%s: got %s, %v; want %s, an error: %v", c.encoded, got, err, c.want, c.fails)
		}
	}
}

func TestGroupsOfGroups(t *testing.T) {
	for _, c := range []struct {
		others, some []Group
		want         bool
	}{
		{nil, nil, true}, {[]Group{Contacts}, nil, true}, {nil, []Group{Contacts}, false},
		{[]Group{Addresses, Contacts}, []Group{Contacts}, true}, {[]Group{Contacts}, []Group{Contacts, Locations}, false},
	} {
		expect.Equal(t, HasGroups(c.others, c.some), c.want, "%v in %v", c.some, c.others)
	}
}

// TestWhoMayNotCreate has creations with several faults. Each case names the fault that must be reported first.
func TestWhoMayNotCreate(t *testing.T) {
	for _, c := range []struct {
		name     string
		barred   string
		testOnly bool
		patch    string
		kind     fault.Kind
		places   string
		text     string // part of the error
	}{
		{"a barred broker", "blocked", false, `{}`, fault.Forbidden, "accreditation", "blocked"},
		{"a barred broker, of an unknown type", "blocked", false, `{"assetType":"x"}`, fault.Invalid, "assetType", ""},
		{"a barred broker, of other faults", "blocked", false, `{"title":5,"x":1}`, fault.Forbidden, "accreditation", ""},
		{"a key for tests, in earnest", "", true, `{}`, fault.Forbidden, "mode", "test-only"},
		{"a key for tests, with faults", "", true, `{"x":1}`, fault.Invalid, "x", ""},
	} {
		fields := parse(t, validText)
		for _, m := range parse(t, c.patch) {
			fields = fields.With(m.Name, m.Value)
		}
		o := origin()
		o.Barred, o.TestOnly = c.barred, c.testOnly
		a, err := rules.Create(fields, o)
		if fault.KindOf(err) != c.kind || places(err) != c.places || !strings.Contains(err.Error(), c.text) || a.ID() != "" {
			t.Errorf("%s: got %s, %v; want a fault at %s", c.name, a.ID(), err, c.places)
		}
	}
	o := origin()
	o.TestOnly = true
	if a, err := rules.Create(parse(t, validText).With("mode", "test"), o); err != nil || !a.Test() {
		t.Errorf("a key for tests, in test mode: got test %v, %v; want an asset in test mode", a.Test(), err)
	}
}

// TestARefusalTellsWhyTheCallerIsNotTheOwner lets a caller who is not the owner change assets in several states. If
// the owner may change the asset in this state, the error must say why the caller is not the owner. Otherwise it must
// not.
func TestARefusalTellsWhyTheCallerIsNotTheOwner(t *testing.T) {
	const why = "the token is another"
	stranger := Caller{Role: Other, NotOwner: why}
	for s, tells := range map[Status]bool{Draft: true, Pending: true, Verification: false, Complete: false} {
		_, _, err := rules.Change(in(t, s), Change{Fields: parse(t, `{}`), Caller: stranger, Now: evening, NewID: ids()})
		if err == nil || strings.Contains(err.Error(), why) != tells {
			t.Errorf("a change in %s: got %v, want a refusal that says so: %v", s, err, tells)
		}
	}
	a := valid(t, `{}`)
	for _, p := range parts {
		err := a.Admit(stranger, p, "")
		if tells := p.writer == Owner; err == nil || strings.Contains(err.Error(), why) != tells {
			t.Errorf("%s: got %v, want a refusal that says so: %v", p.Path, err, tells)
		}
		if err := a.Admit(Caller{Role: Other}, p, ""); err == nil || !strings.Contains(err.Error(), "only the") {
			t.Errorf("%s, without a reason: got %v, want a refusal that names the role", p.Path, err)
		}
	}
}

// TestTitlesOfTestAssetsSaySo creates assets with and without test mode. In test mode, the title must have the
// prefix exactly once.
func TestTitlesOfTestAssetsSaySo(t *testing.T) {
	for _, c := range []struct{ title, mode, want string }{
		{"Дім", "", "Дім"}, {"Дім", "test", "[ТЕСТУВАННЯ] Дім"}, {"[ТЕСТУВАННЯ] Дім", "test", "[ТЕСТУВАННЯ] Дім"},
	} {
		fields := parse(t, validText).With("title", c.title)
		if c.mode != "" {
			fields = fields.With("mode", c.mode)
		}
		a := expect.Get(rules.Create(fields, origin()))(t)
		if got := a.Fields().Text("title"); got != c.want || a.Fields().Get("title_en") != nil || a.Test() != (c.mode != "") {
			t.Errorf("%q in mode %q: got %q, title_en %v, test %v; want %q and no title_en", c.title, c.mode, got,
				a.Fields().Get("title_en"), a.Test(), c.want)
		}
	}
}

func TestPartsAreFoundByTheirIDs(t *testing.T) {
	a := in(t, Pending)
	items, documents := parts[0], parts[2]
	item, document := a.Parts(items, Newest)[0].(record.Object), a.Parts(documents, Newest)[0].(record.Object)
	if got, err := a.Part(items, item.Text("id")); err != nil || !record.Equal(got, item) {
		t.Errorf("an item: got %v, %v; want %v and nothing else", got, err, item)
	}
	for _, id := range []string{"none", ""} {
		expect.FaultOf(t, fault.NotFound, "item %q", id)(a.Part(items, id))
		expect.FaultOf(t, fault.NotFound, "document %q", id)(a.Download(documents, id, ""))
	}
	expect.Value(t, document.Text("url"), "a document")(a.Download(documents, document.Text("id"), ""))
	other := strings.Repeat("c", 32) // id of a document without a url
	expect.FaultOf(t, fault.NotFound, "a document without a url")(a.Download(documents, other, "prozorro"))
}

func TestAStoredAssetHasAnIDAndAStatus(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", `{"id":"x"}`, `{"status":"draft"}`} {
		if got, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	if got, err := Decode([]byte(`{"id":"x","status":"draft"}`)); err != nil || got.ID() != "x" {
		t.Errorf("got %v, %v; want an asset", got, err)
	}
}
