package asset

import (
	"fmt"
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

// asks changes an asset. It returns the asset after the change, and the error.
func asks(r Rules, a Asset, by Role, whole bool, sent record.Object) (Asset, error) {
	next, _, err := r.Change(a, Change{Fields: sent, Whole: whole, Caller: Caller{Role: by}, Now: evening, NewID: ids()})
	return next, err
}

// supply returns rules with one list of codes, for the given scheme.
func supply(t *testing.T, scheme, codes string) Rules {
	t.Helper()
	r := rules
	r.Codes = CodeLists{}
	expect.OK(t, r.Codes.Add(scheme, codes))
	return r
}

// codesOf returns a list of n CPV codes that a classification accepts.
func codesOf(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "0311%04d-2\n", i)
	}
	return list.String()
}

// TestAValueHasOneFault sends values that break two rules. Only the first fault is reported. Each case has the
// complete error.
func TestAValueHasOneFault(t *testing.T) {
	coarse := supply(t, "CPV", "45000000-7\n")
	for _, c := range []struct {
		name        string
		rules       Rules
		patch, want string
	}{
		{"an unknown code that is coarse", supply(t, "CPV", "03111000-2\n"),
			`{"items":[{"classification":{"scheme":"CPV","id":"99900000-9"}}]}`,
			"items.0.classification.id: Value must be one of ['03111000-2']."},
		{"a coarse code of another form", rules, `{"items":[{"classification":{"scheme":"CPV","id":"x00000-"}}]}`,
			"items.0.classification.id: String value did not match validation regex. " +
				"An id of CPV has the form ^[0-9]{8}-[0-9]$."},
		{"a coarse code without a finer one", coarse, `{"items":[{"classification":{"scheme":"CPV","id":"45000000-7"}}]}`,
			"items.0.classification.id: At least CPV classification class (XXXX0000-Y) should be specified more precisely"},
		{"a code beside a list of ten", supply(t, "CPV", codesOf(10)),
			`{"items":[{"classification":{"scheme":"CPV","id":"99999999-9"}}]}`,
			"items.0.classification.id: Value must be one of [" +
				"'03110000-2', '03110001-2', '03110002-2', '03110003-2', '03110004-2', " +
				"'03110005-2', '03110006-2', '03110007-2', '03110008-2', '03110009-2']."},
		{"a fraction for a choice", rules, `{"items":[{"registrationDetails":{"status":1.5}}]}`,
			"items.0.registrationDetails.status: Couldn't interpret '1.5' as string."},
		{"a fraction for a scheme", rules, `{"assetCustodian":{"identifier":{"scheme":1.5}}}`,
			"assetCustodian.identifier.scheme: Couldn't interpret '1.5' as string."},
		{"elements with a fault and with one id", rules,
			`{"items":[{"id":"` + otherID + `","quantity":"x"},` +
				strings.Replace(validItem, "{", `{"id":"`+otherID+`",`, 1) + `]}`,
			"items.0.quantity: Number 'x' failed to convert to a decimal."},
		{"an object for the list of a published asset", rules, `{"items":{}}`,
			"items: Please use a list for this field."},
		{"a text of 64 characters", rules, `{"items":[{"quantity":"` + strings.Repeat("ї", 64) + `"}]}`,
			"items.0.quantity: Number '" + strings.Repeat("ї", 64) + "' failed to convert to a decimal."},
		{"a text of 65 characters", rules, `{"items":[{"quantity":"` + strings.Repeat("ї", 65) + `"}]}`,
			"items.0.quantity: Number '" + strings.Repeat("ї", 64) + "…' failed to convert to a decimal."},
	} {
		_, err := asks(c.rules, in(t, Pending), Owner, false, parse(t, c.patch))
		if want := "body/" + c.want; err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", c.name, err, want)
		}
	}
}

func TestAPeriodBeginsBeforeItsEnd(t *testing.T) {
	for sent, want := range map[string]string{
		`{"startDate":"2026-12-02","endDate":"2026-12-01"}`: periodField + ".startDate",
		`{"startDate":"2026-12-01","endDate":"2026-12-02"}`: "<nil>",
		`{"startDate":"2026-12-01","endDate":"2026-12-01"}`: "<nil>",
		`{"startDate":"2026-12-01"}`:                        "<nil>",
		`{"endDate":"2026-12-01"}`:                          "<nil>",
	} {
		period := parse(t, `{"`+periodField+`":`+sent+`}`)
		if _, err := asks(rules, valid(t, `{}`), Administrator, false, period); places(err) != want {
			t.Errorf("%s: got %v, want a fault at %s", sent, err, want)
		}
	}
}

