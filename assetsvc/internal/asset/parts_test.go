package asset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// night is the time of the changes of parts in these tests.
var night = evening.Add(2 * time.Hour)

const (
	validItem = `{"description":"Друге","classification":{"id":"06111000-3","description":"Земля"},"unit":{"code":"MTK"},
		"quantity":1,"address":{"countryName":"Україна"},"registrationDetails":{}}`
	validDecision = `{"decisionDate":"2026-11-21T12:00:00+02:00","decisionID":"1637-11"}`
	validDocument = `{"documentType":"notice","title":"Оголошення","url":"https://docs.example/a?b=c"}`
	validProcess  = `{"type":"lot","relatedProcessID":"dddddddddddddddddddddddddddddddd"}`
)

// validPart has a valid part of each kind, in the form in which clients send it.
var validPart = map[string]string{"items": validItem, "decisions": validDecision, "documents": validDocument,
	"related_processes": validProcess}

func part(t testing.TB, path string) Part {
	t.Helper()
	for _, p := range Parts() {
		if p.Path == path {
			return p
		}
	}
	t.Fatalf("got no kind of parts at %s, want one", path)
	return Part{}
}

// ask applies a verb to the first part of a kind. The verb Add adds a new part instead.
func ask(t testing.TB, a Asset, by Role, path string, verb Verb, sent string) (Asset, record.Object, error) {
	t.Helper()
	c := PartChange{Part: part(t, path), Verb: verb, Caller: Caller{Role: by}, Now: night, NewID: ids()}
	if verb != Add {
		c.ID = first(t, a, path)
	}
	if verb != Remove {
		c.Fields = parse(t, sent)
	}
	return rules.ChangePart(a, c)
}

// The function `first` returns the id of an asset's first part of a kind.
func first(t testing.TB, a Asset, path string) string {
	t.Helper()
	list := a.Parts(part(t, path), AllVersions)
	expect.FatalIf(t, len(list) == 0, "got no %s in the asset, want some", path)
	return idOf(list[0])
}

// done is like ask, but fails the test if the change is refused.
func done(t testing.TB, a Asset, by Role, path string, verb Verb, sent string) (Asset, record.Object) {
	t.Helper()
	next, changed, err := ask(t, a, by, path, verb, sent)
	expect.Must(t, err, "%s", sent)
	return next, changed
}

// lotless returns an asset in the given state without a related process.
func lotless(t testing.TB, s Status) Asset {
	t.Helper()
	return Asset{fields: in(t, s).fields.Without("relatedProcesses")}
}

// TestWhoChangesParts tries each verb on each kind of part, in each state and with each role. Only the role in
// the table may change parts, and only in the listed states (docs/contract.md, "Parts").
// Promises: part-writers
func TestWhoChangesParts(t *testing.T) {
	for _, allowed := range []struct {
		path    string
		by      Role
		in      []Status
		refusal string
		verbs   []Verb
		merge   string
	}{
		{"items", Owner, []Status{Draft, Pending}, "Can't update or create item in current (%s) asset status",
			[]Verb{Add, Merge}, `{"description":"x"}`},
		{"decisions", Owner, []Status{Draft, Pending}, "Can't update decisions in current (%s) asset status",
			[]Verb{Add, Merge}, `{"decisionID":"x"}`},
		{"documents", Owner, []Status{Pending}, "Can't update document in current (%s) asset status",
			[]Verb{Add, Merge, Replace}, `{"title":"x"}`},
		{"related_processes", Concierge, []Status{Draft, Pending, Verification, Active, Complete, Deleted}, "",
			[]Verb{Add, Merge, Remove}, `{"identifier":"x"}`},
	} {
		expect.Equal(t, fmt.Sprint(part(t, allowed.path).Verbs), fmt.Sprint(allowed.verbs), "%s, verbs", allowed.path)
		for _, status := range Statuses {
			for _, by := range allRoles {
				for _, verb := range allowed.verbs {
					t.Run(fmt.Sprintf("%s, %s in %s: verb %d", allowed.path, by, status, verb), func(t *testing.T) {
						a := in(t, status)
						sent := validPart[allowed.path]
						switch {
						case verb == Merge:
							sent = allowed.merge
						case allowed.path == "related_processes" && verb == Add:
							a = lotless(t, status)
						}
						next, _, err := ask(t, a, by, allowed.path, verb, sent)
						if by != allowed.by {
							if fault.KindOf(err) != fault.Forbidden || places(err) != "permission" || !next.Equal(a) {
								t.Errorf("got %v, want kind Forbidden at permission and no change", err)
							}
							return
						}
						open := slices.Contains(allowed.in, status)
						switch {
						case !open:
							if fault.KindOf(err) != fault.Forbidden ||
								err.Error() != "body/data: "+fmt.Sprintf(allowed.refusal, status) || !next.Equal(a) {
								t.Errorf("got %v, want kind Forbidden at data and no change", err)
							}
						case verb == Remove && status == Active:
							if fault.KindOf(err) != fault.Invalid || places(err) != "relatedProcesses" {
								t.Errorf("remove the lot of an active asset: got %v, want a fault at relatedProcesses", err)
							}
						case err != nil || next.Equal(a):
							t.Errorf("got %v, %v; want a changed asset", next.fields, err)
						case next.Status() != a.Status():
							t.Errorf("got status %s, want %s", next.Status(), a.Status())
						}
					})
				}
			}
		}
	}
}

