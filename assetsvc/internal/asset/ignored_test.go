package asset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

const otherID = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

// Promises: ignored-named
func TestACreationNamesIgnoredFields(t *testing.T) {
	document := `[` + validDocument + `]`
	for _, c := range []struct{ sent, want string }{
		{`{}`, ""},
		{`{"documents":` + document + `}`, "documents"},
		{`{"documents":[],"rectificationPeriod":null,"revisions":[]}`, ""},
		{`{"id":"` + otherID + `","assetID":"UA","owner":"other","dateModified":"2026-11-20","date":"2026-11-20"}`,
			"id assetID owner date dateModified"},
		{`{"id":"` + strings.Repeat("a", 32) + `","owner":"broker","date":"` + FormatTime(morning, rules.Zone) + `"}`, ""},
		{`{"status":"pending","mode":"test"}`, "status"},
		{`{"status":"draft","title":"x","dateModified":null}`, ""},
		{`{"owner_token":"x","transfer_token":"y","revisions":[1]}`, "owner_token transfer_token revisions"},
		{`{"rectificationPeriod":{"startDate":"2026-11-20"}}`, "rectificationPeriod"},
		{`{"decisions":[{"decisionDate":"2026-11-20","decisionID":"1","decisionOf":"asset"}]}`, ""},
		{`{"decisions":[{"decisionDate":"2026-11-20","decisionID":"1","decisionOf":"lot"},
			{"decisionDate":"2026-11-20","decisionID":"2","decisionOf":"lot","relatedItem":"x"}]}`,
			"decisions.decisionOf decisions.relatedItem"},
		{`{"relatedProcesses":[{"id":"` + otherID + `","relatedProcessID":"` + otherID + `"}]}`, "relatedProcesses.id"},
	} {
		fields := parse(t, validText)
		for _, m := range parse(t, c.sent) {
			fields = fields.With(m.Name, m.Value)
		}
		a, err := rules.Create(fields, origin())
		if got := strings.Join(a.Ignored(), " "); err != nil || got != c.want {
			t.Errorf("%s: got the ignored fields %q, %v, want %q", c.sent, got, err, c.want)
		}
		expect.Equal(t, strings.Join(a.Numbered("UA-1").Ignored(), " "), c.want,
			"%s: with a number, the ignored fields", c.sent)
	}
}

func TestAnItemsPlaceholderIsNamed(t *testing.T) {
	fields := parse(t, validText)
	item := fields.List("items")[0].(record.Object)
	for sent, want := range map[string]string{"": "", "item-1": "items.id", otherID: ""} {
		a, err := rules.Create(fields.With("items", record.List{item.With("id", sent)}), origin())
		if got := strings.Join(a.Ignored(), " "); err != nil || got != want {
			t.Errorf("item id %q: got the ignored fields %q, %v, want %q", sent, got, err, want)
		}
	}
}

func TestARefusedCreationStillNamesIgnoredFields(t *testing.T) {
	fields := parse(t, validText).With("owner", "other").Without("title")
	if a, err := rules.Create(fields, origin()); err == nil || !slices.Equal(a.Ignored(), []string{"owner"}) {
		t.Errorf("got %v, %v, want the ignored field owner and an error", a.Ignored(), err)
	}
}

func TestAChangeNamesIgnoredFields(t *testing.T) {
	a := valid(t, `{"status":"pending"}`)
	sentBack := a.Fields().With(modifiedField, FormatTime(night, rules.Zone))
	other := sentBack.With("owner", "other").With("mode", "test").With(modifiedField, FormatTime(evening, rules.Zone))
	documents := append(slices.Clone(a.fields.List("documents")), parse(t, validDocument))
	part := record.Object{{Name: "documentType", Value: informationDetails}}
	for _, c := range []struct {
		name string
		by   Role
		sent record.Object
		want string
	}{
		{"an object sent back", Owner, sentBack, ""},
		{"an object sent back in part", Owner, record.Object{{Name: "documents", Value: record.List{part}}}, ""},
		{"another one", Owner, other, "mode owner dateModified"},
		{"a document more", Owner, record.Object{{Name: "documents", Value: documents}}, "documents"},
		{"no documents", Owner, record.Object{{Name: "documents", Value: nil}}, "documents"},
		{"what is not there", Owner, record.Object{{Name: periodField, Value: nil}, {Name: "mode", Value: nil}}, periodField},
		{"the concierge's title", Concierge, record.Object{{Name: "title", Value: "x"}}, "title"},
		{"the concierge's items", Concierge, record.Object{{Name: "items", Value: record.List{
			record.Object{{Name: "id", Value: otherID}}}}}, "items"},
		{"the same title", Concierge, record.Object{{Name: "title", Value: "Приміщення"}}, ""},
		{"a time in another form", Owner, record.Object{{Name: "date", Value: a.fields.Text("date")}}, ""},
	} {
		for _, whole := range []bool{false, true} {
			sent := c.sent
			if whole && c.by == Owner {
				for _, m := range sentBack {
					if _, isSent := sent.Lookup(m.Name); !isSent {
						sent = sent.With(m.Name, m.Value)
					}
				}
			}
			next, _, err := rules.Change(a, Change{Fields: sent, Whole: whole, Caller: Caller{Role: c.by}, Dated: night,
				Now: night, NewID: ids()})
			if got := strings.Join(next.Ignored(), " "); err != nil || got != c.want {
				t.Errorf("%s (whole: %t): got the ignored fields %q, %v, want %q", c.name, whole, got, err, c.want)
			}
		}
	}
}