// TestSuppliedCodesCountOnce supplies lists of codes. The list of schemes repeats a scheme that is built in. An error
// that says how many values are possible must count each value once.
func TestSuppliedCodesCountOnce(t *testing.T) {
	r := supply(t, identifierList, "UA-NEW\nUA-EDR\n")
	_, err := asks(r, in(t, Pending), Owner, false, parse(t, `{"assetCustodian":{"identifier":{"scheme":"x"}}}`))
	if err == nil || !strings.Contains(err.Error(), "one of 156 values") {
		t.Errorf("got %v, want 156 values: one more than the built-in ones", err)
	}
	r = supply(t, "CPV", codesOf(11))
	_, err = asks(r, in(t, Pending), Owner, false, parse(t, `{"items":[{"classification":{"scheme":"CPV","id":"x"}}]}`))
	if err == nil || !strings.Contains(err.Error(), "one of 11 values") {
		t.Errorf("got %v, want the 11 values of the list", err)
	}
	err = (CodeLists{}).Add("CPV", strings.Repeat("x\n", maxListFaults)+"03111000-2\n")
	if err == nil || strings.Contains(err.Error(), "more faults") ||
		strings.Count(err.Error(), "does not have the form") != maxListFaults {
		t.Errorf("got %v, want %d faults and no number of others", err, maxListFaults)
	}
}

func TestSearchesForCodesAreBounded(t *testing.T) {
	wrong := parse(t, strings.Replace(validItem, "06111000-3", "00000000-0", 1))
	items := record.List{}
	for range maxNearest + 1 {
		items = append(items, wrong)
	}
	_, err := asks(rules, in(t, Pending), Owner, false, record.Object{{Name: "items", Value: items}})
	if err == nil || strings.Count(err.Error(), "the nearest is") != maxNearest ||
		strings.Count(err.Error(), "Value must be one of") != maxNearest+1 {
		t.Errorf("got %.200v, want %d faults and %d suggestions", err, maxNearest+1, maxNearest)
	}
	// The number 1.5 needs no search for the nearest scheme. So one search is left for the scheme of the holder.
	_, err = asks(rules, in(t, Pending), Owner, false, record.Object{
		{Name: "items", Value: items[:maxNearest-1]},
		{Name: "assetCustodian", Value: parse(t, `{"identifier":{"scheme":1.5}}`)},
		{Name: "assetHolder", Value: parse(t, `{"identifier":{"scheme":"UA-EDX"}}`)},
	})
	if err == nil || !strings.Contains(err.Error(), "the nearest is 'UA-EDR'") {
		t.Errorf("got %v, want a suggestion for the last scheme", err)
	}
}

// TestACompleteRegistrationHasANumber sends the number and the date of a registration. Only a registration with the
// status "complete" may have them.
func TestACompleteRegistrationHasANumber(t *testing.T) {
	for status, want := range map[string]string{
		"complete": "", "registering": "items.0.registrationDetails.registrationID items.0.registrationDetails.registrationDate",
	} {
		_, err := asks(rules, in(t, Pending), Owner, false, parse(t, `{"items":[{"registrationDetails":{"status":"`+status+
			`","registrationID":"7","registrationDate":"2026-11-20"}}]}`))
		if (err == nil) != (want == "") || err != nil && places(err) != want {
			t.Errorf("%s: got %v, want faults at %q", status, err, want)
		}
	}
}

// TestAPlaceholderKeepsTheID sends an item whose id does not have the form of an id. After a PATCH the item must
// keep its old id; a PUT must give it a new one.
func TestAPlaceholderKeepsTheID(t *testing.T) {
	a := in(t, Pending)
	before := first(t, a, "items")
	next, err := asks(rules, a, Owner, false, parse(t, `{"items":[{"id":"item-1"}]}`))
	if err != nil || first(t, next, "items") != before {
		t.Errorf("PATCH: got the id %s, %v; want %s", first(t, next, "items"), err, before)
	}
	item := a.fields.List("items")[0].(record.Object).With("id", "item-1")
	next, err = asks(rules, a, Owner, true, a.fields.With("items", record.List{item}))
	if got := first(t, next, "items"); err != nil || got == before || !idForm.MatchString(got) {
		t.Errorf("PUT: got the id %s, %v; want a new one", got, err)
	}
}