func TestPartFaults(t *testing.T) {
	for _, c := range []struct {
		name, path        string
		verb              Verb
		sent, place, says string
	}{
		{"an empty item", "items", Add, `{}`, "description classification unit quantity address registrationDetails",
			"This field is required."},
		{"an item without a unit's code", "items", Add, strings.Replace(validItem, `"code":"MTK"`, `"name":"x"`, 1),
			"unit.code", "This field is required."},
		{"an item with an unknown scheme", "items", Merge, `{"classification":{"scheme":"X"}}`,
			"classification.scheme", "Value must be one of ['CAV-PS', 'CPV']."},
		{"an item with a code of another form", "items", Merge, `{"classification":{"scheme":"CPV","id":"x"}}`,
			"classification.id", noMatch},
		{"an additional code of another form", "items", Merge,
			`{"additionalClassifications":[{"scheme":"dk018","id":"x"}]}`, "additionalClassifications.0.id", noMatch},
		{"an item registered too early", "items", Merge,
			`{"registrationDetails":{"registrationID":"x","registrationDate":"2026-01-01"}}`,
			"registrationDetails.registrationID registrationDetails.registrationDate",
			"You can fill registrationID only when status is complete"},
		{"an item with an unknown field", "items", Merge, `{"colour":1,"unit":{"colour":1}}`, "unit.colour colour",
			rogue},
		{"an item that loses required fields", "items", Merge, `{"unit":null,"quantity":"x"}`, "unit quantity",
			"This field is required."},
		{"an empty decision", "decisions", Add, `{}`, "decisionDate decisionID", "This field is required."},
		{"a decision with an empty number", "decisions", Merge, `{"decisionID":""}`, "decisionID",
			"This field is required."},
		{"a decision with a bad date", "decisions", Merge, `{"decisionDate":"x"}`, "decisionDate",
			"Should be ISO8601."},
		{"an empty document", "documents", Add, `{}`, "documentType title", "This field is required."},
		{"a document without a url", "documents", Add, `{"documentType":"notice","title":"x"}`, "url",
			"This field is required."},
		{"a document with an empty url", "documents", Add, `{"documentType":"notice","title":"x","url":""}`, "url",
			"This field is required."},
		{"a document with a bad url", "documents", Add, `{"documentType":"notice","title":"x","url":"ftp://x.ua"}`,
			"url", "Not a well formed URL."},
		{"a document of an unknown type", "documents", Merge, `{"documentType":"virtualDataRoom"}`, "documentType",
			"Value must be one of"},
		{"a document of an unknown object", "documents", Merge, `{"documentOf":"lot"}`, "documentOf",
			"Value must be one of ['asset', 'item']."},
		{"a document related to a bad id", "documents", Merge, `{"documentOf":"item","relatedItem":"x"}`,
			"relatedItem", "Hash value is wrong length."},
		{"a document with a bad media type", "documents", Merge, `{"format":"pdf"}`, "format", noMatch},
		{"a document with an unknown hash", "documents", Replace,
			strings.Replace(validDocument, "{", `{"hash":"crc:00",`, 1), "hash", "Hash type is not supported."},
		{"a document with a short hash", "documents", Replace,
			strings.Replace(validDocument, "{", `{"hash":"md5:00",`, 1), "hash", "Hash value is wrong length."},
		{"a document with a hash that is not hexadecimal", "documents", Replace,
			strings.Replace(validDocument, "{", `{"hash":"md5:`+strings.Repeat("x", 32)+`",`, 1), "hash",
			"Hash value is not hexadecimal."},
		{"a familiarization document with a url", "documents", Add,
			`{"documentType":"x_dgfAssetFamiliarization","title":"x","url":"https://x.ua","hash":"md5:` +
				strings.Repeat("0", 32) + `"}`, "url hash accessDetails", "This field is not required."},
		{"a familiarization document with a hash", "documents", Add, `{"documentType":"x_dgfAssetFamiliarization","title":"x",
			"accessDetails":"x","hash":"md5:` + strings.Repeat("0", 32) + `"}`, "hash", "This field is not required."},
		{"the first document gets another type", "documents", Merge, `{"documentType":"notice"}`, "documentType",
			"First document should be document with informationDetailsdocumentType"},
		{"an incomplete version of a document", "documents", Replace, `{"title_en":"x"}`, "documentType title",
			"This field is required."},
		{"a wrong type in fields that the service sets", "documents", Merge, `{"dateModified":"x","author":[]}`,
			"author dateModified", "Couldn't interpret"},
		{"a process that loses its id", "related_processes", Merge, `{"relatedProcessID":null}`, "relatedProcessID",
			"This field is required."},
		{"a process with a short id", "related_processes", Merge, `{"relatedProcessID":"x"}`, "relatedProcessID",
			"Hash value is wrong length."},
		{"a process of an unknown type", "related_processes", Merge, `{"type":"x"}`, "type",
			"Value must be one of ['asset', 'auction', 'lot']."},
		{"a second process", "related_processes", Add, validProcess, "relatedProcesses",
			"Please provide no more than 1 item."},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := in(t, Pending)
			next, _, err := ask(t, a, part(t, c.path).writer, c.path, c.verb, c.sent)
			if fault.KindOf(err) != fault.Invalid || places(err) != c.place ||
				!strings.Contains(err.Error(), c.says) || !next.Equal(a) {
				t.Errorf("got %v, want faults at %s with %q, and no change", err, c.place, c.says)
			}
		})
	}
}