func TestAChangeOfAPartNamesIgnoredFields(t *testing.T) {
	a := valid(t, `{"status":"pending"}`)
	a, _, err := ask(t, a, Owner, "documents", Add, validDocument)
	expect.OK(t, err)
	a, _, err = ask(t, a, Concierge, "related_processes", Add, validProcess)
	expect.OK(t, err)
	document := a.fields.List("documents")[0].(record.Object)
	sentBack := string(record.Append(nil, document))
	for _, c := range []struct {
		path       string
		verb       Verb
		sent, want string
	}{
		{"documents", Add, validDocument, ""},
		{"documents", Add, sentBack, "id datePublished dateModified"},
		{"documents", Add, `{"documentType":"notice","title":"x","url":"https://a.example/","author":"asset_owner"}`, ""},
		{"documents", Add, `{"documentType":"notice","title":"x","url":"https://a.example/","author":"x","size":1}`,
			"size author"},
		{"documents", Merge, `{"title":"x"}`, ""},
		{"documents", Merge, sentBack, ""},
		{"documents", Merge, `{"url":"https://b.example/","hash":null,"id":"` + otherID + `"}`, "id url"},
		{"documents", Replace, sentBack, ""},
		{"documents", Replace, `{"documentType":"informationDetails","title":"x","url":"https://b.example/","author":"x"}`,
			"author"},
		{"items", Add, validItem, ""},
		{"items", Merge, `{"id":"` + otherID + `"}`, "id"},
		{"decisions", Merge, `{"decisionOf":"lot"}`, "decisionOf"},
		{"related_processes", Merge, `{"id":"` + otherID + `","identifier":"x"}`, "id"},
		{"related_processes", Remove, ``, ""},
	} {
		by := Owner
		if c.path == "related_processes" {
			by = Concierge
		}
		next, _, err := ask(t, a, by, c.path, c.verb, c.sent)
		if got := strings.Join(next.Ignored(), " "); err != nil || got != c.want {
			t.Errorf("%s, verb %d, %s: got the ignored fields %q, %v, want %q", c.path, c.verb, c.sent, got, err, c.want)
		}
	}
}

// TestADocumentsFileIsNotIgnored sends a document with the hash and the size of its file. The service sets both
// itself. It must name the size as ignored only if the sent size differs from the size of the file.
func TestADocumentsFileIsNotIgnored(t *testing.T) {
	a, file := valid(t, `{"status":"pending"}`), File{SHA256: strings.Repeat("b", 64), Size: 7}
	for _, verb := range []Verb{Add, Replace} {
		for size, want := range map[int]string{7: "", 8: sizeField} {
			c := PartChange{Part: part(t, "documents"), Verb: verb, File: file, Caller: Caller{Role: Owner}, Now: night,
				NewID: ids()}
			c.Fields = parse(t, fmt.Sprintf(`{"documentType":"informationDetails","title":"x","url":"https://a.example/",
				"sha256":"%s","size":%d}`, file.SHA256, size))
			if verb == Replace {
				c.ID = first(t, a, "documents")
			}
			next, _, err := rules.ChangePart(a, c)
			if got := strings.Join(next.Ignored(), " "); err != nil || got != want {
				t.Errorf("verb %d, size %d: got the ignored fields %q, %v, want %q", verb, size, got, err, want)
			}
		}
	}
}

// Promises: ignored-named
func TestAtMostTwentyIgnoredFieldsAreNamed(t *testing.T) {
	w := &walk{}
	for i := range 30 {
		w.ignores(fmt.Sprintf("items.%d.field%c", i, 'a'+i%26), "sent", "stored")
	}
	expect.Equal(t, len(w.names), maxIgnored, "names")
	expect.Equal(t, w.names[0], "items.fielda", "")
}
