package asset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestEveryTextHasALength sends a very long text in each field of each object. The text must never be stored.
// Promises: text-lengths
func TestEveryTextHasALength(t *testing.T) {
	seen := map[*model]bool{}
	var visit func(m *model)
	visit = func(m *model) {
		if seen[m] {
			return
		}
		seen[m] = true
		for _, f := range m.fields {
			of := f.of
			if l, ok := of.(list); ok {
				of = l.of
			}
			if inner, ok := of.(*model); ok {
				visit(inner)
			}
			k, ok := of.(plain)
			if !ok {
				continue
			}
			for _, sent := range []record.Value{
				strings.Repeat("9", 1_000_000), strings.Repeat("a", 1_000_000), "https://example.org/" + strings.Repeat("a", 1_000_000),
				"x@example." + strings.Repeat("org.", 250_000) + "org", "a/" + strings.Repeat("b", 1_000_000),
				"2026-11-20T12:00:00." + strings.Repeat("1", 1_000_000), record.Number(strings.Repeat("9", 1_000_000)),
			} {
				w := &walk{rules: rules, version: "2.5", newID: ids()}
				value := k.convert(w, f.name, nil, sent)
				if got := fmt.Sprint(value); len(got) > proseLength && len(w.details) == 0 {
					t.Errorf("%s of %s: %.30q is stored with %d characters, want it refused", f.name, m.name, sent, len(got))
				}
			}
		}
	}
	visit(assetModel)
}

// limits has, for each field, its greatest length, and a change of an asset that sets the field to a text.
var limits = []struct {
	name  string
	most  int
	patch string // %s is replaced by the text
}{
	{"title", lineLength, `{"title":"%s"}`},
	{"description", proseLength, `{"description":"%s"}`},
	{"assetCustodian.identifier.id", codeLength, `{"assetCustodian":{"identifier":{"id":"%s"}}}`},
	{"assetCustodian.name", lineLength, `{"assetCustodian":{"name":"%s"}}`},
	{"assetCustodian.contactPoint.telephone", codeLength, `{"assetCustodian":{"contactPoint":{"telephone":"%s"}}}`},
	{"items.0.address.region", lineLength, `{"items":[{"address":{"region":"%s"}}]}`},
	{"items.0.unit.code", codeLength, `{"items":[{"unit":{"code":"%s"}}]}`},
	{"items.0.location.latitude", codeLength, `{"items":[{"location":{"latitude":"%s","longitude":"1"}}]}`},
}

// Promises: text-lengths
func TestTextsAreRefusedBeyondTheirLength(t *testing.T) {
	for _, c := range limits {
		for _, letter := range []string{"x", "ї", "漢"} { // the limits count characters, not bytes
			patch := func(n int) error {
				_, _, err := rules.Change(valid(t, `{}`), Change{
					Fields: parse(t, fmt.Sprintf(c.patch, strings.Repeat(letter, n))), Caller: Caller{Role: Owner},
					Version: "2.5", Now: evening, NewID: ids(),
				})
				return err
			}
			expect.Nil(t, patch(c.most), "%s with %d characters", c.name, c.most)
			err := patch(c.most + 1)
			want := fmt.Sprintf("at most %d characters", c.most)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), letter) > 1000 {
				t.Errorf("%s with %d characters: got %.200v, want a fault of kind Invalid that says %q", c.name, c.most+1, err, want)
			}
		}
	}
}

// overlong returns a value whose texts are longer than the rules allow. Earlier programs may have stored such
// values.
func overlong(of kind, v record.Value) record.Value {
	switch of := of.(type) {
	case *model:
		out := record.Object{}
		for _, m := range v.(record.Object) {
			for _, f := range of.fields {
				if f.name == m.Name {
					m.Value = overlong(f.of, m.Value)
				}
			}
			out = append(out, m)
		}
		return out
	case list:
		out := record.List{}
		for _, element := range v.(record.List) {
			out = append(out, overlong(of.of, element))
		}
		return out
	case plain:
		if _, isText := v.(string); !isText || of.most == 0 || strings.Contains(fmt.Sprint(v), ".") { // keep a code
			return v
		}
		if of.form.Pattern == "^$|"+shownURL {
			return "https://example.org/" + strings.Repeat("x", of.most)
		}
		return fmt.Sprint(v) + strings.Repeat("ї", of.most)
	}
	return v
}

// overlongIn returns an asset in the given state, with texts that are longer than the rules allow. Its ids and the
// codes from lists are valid.
func overlongIn(t *testing.T, s Status) Asset {
	t.Helper()
	a := in(t, s)
	fields := overlong(assetModel, a.fields).(record.Object)
	for _, name := range []string{"id", "assetID", "owner"} {
		if value := a.fields.Get(name); value != nil {
			fields = fields.With(name, value)
		}
	}
	items := record.List{}
	for _, item := range fields.List("items") {
		item := item.(record.Object)
		class := item.Object("classification")
		items = append(items, item.With("classification", class.With("id", "06111000-3")))
	}
	return Asset{fields: fields.With("items", items)}
}