func TestOrderOfPartRefusals(t *testing.T) {
	complete := in(t, Complete)
	for _, c := range []struct {
		name            string
		a               Asset
		by              Role
		id, sent, place string
	}{
		{"a missing part comes first", complete, Other, "x", `{"colour":1}`, "item_id"},
		{"permission comes before the fields", complete, Other, first(t, complete, "items"), `{"colour":1}`,
			"permission"},
		{"the fields come before the state", complete, Owner, first(t, complete, "items"), `{"colour":1}`, "colour"},
		{"the state comes last", complete, Owner, first(t, complete, "items"), `{"description":"x"}`, "data"},
		{"the state counts even without a change", complete, Owner, first(t, complete, "items"), `{}`, "data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := rules.ChangePart(c.a,
				PartChange{Part: part(t, "items"), ID: c.id, Verb: Merge, Fields: parse(t, c.sent),
					Caller: Caller{Role: c.by}, Now: night, NewID: ids()})
			expect.ErrorIf(t, places(err) != c.place, "got %v, want a fault at %s", err, c.place)
		})
	}
}

// Promises: part-ids
func TestItems(t *testing.T) {
	chosen := strings.Repeat("e", 32)
	a := in(t, Pending)
	for _, c := range []struct{ name, id, want string }{
		{"the service keeps a client's id", chosen, chosen},
		{"the service replaces a placeholder id", "0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			next, item := done(t, a, Owner, "items", Add, strings.Replace(validItem, "{", `{"id":"`+c.id+`",`, 1))
			if got := item.Text("id"); !idForm.MatchString(got) || c.want != "" && got != c.want {
				t.Errorf("got id %s, want %q, or any valid id for \"\"", got, c.want)
			}
			if item.Object("classification").Text("scheme") != "CAV-PS" ||
				item.Object("registrationDetails").Text("status") != "unknown" || len(next.fields.List("items")) != 2 {
				t.Errorf("got %v, want a second item with the default values", item)
			}
		})
	}
	taken := strings.Replace(validItem, "{", `{"id":"`+first(t, a, "items")+`",`, 1)
	if _, _, err := ask(t, a, Owner, "items", Add, taken); places(err) != "id" ||
		!strings.Contains(err.Error(), "Item id should be uniq for all items") {
		t.Errorf("an id that is taken: got %v, want a fault at id", err)
	}
	next, item := done(t, a, Owner, "items", Merge,
		`{"id":"`+chosen+`","quantity":"2.00005","additionalClassifications":[],"unit":{"name":"м²"}}`)
	if item.Text("id") != first(t, a, "items") || item.Get("quantity") != record.Number("2.0001") ||
		item.Get("additionalClassifications") != nil || item.Object("unit").Text("code") != "MTK" {
		t.Errorf("got %v, want the merged item with its own id", item)
	}
	if next.fields.Text("date") != a.fields.Text("date") {
		t.Errorf("got date %s, want %s: only the status moves it", next.fields.Text("date"), a.fields.Text("date"))
	}
}

