package asset

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

var (
	rules    = Rules{Types: []string{"bounce", "domain"}, Zone: time.UTC}
	morning  = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	evening  = morning.Add(12 * time.Hour)
	allRoles = []Role{Owner, Concierge, Administrator, Other}
)

// made counts the ids that ids has made.
var made atomic.Int64

// ids returns a maker of ids that are apart.
func ids() func() string {
	return func() string { return fmt.Sprintf("%032x", made.Add(1)) }
}

func parse(t testing.TB, text string) record.Object {
	t.Helper()
	value, err := record.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value.(record.Object)
}

const validText = `{
	"assetType": "bounce", "title": "Приміщення", "description": "Опис",
	"items": [{
		"description": "Перше", "classification": {"scheme": "CAV-PS", "id": "06111000-3", "description": "Земля"},
		"additionalClassifications": [{"scheme": "UA-EDR", "id": "17.21.1", "description": "папір"}],
		"unit": {"code": "MTK"}, "quantity": 5.0001, "address": {"countryName": "Україна"}, "registrationDetails": {"status": "unknown"}
	}],
	"decisions": [{"decisionDate": "2026-11-20T12:00:00+02:00", "decisionID": "1637-10"}],
	"assetCustodian": {
		"name": "Фонд", "identifier": {"scheme": "UA-EDR", "id": "00037256"}, "address": {"countryName": "Україна"},
		"contactPoint": {"name": "Реєстратор", "telephone": "0440000000"}
	}
}`

func origin() Origin {
	return Origin{ID: strings.Repeat("a", 32), Owner: "broker", Now: morning, NewID: ids()}
}

// valid returns a draft, changed by a merge patch.
func valid(t testing.TB, patch string) Asset {
	t.Helper()
	a, err := rules.Create(parse(t, validText), origin())
	if err != nil {
		t.Fatal(err)
	}
	return change(t, a, Owner, patch)
}

func change(t testing.TB, a Asset, by Role, patch string) Asset {
	t.Helper()
	next, _, err := rules.Change(a, Change{Fields: parse(t, patch), Caller: Caller{Role: by}, Now: evening, NewID: ids()})
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	return next
}

// in returns an asset in a state, with all that any step from there needs.
func in(t testing.TB, s Status) Asset {
	t.Helper()
	a := valid(t, `{"relatedProcesses":[{"type":"lot","relatedProcessID":"`+strings.Repeat("b", 32)+`"}]}`)
	document := record.Object{{Name: "id", Value: strings.Repeat("c", 32)}, {Name: "documentType", Value: "cancellationDetails"}}
	a = Asset{a.fields.With("documents", append(a.fields.List("documents"), document))}
	for _, step := range map[Status][]Status{
		Pending: {Pending}, Verification: {Pending, Verification}, Active: {Pending, Verification, Active},
		Complete: {Pending, Verification, Active, Complete}, Deleted: {Pending, Deleted},
	}[s] {
		a = change(t, a, Administrator, `{"status":"`+string(step)+`"}`)
	}
	return a
}

