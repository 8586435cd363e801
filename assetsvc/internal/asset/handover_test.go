package asset

import (
	"strings"
	"testing"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
)

// TestParseHandover parses bodies of handovers. Each case has the values of the body, or the names of the
// fields with faults.
// Promises: ownership-fields
func TestParseHandover(t *testing.T) {
	const secret = "sesame"
	for _, c := range []struct{ name, sent, id, token, places string }{
		{"an id and a token in strings", `{"id":"x","transfer":"sesame"}`, "x", secret, ""},
		{"an id in a number", `{"id":17,"transfer":"sesame"}`, "17", secret, ""},
		{"an id and a token in booleans", `{"id":true,"transfer":false}`, "true", "false", ""},
		{"an empty body", `{}`, "", "", "id transfer"},
		{"null and an empty token", `{"id":null,"transfer":""}`, "", "", "id transfer"},
		{"an id with a fraction", `{"id":1.5,"transfer":"sesame"}`, "", "", "id"},
		{"a token in a list", `{"id":"x","transfer":["sesame"]}`, "", "", "transfer"},
		{"an unknown field", `{"id":"x","transfer":"sesame","transfr":"sesame"}`, "", "", "transfr"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, token, err := ParseHandover(parse(t, c.sent))
			if c.places == "" && (err != nil || id != c.id || token != c.token) {
				t.Errorf("got %q, %q, %v; want %q and %q", id, token, err, c.id, c.token)
			}
			if c.places != "" && (fault.KindOf(err) != fault.Invalid || places(err) != c.places ||
				strings.Contains(err.Error(), secret)) {
				t.Errorf("got %v, want faults at %s without the token", err, c.places)
			}
		})
	}
}

// TestParseRecovery parses bodies of recoveries. Each case has the reason, or the names of the fields with faults.
func TestParseRecovery(t *testing.T) {
	for _, c := range []struct{ sent, reason, places string }{
		{`{"reason":"lost"}`, "lost", ""},
		{`{}`, "", "reason"},
		{`{"reason":["lost"]}`, "", "reason"},
		{`{"reason":5}`, "", "reason"},
		{`{"reason":true}`, "", "reason"},
		{`{"reason":null}`, "", "reason"},
		{`{"reason":" \t\n\u00a0\u2003\u3000"}`, "", "reason"},
		{`{"reason":" x "}`, " x ", ""},
		{`{"reason":"lost","owner":"b"}`, "", "owner"},
		{`{"reason":"` + strings.Repeat("я", 1000) + `"}`, strings.Repeat("я", 1000), ""},
		{`{"reason":"` + strings.Repeat("я", 1001) + `"}`, "", "reason"},
	} {
		reason, err := ParseRecovery(parse(t, c.sent))
		if c.places == "" && (err != nil || reason != c.reason) {
			t.Errorf("%s: got %q, %v; want %q", c.sent, reason, err, c.reason)
		}
		if c.places != "" && (fault.KindOf(err) != fault.Invalid || places(err) != c.places) {
			t.Errorf("%s: got %v, want faults at %s", c.sent, err, c.places)
		}
	}
}

func TestAnErrorDoesNotRevealAToken(t *testing.T) {
	for _, name := range []string{"owner_token", "transfer_token"} {
		_, err := rules.Create(parse(t, validText).With(name, record.List{"sesame"}), origin())
		if places(err) != name || strings.Contains(err.Error(), "sesame") {
			t.Errorf("got %v, want a fault at %s without the token", err, name)
		}
	}
}

// TestCheckTransfer checks bodies of new transfers. Each case has the names of the fields with faults.
// Promises: transfer-fields
func TestCheckTransfer(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{`{}`, ""}, {`{"id":"x","date":"2026-11-20","usedFor":null}`, ""}, {`{"ids":"x"}`, "ids"},
		{`{"id":[],"asset":1}`, "id asset"},
	} {
		err := CheckTransfer(parse(t, c.sent))
		if c.want == "" && err != nil || c.want != "" && places(err) != c.want {
			t.Errorf("%s: got %v, want faults at %q", c.sent, err, c.want)
		}
	}
}

// TestWebAddresses lists addresses. The column "document" says whether the url of a document accepts the address. The
// column "other" says whether the uri of an organisation accepts it.
func TestWebAddresses(t *testing.T) {
	for _, want := range []struct {
		address         string
		document, other bool
	}{
		{"https://docs.example/get/1?x=y", true, true},
		{"http://localhost:8081/get/1", true, true},
		{"http://127.0.0.1/", true, true},
		{"http://minio:9000/get/1", true, false},
		{"http://doc_service/get/1", true, false},
		{"HTTPS://Docs-1/", true, false},
		{"http://[::1]:8081/get/1", true, false},
		{"http://їжак/", true, false},
		{"http://1/", false, false},
		{"http:///get/1", false, false},
		{"http://-/", false, false},
		{"http://999.999.999.999/", false, false},
		{"ftp://docs/", false, false},
		{"docs/get/1", false, false},
		{"javascript:alert(1)", false, false},
		{"http://docs/a b", false, false},
		{"http://broker:secret@docs/", false, false},
		{"http://" + strings.Repeat("a", 200), false, false},
	} {
		d := strings.Replace(validDocument, "https://docs.example/a?b=c", want.address, 1)
		_, _, err := ask(t, in(t, Pending), Owner, "documents", Add, d)
		if (err == nil) != want.document || err != nil && places(err) != "url" {
			t.Errorf("%s in a document: got %v, want accepted %t", want.address, err, want.document)
		}
		_, _, err = rules.Change(valid(t, `{}`), Change{
			Fields: parse(t, `{"assetCustodian":{"identifier":{"uri":"`+want.address+`"}}}`),
			Caller: Caller{Role: Owner}, Now: evening, NewID: ids(),
		})
		if (err == nil) != want.other {
			t.Errorf("%s in an organisation: got %v, want accepted %t", want.address, err, want.other)
		}
	}
}
