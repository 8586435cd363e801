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
	"asset-registry/shared/testing/expect"
)

var (
	rules    = Rules{Types: []string{"bounce", "domain"}, Zone: time.UTC}
	morning  = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	evening  = morning.Add(12 * time.Hour)
	allRoles = []Role{Owner, Concierge, Administrator, Other}
)

// made is the number of ids that the tests have made so far.
var made atomic.Int64

// ids returns a function that returns a new id in each call.
func ids() func() string {
	return func() string { return fmt.Sprintf("%032x", made.Add(1)) }
}

func parse(t testing.TB, text string) record.Object {
	t.Helper()
	return expect.Get(record.Parse([]byte(text)))(t).(record.Object)
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

// valid returns a valid draft, changed by a merge patch.
func valid(t testing.TB, patch string) Asset {
	t.Helper()
	return change(t, expect.Get(rules.Create(parse(t, validText), origin()))(t), Owner, patch)
}

func change(t testing.TB, a Asset, by Role, patch string) Asset {
	t.Helper()
	next, _, err := rules.Change(a, Change{Fields: parse(t, patch), Caller: Caller{Role: by}, Now: evening,
		NewID: ids()})
	expect.Must(t, err, "%s", patch)
	return next
}

// The function `in` returns an asset in the given state. The asset meets the conditions of all steps from that state.
func in(t testing.TB, s Status) Asset {
	t.Helper()
	a := valid(t, `{"relatedProcesses":[{"type":"lot","relatedProcessID":"`+strings.Repeat("b", 32)+`"}]}`)
	document := record.Object{{Name: "id", Value: strings.Repeat("c", 32)},
		{Name: "documentType", Value: "cancellationDetails"}}
	a = Asset{fields: a.fields.With("documents", append(a.fields.List("documents"), document))}
	steps := map[Status][]Status{
		Pending: {Pending}, Verification: {Pending, Verification}, Active: {Pending, Verification, Active},
		Complete: {Pending, Verification, Active, Complete}, Deleted: {Pending, Deleted},
	}
	for _, step := range steps[s] {
		a = change(t, a, Administrator, `{"status":"`+string(step)+`"}`)
	}
	return a
}

// places returns the names of the fields in a fault, separated by blanks.
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

// TestSteps lists, for each state and role, the states to which the role may move an asset (docs/contract.md,
// "States"). Any other move must be refused. A role that may change the asset may always leave it in its state.
// Promises: same-state
func TestSteps(t *testing.T) {
	allowed := []struct {
		from  Status
		roles map[Role][]Status
	}{
		{Draft, map[Role][]Status{Owner: {Draft, Pending}, Concierge: nil, Administrator: {Draft, Pending},
			Other: nil}},
		{Pending, map[Role][]Status{Owner: {Pending, Deleted}, Concierge: {Pending, Verification},
			Administrator: {Pending, Verification, Deleted}, Other: nil}},
		{Verification, map[Role][]Status{Owner: nil, Concierge: {Verification, Active, Pending},
			Administrator: {Verification, Active, Pending}, Other: nil}},
		{Active, map[Role][]Status{Owner: nil, Concierge: {Active, Pending, Complete},
			Administrator: {Active, Pending, Complete}, Other: nil}},
		{Complete, map[Role][]Status{Owner: nil, Concierge: nil, Administrator: nil, Other: nil}},
		{Deleted, map[Role][]Status{Owner: nil, Concierge: nil, Administrator: nil, Other: nil}},
	}
	for _, c := range allowed {
		for _, by := range allRoles {
			may := map[Status]bool{}
			for _, to := range c.roles[by] {
				may[to] = true
			}
			for _, to := range append([]Status{"foo"}, Statuses...) {
				t.Run(fmt.Sprintf("%s, from %s to %s", by, c.from, to), func(t *testing.T) {
					a := in(t, c.from)
					next, differs, err := rules.Change(a,
						Change{Fields: parse(t, `{"status":"`+string(to)+`"}`), Caller: Caller{Role: by},
							Now: evening.Add(time.Hour), NewID: ids()})
					if !may[to] {
						if fault.KindOf(err) != fault.Forbidden || places(err) != "data" {
							t.Errorf("got %v, want a fault of kind Forbidden at data", err)
						}
						want := fmt.Sprintf("Can't update asset in current (%s) status", c.from)
						if to == Draft && len(c.roles[by]) > 0 {
							want = "Can't switch asset to draft status"
						}
						if err != nil && !strings.Contains(err.Error(), want) {
							t.Errorf("got %v, want %s", err, want)
						}
						return
					}
					if err != nil || next.Status() != to || differs != (c.from != to) {
						t.Errorf("got status %s, differs %t, %v; want status %s, differs %t", next.Status(), differs,
							err, to, c.from != to)
					}
				})
			}
		}
	}
}

// TestWhoWritesWhat sends every field in every state and role. Only the fields that the role may write in this
// state must change (docs/contract.md, "Writable fields"). TestSteps tries the field `status`.
// Promises: type-fixed
func TestWhoWritesWhat(t *testing.T) {
	values := map[string]string{
		"title": `"x"`, "title_en": `"x"`, "title_ru": `"x"`,
		"description": `"x"`, "description_en": `"x"`, "description_ru": `"x"`,
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
		expect.ErrorIf(t, values[f.name] == "" && f.name != "status", "field %s: got no test value, want one", f.name)
	}
	const (
		nobody  = "-"
		nothing = ""
		owners  = "title title_en title_ru description description_en description_ru items assetCustodian assetHolder " +
			"relatedProcesses sandboxParameters"
		admins = "mode rectificationPeriod"
	)
	written := []struct {
		status Status
		roles  map[Role]string
	}{
		{Draft, map[Role]string{Owner: owners, Concierge: nobody, Administrator: admins, Other: nobody}},
		{Pending, map[Role]string{Owner: owners, Concierge: nothing, Administrator: admins, Other: nobody}},
		{Verification, map[Role]string{Owner: nobody, Concierge: nothing, Administrator: admins, Other: nobody}},
		{Active, map[Role]string{Owner: nobody, Concierge: nothing, Administrator: admins, Other: nobody}},
		{Complete, map[Role]string{Owner: nobody, Concierge: nobody, Administrator: nobody, Other: nobody}},
		{Deleted, map[Role]string{Owner: nobody, Concierge: nobody, Administrator: nobody, Other: nobody}},
	}
	sandbox := rules
	sandbox.Sandbox = true
	for _, c := range written {
		for _, by := range allRoles {
			for _, f := range assetModel.fields {
				name, value, fields := f.name, values[f.name], c.roles[by]
				if value == "" {
					continue
				}
				t.Run(fmt.Sprintf("%s in %s: %s", by, c.status, name), func(t *testing.T) {
					a := in(t, c.status)
					next, differs, err := sandbox.Change(a,
						Change{Fields: parse(t, `{"`+name+`":`+value+`}`), Caller: Caller{Role: by}, Now: evening,
							NewID: ids()})
					if fields == nobody {
						if fault.KindOf(err) != fault.Forbidden ||
							!strings.HasPrefix(err.Error(), fmt.Sprintf("body/data: Can't update asset in current (%s) status: ",
								c.status)) || differs {
							t.Errorf("got error %v, differs %t; want kind Forbidden and no change", err, differs)
						}
						return
					}
					expect.OK(t, err)
					want := strings.Contains(" "+fields+" ", " "+name+" ")
					if differs != want || next.Equal(a) == want {
						t.Errorf("got written %t, want %t", differs, want)
					}
				})
			}
		}
	}
}

func TestSandboxParametersExistOnlyInASandbox(t *testing.T) {
	sent := parse(t, strings.Replace(validText, "{", `{"sandboxParameters": "quick",`, 1))
	if _, err := rules.Create(sent, origin()); places(err) != "sandboxParameters" {
		t.Errorf("outside a sandbox: got %v, want a fault at sandboxParameters", err)
	}
	sandbox := rules
	sandbox.Sandbox = true
	if a, err := sandbox.Create(sent, origin()); err != nil || a.fields.Text("sandboxParameters") != "quick" {
		t.Errorf("in a sandbox: got %v, %v; want sandboxParameters kept", a, err)
	}
}

// TestEffectsOfSteps takes each step (docs/contract.md, "States"). After the step, the rectification period must
// have the dates that the case lists.
// Promises: step-date
func TestEffectsOfSteps(t *testing.T) {
	const before, now, none = "before", "now", ""
	for _, c := range []struct {
		name       string
		from, to   Status
		start, end string
		listed     bool
	}{
		{"publishing starts the period", Draft, Pending, now, none, true},
		{"deleting keeps the period", Pending, Deleted, before, none, true},
		{"verifying keeps the period", Pending, Verification, before, none, true},
		{"going back keeps the period", Verification, Pending, before, none, true},
		{"activating ends the period", Verification, Active, before, now, true},
		{"correcting removes the end of the period", Active, Pending, before, none, true},
		{"selling keeps the period", Active, Complete, before, before, true},
		{"an active asset that stays active keeps the period", Active, Active, before, before, true},
		{"a draft has no period", Draft, Draft, none, none, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := in(t, c.from)
			step := evening.Add(time.Hour)
			next, _, err := rules.Change(a,
				Change{Fields: parse(t, `{"status":"`+string(c.to)+`"}`), Caller: Caller{Role: Administrator},
					Now: step, NewID: ids()})
			expect.OK(t, err)
			stamps := map[string]string{before: FormatTime(evening, time.UTC), now: FormatTime(step, time.UTC),
				none: ""}
			period := next.fields.Object("rectificationPeriod")
			if period.Text("startDate") != stamps[c.start] || period.Text("endDate") != stamps[c.end] {
				t.Errorf("got period %v, want start %q and end %q", period, stamps[c.start], stamps[c.end])
			}
			if moved := next.fields.Text("date") == stamps[now]; moved != (c.from != c.to) ||
				next.Listed() != c.listed || !hasLot(next.fields) {
				t.Errorf("got %v, want a lot, listed %t, and a new date only after a step", next.fields, c.listed)
			}
		})
	}
}

func TestConditionsOfSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		a     Asset
		by    Role
		patch string
		kind  fault.Kind
		place string
	}{
		{"publish without items", valid(t, `{"items":[]}`), Owner, `{"status":"pending"}`, fault.Invalid, "data"},
		{"publish and remove the items", valid(t, `{}`), Owner, `{"status":"pending","items":[]}`, fault.Invalid,
			"data"},
		{"publish and remove the decisions", valid(t, `{}`), Owner, `{"status":"pending","decisions":[]}`,
			fault.Invalid, "data"},
		{"remove the items of a published asset", in(t, Pending), Owner, `{"items":[]}`, fault.Invalid, "items"},
		{"delete and remove the items", in(t, Pending), Owner, `{"items":null,"status":"deleted"}`, fault.Invalid,
			"items"},
		{"activate without a lot", change(t, in(t, Pending), Owner, `{"relatedProcesses":[],"status":"pending"}`),
			Concierge, `{"status":"active"}`, fault.Forbidden, "data"},
		{"delete without a cancellation", change(t, valid(t, `{}`), Owner, `{"status":"pending"}`), Owner,
			`{"status":"deleted"}`, fault.Forbidden, "mode"},
		{"a forbidden step comes before an unknown field", in(t, Pending), Owner, `{"status":"active","colour":1}`,
			fault.Forbidden, "data"},
		{"an unknown field comes before a missing cancellation",
			change(t, valid(t, `{}`), Owner, `{"status":"pending"}`), Owner, `{"status":"deleted","colour":1}`,
			fault.Invalid, "colour"},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, differs, err := rules.Change(c.a,
				Change{Fields: parse(t, c.patch), Caller: Caller{Role: c.by}, Now: evening, NewID: ids()})
			if fault.KindOf(err) != c.kind || places(err) != c.place || differs ||
				!record.Equal(next.fields, c.a.fields) {
				t.Errorf("got %v at %q, want kind %d at %q", err, places(err), c.kind, c.place)
			}
		})
	}
	published := change(t, valid(t, `{"items":[]}`), Owner,
		`{"status":"pending","items":`+string(record.Append(nil, valid(t, `{}`).fields.Get("items")))+`}`)
	if published.Status() != Pending {
		t.Errorf("items in the publishing request: got status %s, want pending", published.Status())
	}
	lotless := change(t, in(t, Pending), Owner, `{"relatedProcesses":[]}`)
	lotless = change(t, lotless, Concierge, `{"status":"verification"}`)
	activate := Change{Fields: parse(t, `{"status":"active"}`), Caller: Caller{Role: Concierge}, Now: evening, NewID: ids()}
	_, _, err := rules.Change(lotless, activate)
	if fault.KindOf(err) != fault.Invalid || places(err) != "relatedProcesses" {
		t.Errorf("activate without a lot: got %v, want a fault at relatedProcesses", err)
	}
}