// places lists what a fault names.
func places(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return fmt.Sprint(err)
	}
	var names []string
	for _, d := range f.Details {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

// TestSteps has a row for each state and role: where that role may take an
// asset from there (contract, section 2.1). To stay is always one of them, for
// whoever may change the asset at all.
func TestSteps(t *testing.T) {
	allowed := map[Status]map[Role][]Status{
		Draft:        {Owner: {Draft, Pending}, Concierge: nil, Administrator: {Draft, Pending}, Other: nil},
		Pending:      {Owner: {Pending, Deleted}, Concierge: {Pending, Verification}, Administrator: {Pending, Verification, Deleted}, Other: nil},
		Verification: {Owner: nil, Concierge: {Verification, Active, Pending}, Administrator: {Verification, Active, Pending}, Other: nil},
		Active:       {Owner: nil, Concierge: {Active, Pending, Complete}, Administrator: {Active, Pending, Complete}, Other: nil},
		Complete:     {Owner: nil, Concierge: nil, Administrator: nil, Other: nil},
		Deleted:      {Owner: nil, Concierge: nil, Administrator: nil, Other: nil},
	}
	for from, roles := range allowed {
		for _, by := range allRoles {
			may := map[Status]bool{}
			for _, to := range roles[by] {
				may[to] = true
			}
			for _, to := range append([]Status{"foo"}, Statuses...) {
				t.Run(fmt.Sprintf("%s, from %s to %s", by, from, to), func(t *testing.T) {
					a := in(t, from)
					next, differs, err := rules.Change(a, Change{Fields: parse(t, `{"status":"`+string(to)+`"}`), Caller: Caller{Role: by}, Now: evening.Add(time.Hour), NewID: ids()})
					if !may[to] {
						if fault.KindOf(err) != fault.Forbidden || places(err) != "data" {
							t.Errorf("got %v, want it refused", err)
						}
						want := fmt.Sprintf("Can't update asset in current (%s) status", from)
						if to == Draft && len(roles[by]) > 0 {
							want = "Can't switch asset to draft status"
						}
						if err != nil && !strings.Contains(err.Error(), want) {
							t.Errorf("it says %v, want %s", err, want)
						}
						return
					}
					if err != nil || next.Status() != to || differs != (from != to) {
						t.Errorf("got %s, %v, %v", next.Status(), differs, err)
					}
				})
			}
		}
	}
}

// TestWhoWritesWhat has a row for each state, role and field (contract, section
// 2.4). Status has its own: TestSteps.
func TestWhoWritesWhat(t *testing.T) {
	values := map[string]string{
		"title": `"x"`, "title_en": `"x"`, "title_ru": `"x"`, "description": `"x"`, "description_en": `"x"`, "description_ru": `"x"`,
		"items":               `[{"description":"x"}]`,
		"assetCustodian":      `{"name":"x"}`,
		"assetHolder":         `{"name":"x","identifier":{"scheme":"UA-EDR","id":1}}`,
		"relatedProcesses":    `[{"identifier":"x"}]`,
		"sandboxParameters":   `"x"`,
		"decisions":           `[{"decisionID":"x"}]`,
		"documents":           `[]`,
		"assetType":           `"domain"`,
		"assetID":             `"x"`,
		"id":                  `"x"`,
		"owner":               `"x"`,
		"mode":                `"test"`,
		"date":                `"2020-01-01"`,
		"dateModified":        `"2020-01-01"`,
		"rectificationPeriod": `{"endDate":"2030-01-01"}`,
		"owner_token":         `"x"`,
		"transfer_token":      `"x"`,
		"revisions":           `[]`,
	}
	for _, f := range assetModel.fields {
		if values[f.name] == "" && f.name != "status" {
			t.Errorf("%s has no row", f.name)
		}
	}
	const (
		nobody  = "-"
		nothing = ""
		owners  = "title title_en title_ru description description_en description_ru items assetCustodian assetHolder relatedProcesses sandboxParameters"
		admins  = "mode rectificationPeriod"
	)
	written := map[Status]map[Role]string{
		Draft:        {Owner: owners, Concierge: nobody, Administrator: admins, Other: nobody},
		Pending:      {Owner: owners, Concierge: nothing, Administrator: admins, Other: nobody},
		Verification: {Owner: nobody, Concierge: nothing, Administrator: admins, Other: nobody},
		Active:       {Owner: nobody, Concierge: nothing, Administrator: admins, Other: nobody},
		Complete:     {Owner: nobody, Concierge: nobody, Administrator: nobody, Other: nobody},
		Deleted:      {Owner: nobody, Concierge: nobody, Administrator: nobody, Other: nobody},
	}
	sandbox := rules
	sandbox.Sandbox = true
	for status, roles := range written {
		for by, fields := range roles {
			for name, value := range values {
				t.Run(fmt.Sprintf("%s in %s: %s", by, status, name), func(t *testing.T) {
					a := in(t, status)
					next, differs, err := sandbox.Change(a, Change{Fields: parse(t, `{"`+name+`":`+value+`}`), Caller: Caller{Role: by}, Now: evening, NewID: ids()})
					if fields == nobody {
						if fault.KindOf(err) != fault.Forbidden || err.Error() != fmt.Sprintf("body/data: Can't update asset in current (%s) status", status) || differs {
							t.Errorf("got %v, want it refused", err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if want := strings.Contains(" "+fields+" ", " "+name+" "); differs != want || next.Equal(a) == want {
						t.Errorf("written: %v, want %v", differs, want)
					}
				})
			}
		}
	}
}

func TestSandboxParametersExistInASandboxOnly(t *testing.T) {
	sent := parse(t, strings.Replace(validText, "{", `{"sandboxParameters": "quick",`, 1))
	if _, err := rules.Create(sent, origin()); places(err) != "sandboxParameters" {
		t.Errorf("outside: %v", err)
	}
	sandbox := rules
	sandbox.Sandbox = true
	if a, err := sandbox.Create(sent, origin()); err != nil || a.fields.Text("sandboxParameters") != "quick" {
		t.Errorf("inside: %v, %v", a, err)
	}
}

// TestEffectsOfSteps has a row for each step (contract, section 2.3): which end
// of the rectification period it sets, takes away or lets be.
func TestEffectsOfSteps(t *testing.T) {
	const before, now, none = "before", "now", ""
	for name, c := range map[string]struct {
		from, to   Status
		start, end string
		listed     bool
	}{
		"publishing starts it":           {Draft, Pending, now, none, true},
		"deleting lets it be":            {Pending, Deleted, before, none, true},
		"verifying lets it be":           {Pending, Verification, before, none, true},
		"going back lets it be":          {Verification, Pending, before, none, true},
		"activating ends it":             {Verification, Active, before, now, true},
		"correcting takes the end away":  {Active, Pending, before, none, true},
		"selling lets it be":             {Active, Complete, before, before, true},
		"staying changes nothing at all": {Active, Active, before, before, true},
		"a draft has none":               {Draft, Draft, none, none, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := in(t, c.from)
			step := evening.Add(time.Hour)
			next, _, err := rules.Change(a, Change{Fields: parse(t, `{"status":"`+string(c.to)+`"}`), Caller: Caller{Role: Administrator}, Now: step, NewID: ids()})
			if err != nil {
				t.Fatal(err)
			}
			stamps := map[string]string{before: FormatTime(evening, time.UTC), now: FormatTime(step, time.UTC), none: ""}
			period := next.fields.Object("rectificationPeriod")
			if period.Text("startDate") != stamps[c.start] || period.Text("endDate") != stamps[c.end] {
				t.Errorf("the period is %v", period)
			}
			if moved := next.fields.Text("date") == stamps[now]; moved != (c.from != c.to) || next.Listed() != c.listed || !hasLot(next.fields) {
				t.Errorf("got %v", next.fields)
			}
		})
	}
}

func TestConditionsOfSteps(t *testing.T) {
	for name, c := range map[string]struct {
		a     Asset
		by    Role
		patch string
		kind  fault.Kind
		place string
	}{
		"publish without items":           {valid(t, `{"items":[]}`), Owner, `{"status":"pending"}`, fault.Invalid, "data"},
		"publish while items go":          {valid(t, `{}`), Owner, `{"status":"pending","items":[]}`, fault.Invalid, "data"},
		"publish while decisions go":      {valid(t, `{}`), Owner, `{"status":"pending","decisions":[]}`, fault.Invalid, "data"},
		"empty what is published":         {in(t, Pending), Owner, `{"items":[]}`, fault.Invalid, "items"},
		"empty what is to be deleted":     {in(t, Pending), Owner, `{"items":null,"status":"deleted"}`, fault.Invalid, "items"},
		"activate without a lot":          {change(t, in(t, Pending), Owner, `{"relatedProcesses":[],"status":"pending"}`), Concierge, `{"status":"active"}`, fault.Forbidden, "data"},
		"delete without a cancellation":   {change(t, valid(t, `{}`), Owner, `{"status":"pending"}`), Owner, `{"status":"deleted"}`, fault.Forbidden, "mode"},
		"a bad field and a bad step":      {in(t, Pending), Owner, `{"status":"active","colour":1}`, fault.Forbidden, "data"},
		"a bad field and no cancellation": {change(t, valid(t, `{}`), Owner, `{"status":"pending"}`), Owner, `{"status":"deleted","colour":1}`, fault.Invalid, "colour"},
	} {
		t.Run(name, func(t *testing.T) {
			next, differs, err := rules.Change(c.a, Change{Fields: parse(t, c.patch), Caller: Caller{Role: c.by}, Now: evening, NewID: ids()})
			if fault.KindOf(err) != c.kind || places(err) != c.place || differs || !record.Equal(next.fields, c.a.fields) {
				t.Errorf("got %v at %q, want kind %d at %q", err, places(err), c.kind, c.place)
			}
		})
	}
	published := change(t, valid(t, `{"items":[]}`), Owner, `{"status":"pending","items":`+string(record.Append(nil, valid(t, `{}`).fields.Get("items")))+`}`)
	if published.Status() != Pending {
		t.Error("items of the same request do not count for publishing")
	}
	lotless := change(t, in(t, Pending), Owner, `{"relatedProcesses":[]}`)
	lotless = change(t, lotless, Concierge, `{"status":"verification"}`)
	if _, _, err := rules.Change(lotless, Change{Fields: parse(t, `{"status":"active"}`), Caller: Caller{Role: Concierge}, Now: evening, NewID: ids()}); fault.KindOf(err) != fault.Invalid || places(err) != "relatedProcesses" {
		t.Errorf("active without a lot: %v", err)
	}
}