// Promises: decisionof
func TestChangesThatChangeNothing(t *testing.T) {
	for _, c := range []struct {
		name, path string
		verb       Verb
		sent       string
	}{
		{"an empty merge", "items", Merge, `{}`},
		{"the same values", "items", Merge, `{"unit":{"code":"MTK"},"quantity":"5.00010"}`},
		{"another id of an item", "items", Merge, `{"id":"` + strings.Repeat("e", 32) + `"}`},
		{"null for an absent field", "items", Merge, `{"location":null}`},
		{"fields that a decision ignores", "decisions", Merge, `{"decisionOf":"lot","relatedItem":"x"}`},
		{"fields that the service sets", "documents", Merge,
			`{"id":"x","author":"me","datePublished":"2020-01-01","dateModified":"2020-01-01"}`},
		{"fields that are fixed", "documents", Merge, `{"url":"https://elsewhere.example/","hash":"x"}`},
		{"null for fields that the service sets", "documents", Merge, `{"id":null,"datePublished":null,"url":null}`},
		{"the same version of a document", "documents", Replace,
			`{"documentType":"informationDetails","title":"Інформація про оприлюднення інформаційного повідомлення","url":"https://prozorro.sale/info/ssp_details"}`},
		{"another id of a process", "related_processes", Merge, `{"id":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := in(t, Pending)
			next, got, err := ask(t, a, part(t, c.path).writer, c.path, c.verb, c.sent)
			if err != nil || !next.Equal(a) || idOf(got) != first(t, a, c.path) {
				t.Errorf("got %v, %v; want the part as it was", got, err)
			}
		})
	}
}

// Promises: ids-ours
func TestDocuments(t *testing.T) {
	a := in(t, Pending)
	now := FormatTime(night, time.UTC)
	a, added := done(t, a, Owner, "documents", Add,
		strings.Replace(validDocument, "{",
			`{"id":"`+strings.Repeat("e", 32)+`","author":"me","dateModified":"2020-01-01","description":"один",`, 1))
	if added.Text("id") == strings.Repeat("e", 32) || added.Text("author") != "asset_owner" ||
		added.Text("datePublished") != now || added.Text("dateModified") != now || added.Text("documentOf") != "asset" {
		t.Errorf("add: got %v, want the id, author and dates of the service", added)
	}
	if !strings.HasPrefix(string(record.Append(nil, added)),
		`{"id":"`+added.Text("id")+`","documentType":"notice","title":`) {
		t.Errorf("add: got %v, want the fields in the order id, documentType, title", added)
	}
	documents, id := part(t, "documents"), added.Text("id")
	alter := func(verb Verb, at time.Time, sent string) record.Object {
		t.Helper()
		next, changed, err := rules.ChangePart(a,
			PartChange{Part: documents, ID: id, Verb: verb, Fields: parse(t, sent), Caller: Caller{Role: Owner},
				Now: at, NewID: ids()})
		expect.OK(t, err)
		a = next
		return changed
	}
	later, last := night.Add(time.Hour), night.Add(2*time.Hour)
	replaced := alter(Replace, later, `{"documentType":"notice","title":"Друге","url":"https://docs.example/2",
		"id":"x","datePublished":"2020-01-01"}`)
	if replaced.Text("id") != id || replaced.Text("datePublished") != now ||
		replaced.Text("author") != "asset_owner" || replaced.Text("dateModified") != FormatTime(later, time.UTC) ||
		replaced.Text("description") != "один" {
		t.Errorf("replace: got %v, want a new dateModified and the other fields of the service kept", replaced)
	}
	merged := alter(Merge, last, `{"description":null,"documentOf":"item","format":"application/pdf"}`)
	if merged.Text("url") != "https://docs.example/2" || merged.Get("description") != nil ||
		merged.Text("documentOf") != "item" || merged.Text("dateModified") != FormatTime(last, time.UTC) {
		t.Errorf("merge: got %v, want the merged fields and a new dateModified", merged)
	}
	if got := a.Parts(documents, AllVersions); len(got) != 4 || !record.Equal(got[3], merged) ||
		!record.Equal(got[2], added) {
		t.Errorf("all versions: got %v, want 4 with the merged one last", got)
	}
	if got := a.Parts(documents, Newest); len(got) != 3 || idOf(got[2]) != id || !record.Equal(got[2], merged) {
		t.Errorf("newest versions: got %v, want 3 with the merged one last", got)
	}
	read, err := a.Part(documents, id)
	if previous := read.List("previousVersions"); err != nil || len(previous) != 1 ||
		!record.Equal(previous[0], added) || !record.Equal(read.Without("previousVersions"), merged) {
		t.Errorf("read: got %v, %v; want the merged document and one previous version", read, err)
	}
	for _, c := range []struct{ key, want string }{
		{"b=c", "https://docs.example/a?b=c"}, {"docs", "https://docs.example/2"}, {"none", ""},
	} {
		if got, err := a.Download(documents, id, c.key); got != c.want ||
			(c.want == "") != (places(err) == "download") {
			t.Errorf("download %s: got %q, %v; want %q", c.key, got, err, c.want)
		}
	}
	seen, _ := done(t, a, Owner, "documents", Add,
		`{"documentType":"x_dgfAssetFamiliarization","title":"x","accessDetails":"щодня"}`)
	a, _ = done(t, seen, Owner, "documents", Add,
		`{"documentType":"cancellationDetails","title":"x","url":"http://127.0.0.1:8080/get/%D1%97?Signature=a%2Bb&KeyID=c"}`)
	if a = change(t, a, Owner, `{"status":"deleted"}`); a.Status() != Deleted {
		t.Errorf("got status %s, want deleted", a.Status())
	}
}

// Promises: document-versions
func TestDocumentsAreListedInTheOrderOfTheirChanges(t *testing.T) {
	a := change(t, valid(t, `{}`), Owner, `{"status":"pending"}`)
	for _, title := range []string{"one", "two", "three"} { // all three have the same time
		a, _ = done(t, a, Owner, "documents", Add, strings.Replace(validDocument, "Оголошення", title, 1))
	}
	titles := func() string {
		var got []string
		for _, document := range a.Parts(part(t, "documents"), Newest) {
			got = append(got, document.(record.Object).Text("title"))
		}
		return strings.Join(got[1:], " ")
	}
	expect.Equal(t, titles(), "one two three", "after the additions")
	c := PartChange{Part: part(t, "documents"), ID: idOf(a.Parts(part(t, "documents"), AllVersions)[1]), Verb: Merge,
		Fields: parse(t, `{"index":1}`), Caller: Caller{Role: Owner}, Now: night.Add(time.Second), NewID: ids()}
	var err error
	if a, _, err = rules.ChangePart(a, c); err != nil || titles() != "two three one" {
		t.Errorf("after a change of the first: got %s, %v; want two three one", titles(), err)
	}
}

// Promises: ids-ours
func TestRelatedProcesses(t *testing.T) {
	a, added := done(t, lotless(t, Verification), Concierge, "related_processes", Add,
		strings.Replace(validProcess, "{", `{"id":"`+strings.Repeat("e", 32)+`",`, 1))
	if !idForm.MatchString(added.Text("id")) || added.Text("id") == strings.Repeat("e", 32) {
		t.Errorf("add: got %v, want an id that the service makes", added)
	}
	without, removed := done(t, a, Concierge, "related_processes", Remove, "")
	if removed != nil || without.fields.Get("relatedProcesses") != nil {
		t.Errorf("remove: got %v and %v, want no part and no relatedProcesses", removed, without.fields)
	}
	active := change(t, a, Concierge, `{"status":"active"}`)
	for _, c := range []struct {
		name string
		verb Verb
		sent string
	}{{"remove the lot", Remove, ""}, {"turn the lot into an auction", Merge, `{"type":"auction"}`}} {
		_, _, err := ask(t, active, Concierge, "related_processes", c.verb, c.sent)
		if places(err) != "relatedProcesses" ||
			!strings.Contains(err.Error(), "Asset must have related lot to become active.") {
			t.Errorf("%s: got %v, want a fault at relatedProcesses", c.name, err)
		}
	}
	_, changed := done(t, active, Concierge, "related_processes", Merge, `{"identifier":"UA-LR-1"}`)
	expect.ErrorIf(t, changed.Text("identifier") != "UA-LR-1", "merge: got %v, want identifier UA-LR-1", changed)
}

func FuzzPart(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"id":null,"description":null}`, `{"quantity":1e5,"unit":{"code":1}}`, validItem, validDecision,
		validDocument, validProcess,
		`{"url":null,"hash":"x","author":1,"dateModified":null}`,
		`{"documentType":"x_dgfAssetFamiliarization","accessDetails":"x","title":"x"}`,
		`{"type":"auction","id":[]}`,
	} {
		for kind := range parts {
			f.Add([]byte(seed), uint8(kind), uint8(len(seed)), uint8(len(seed)))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, kind, verb, status uint8) {
		value, err := record.Parse(text)
		sent, ok := value.(record.Object)
		if err != nil || !ok {
			return
		}
		before := in(t, Statuses[int(status)%len(Statuses)])
		kept, p := string(before.Encode()), parts[int(kind)%len(parts)]
		c := PartChange{Part: p, Verb: p.Verbs[int(verb)%len(p.Verbs)], Fields: sent, Caller: Caller{Role: p.writer},
			Now: night, NewID: ids()}
		if c.Verb != Add {
			c.ID = first(t, before, p.Path)
		}
		next, changed, err := rules.ChangePart(before, c)
		if string(before.Encode()) != kept {
			t.Fatalf("%s: got argument %s after the call, want %s", text, before.Encode(), kept)
		}
		if err != nil {
			if kind := fault.KindOf(err); kind != fault.Invalid && kind != fault.Forbidden || !next.Equal(before) {
				t.Fatalf("%s: got %v, want kind Invalid or Forbidden and no change", text, err)
			}
			return
		}
		if !record.Equal(next.fields.Without(p.field), before.fields.Without(p.field)) {
			t.Fatalf("%s: got %s from %s, want a change of %s only", text, next.Encode(), kept, p.field)
		}
		if c.Verb == Remove {
			return
		}
		if got, err := next.Part(p, idOf(changed)); err != nil ||
			!record.Equal(got.Without("previousVersions"), changed) {
			t.Fatalf("%s: read: got %v, %v; want %v", text, got, err, changed)
		}
		if c.Verb != Add {
			if again, _, err := rules.ChangePart(next, c); err != nil || !again.Equal(next) {
				t.Fatalf("%s again: got %s, %v; want %s", text, again.Encode(), err, next.Encode())
			}
		}
	})
}

// TestAnEmptyTextIsNotFilledIn sends parts with empty texts. The rules over several fields must treat an empty
// text like an absent one (docs/contract.md, "Field rules").
func TestAnEmptyTextIsNotFilledIn(t *testing.T) {
	for _, c := range []struct{ name, path, sent string }{
		{"a number of a registration", "items",
			strings.Replace(validItem, `"registrationDetails":{}`, `"registrationDetails":{"registrationID":""}`, 1)},
		{"a number while it is registered", "items", strings.Replace(validItem, `"registrationDetails":{}`,
			`"registrationDetails":{"status":"registering","registrationID":""}`, 1)},
		{"url, hash and format", "documents", `{"documentType":"x_dgfAssetFamiliarization","title":"x",
			"accessDetails":"щодня","url":"","hash":"","format":""}`},
		{"only url", "documents",
			`{"documentType":"x_dgfAssetFamiliarization","title":"x","accessDetails":"x","url":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := ask(t, in(t, Pending), Owner, c.path, Add, c.sent); err != nil {
				t.Errorf("got %v, want no fault", err)
			}
		})
	}
}