// TestStoredTextsMayBeTooLong has assets whose stored texts are longer than the rules allow. It moves each asset to
// every state that follows, and sends the texts back unchanged. Only new texts must be refused.
func TestStoredTextsMayBeTooLong(t *testing.T) {
	for _, s := range Statuses {
		a := overlongIn(t, s)
		for _, by := range []Role{Owner, Concierge, Administrator} {
			if len(a.fields.Text("title")) <= lineLength || !s.mayChange(by) {
				continue
			}
			same, differs, err := rules.Change(a, Change{Fields: a.fields, Whole: true, Caller: Caller{Role: by},
				Version: "2.5", Now: evening, NewID: ids()})
			if err != nil || differs {
				t.Errorf("%s, %v: a PUT of what GET gave: got %.300v and a change %t of %s, want neither", s, by, err, differs, same.Status())
			}
			for _, to := range Statuses {
				if !s.mayBecome(to, by) {
					continue
				}
				for _, whole := range []bool{false, true} {
					fields := record.Object{{Name: "status", Value: string(to)}}
					if whole {
						fields = a.fields.With("status", string(to))
					}
					_, _, err := rules.Change(a, Change{Fields: fields, Whole: whole, Caller: Caller{Role: by},
						Version: "2.5", Now: evening, NewID: ids()})
					expect.ErrorIf(t, err != nil, "%s to %s by %v, PUT %t: got %.300v, want nil", s, to, by, whole, err)
				}
			}
		}
	}
}

// TestAFaultyTextIsToldOnce sends, in every field, texts that each break several rules. Each text must get only
// one fault.
// Promises: no-u0000, all-faults
func TestAFaultyTextIsToldOnce(t *testing.T) {
	refused := 0
	eachModel("", assetModel, func(path string, m *model) {
		for _, f := range m.fields {
			k, isPlain := f.of.(plain)
			if !isPlain {
				continue
			}
			for _, text := range []string{"\x00", "2026-11-20\x00", "abc \x00" + strings.Repeat("ї", proseLength)} {
				w := &walk{rules: rules, version: "2.5", newID: ids()}
				k.convert(w, "x."+f.name, nil, text)
				if len(w.details) > 1 {
					t.Errorf("%s.%s: got %d faults of one text, want one: %.300v", path, f.name, len(w.details), w.details)
				}
				refused += len(w.details)
			}
		}
	})
	expect.ErrorIf(t, refused < 100, "got %d refused texts, want at least 100: texts of all fields", refused)
}

// TestOtherChangesKeepTextsThatAreTooLong changes assets with stored texts that the rules would refuse in a
// request. A change that adds no such text must be accepted.
// Promises: no-u0000, text-lengths
func TestOtherChangesKeepTextsThatAreTooLong(t *testing.T) {
	a := overlongIn(t, Pending)
	second := record.Object{}
	for _, m := range a.fields.List("items")[0].(record.Object) {
		if m.Name == "id" {
			m.Value = strings.Repeat("e", 32)
		}
		second = append(second, m)
	}
	both := Asset{fields: a.fields.With("items", append(a.fields.List("items"), second))}
	send := func(a Asset, whole bool, fields record.Object) error {
		_, _, err := rules.Change(a, Change{Fields: fields, Whole: whole, Caller: Caller{Role: Owner},
			Version: "2.5", Now: evening, NewID: ids()})
		return err
	}
	title := a.fields.Text("title")
	null := Asset{fields: in(t, Draft).fields.With("title", "\x00x")}
	for _, c := range []struct {
		name   string
		a      Asset
		whole  bool
		fields record.Object
		says   string // part of the error; "": the change is accepted
	}{
		{"another field", a, false, parse(t, `{"title_en":"x"}`), ""},
		{"the same text", a, false, record.Object{{Name: "title", Value: title}}, ""},
		{"a list without its first element", both, true, both.fields.With("items", record.List{second}), ""},
		{"a shorter text", a, false, parse(t, `{"title":"x"}`), ""},
		{"a longer text", a, false, record.Object{{Name: "title", Value: title + "x"}}, "too long"},
		{"another text of the length", a, false, record.Object{{Name: "title", Value: "x" + strings.TrimSuffix(title, "ї")}}, "too long"},
		{"the text in another field", a, false, record.Object{{Name: "title_en", Value: title}}, "too long"},
		{"U+0000 that the asset has", null, true, null.fields, ""},
		{"U+0000 in another text", null, false, record.Object{{Name: "title", Value: "\x00y"}}, "U+0000"},
		{"U+0000 in another field", null, false, record.Object{{Name: "description", Value: "\x00x"}}, "U+0000"},
		{"U+0000 in a list", null, false, parse(t, `{"items":[{"description":"\u0000"}]}`), "U+0000"},
	} {
		err := send(c.a, c.whole, c.fields)
		if err == nil && c.says != "" || err != nil && (c.says == "" || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %.200v, want %q", c.name, err, c.says)
		}
	}
	if _, _, err := ask(t, a, Owner, "documents", Replace, `{"documentType":"informationDetails","title":"`+
		a.fields.List("documents")[0].(record.Object).Text("title")+`","url":"https://docs.example/a"}`); err != nil {
		t.Errorf("a new version of a document with its title: got %.200v, want nil", err)
	}
	if _, _, err := ask(t, a, Owner, "documents", Add, `{"documentType":"notice","title":"`+
		strings.Repeat("x", lineLength+1)+`","url":"https://docs.example/a"}`); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a document with a long title: got %.200v, want a fault", err)
	}
}

// TestBoundsAreThoseOfTheContract compares limits in the code with docs/contract.md, "Field rules".
// Promises: all-faults, text-lengths
func TestBoundsAreThoseOfTheContract(t *testing.T) {
	got := []int{maxFaults, proseLength, lineLength, addressLength, codeLength}
	if want := []int{500, 250_000, 5_000, 4_000, 1_000}; !slices.Equal(got, want) {
		t.Errorf("got %v faults and characters of texts, want %v", got, want)
	}
}