// TestWhatIsIgnoredBreaksNoRule lets a concierge send invalid fields that only the owner may write. They must be
// ignored without a fault.
func TestWhatIsIgnoredBreaksNoRule(t *testing.T) {
	for sent, ignored := range map[string]string{
		`{"items":[{"classification":{"scheme":"CAV-PS","id":"x"}}]}`:                               "items",
		`{"assetCustodian":{"identifier":{"scheme":"x"}}}`:                                          "assetCustodian",
		`{"decisions":[{"decisionDate":"2026-11-20","decisionID":"1","decisionOf":"lot"}]}`:         "decisions",
		`{"title":"` + strings.Repeat("x", lineLength+1) + `"}`:                                     "title",
		`{"items":[{"id":"` + otherID + `"},{"id":"` + otherID + `","classification":{"id":"y"}}]}`: "items",
	} {
		a := in(t, Pending)
		next, err := asks(rules, a, Concierge, false, parse(t, sent))
		if err != nil || !next.Equal(a) || strings.Join(next.Ignored(), " ") != ignored {
			t.Errorf("%.60s: got %v and the ignored fields %v, want no fault and %s", sent, err, next.Ignored(), ignored)
		}
	}
}

func TestAnEmptyObjectIsNotStored(t *testing.T) {
	a, err := asks(rules, valid(t, `{}`), Administrator, false, parse(t, `{"`+periodField+`":{}}`))
	if err != nil || a.fields.Get(periodField) != nil {
		t.Errorf("got %v, %v; want no period", a.fields.Get(periodField), err)
	}
}

// TestAPartHasWhatItsKindHas adds parts of two kinds. An item must have no dateModified. A document without a file
// must have no hash and no size.
func TestAPartHasWhatItsKindHas(t *testing.T) {
	a := in(t, Pending)
	if _, item := done(t, a, Owner, "items", Merge, `{"quantity":7}`); item.Get("dateModified") != nil {
		t.Errorf("an item: got %v, want no dateModified", item)
	}
	a, document := done(t, a, Owner, "documents", Add, validDocument)
	for _, name := range []string{sha256Field, sizeField} {
		if value, has := document.Lookup(name); has {
			t.Errorf("a document without a file: got %s %v, want none", name, value)
		}
	}
	only := Asset{fields: a.fields.With("documents", record.List{document})}
	documents := part(t, "documents")
	expect.Value(t, document.Text("url"), "the one document")(only.Download(documents, idOf(document), ""))
	if got, err := only.Download(documents, otherID, ""); places(err) != "document_id" {
		t.Errorf("no document: got %q, %v; want a fault at document_id", got, err)
	}
}

// TestAnAssetWithoutPartsMovesOn changes assets without decisions or without a period, as imported assets may be. Each
// change must succeed. The case says which members the period must have afterwards.
func TestAnAssetWithoutPartsMovesOn(t *testing.T) {
	bare := func(s Status, without ...string) Asset { return Asset{fields: in(t, s).fields.Without(without...)} }
	ended := record.Object{{Name: "endDate", Value: FormatTime(morning, rules.Zone)}}
	for _, c := range []struct {
		name   string
		a      Asset
		by     Role
		patch  string
		period string // names of the members of rectificationPeriod after the change
	}{
		{"another title", bare(Pending, "decisions", periodField), Owner, `{"title":"x"}`, ""},
		{"back to pending", bare(Verification, "decisions"), Concierge, `{"status":"pending"}`, "startDate"},
		{"to verification", bare(Pending, periodField), Concierge, `{"status":"verification"}`, ""},
		{"to active", bare(Verification, periodField), Concierge, `{"status":"active"}`, "endDate"},
		{"an end alone", Asset{fields: in(t, Active).fields.With(periodField, ended)}, Concierge, `{"status":"pending"}`, ""},
	} {
		next, err := asks(rules, c.a, c.by, false, parse(t, c.patch))
		var names []string
		for _, m := range next.fields.Object(periodField) {
			names = append(names, m.Name)
		}
		_, has := next.fields.Lookup(periodField)
		if err != nil || strings.Join(names, " ") != c.period || has != (c.period != "") {
			t.Errorf("%s: got the period %v, %v; want %q", c.name, next.fields.Object(periodField), err, c.period)
		}
	}
}
