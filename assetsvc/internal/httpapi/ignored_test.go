package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
)

// TestAnAnswerNamesIgnoredFields sends each kind of write with a field that the registry ignores. The answer
// must name this field.
// Promises: ignored-named
func TestAnAnswerNamesIgnoredFields(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	with := strings.Replace(validAsset, `"title"`, `"documents":[{"documentType":"notice","title":"x"}],"title"`, 1)
	document := `{"data":{"documentType":"notice","title":"x","url":"https://docs.example/1","author":"x"}}`
	for _, c := range []struct {
		exchange
		want string
	}{
		{exchange{"POST", "/api/2.5/assets", identity.Broker, "", with, 201, ""}, "documents"},
		{exchange{"POST", "/api/2.4/assets", identity.Broker, "", with, 201, ""}, "documents"},
		{exchange{"POST", "/api/2.5/assets", identity.Broker, "", validAsset, 201, ""}, ""},
		{exchange{"PATCH", at, identity.Broker, "token", `{"data":{"owner":"x","mode":"test","title":"y"}}`, 200, ""},
			"mode, owner"},
		{exchange{"PATCH", at, identity.Broker, "token", `{"data":{"title":"z"}}`, 200, ""}, ""},
		{exchange{"PUT", at, identity.Broker, "token", with, 200, ""}, "documents"},
		{exchange{"POST", at + "/documents", identity.Broker, "token", document, 201, ""}, "author"},
		{exchange{"PATCH", at, identity.Broker, "token", `{"data":{"owner":"x","title":""}}`, 400, ""}, ""},
	} {
		got := s.do(t, c.exchange).Header().Values(httpserver.IgnoredHeader)
		if strings.Join(got, ";") != c.want {
			t.Errorf("%s %s %s: got %s %q, want %q", c.method, c.path, c.body, httpserver.IgnoredHeader, got, c.want)
		}
	}
}

// TestAnObjectThatIsSentBackHasNoIgnoredFields reads an asset and its parts in each version, and sends them back
// unchanged. The answers must name no ignored field.
func TestAnObjectThatIsSentBackHasNoIgnoredFields(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	s.do(t, exchange{"POST", at + "/documents", identity.Broker, "token",
		`{"data":{"documentType":"notice","title":"x","url":"https://docs.example/1"}}`, 201, ""})
	s.do(t, exchange{"PATCH", at, identity.Administrator, "",
		`{"data":{"rectificationPeriod":{"startDate":"2026-11-20"}}}`, 200, ""})
	for _, v := range []string{"2.4", "2.5"} {
		at := strings.Replace(at, "2.5", v, 1)
		back := func(path string, methods ...string) {
			for _, method := range methods {
				body := s.do(t, exchange{"GET", path, "", "", "", 200, ""}).Body.String()
				got := s.do(t, exchange{method, path, identity.Broker, "token", body, 200, ""}).Header()
				if names := got.Get(httpserver.IgnoredHeader); names != "" {
					t.Errorf("%s %s: got %s %q, want none", method, path, httpserver.IgnoredHeader, names)
				}
			}
		}
		back(at, "PATCH", "PUT")
		for _, kind := range []string{"items", "decisions"} {
			var listed struct{ Data []struct{ ID string } }
			text := s.do(t, exchange{"GET", at + "/" + kind, "", "", "", 200, ""}).Body.Bytes()
			if err := json.Unmarshal(text, &listed); err != nil || len(listed.Data) == 0 {
				t.Fatalf("got %s, %v, want some %s", text, err, kind)
			}
			back(at+"/"+kind+"/"+listed.Data[0].ID, "PATCH")
		}
	}
}

// Promises: hash-unchecked
func TestAHashThatNobodyComparesIsNamed(t *testing.T) {
	s := newService(t)
	at := s.published(t) + "/documents"
	for _, c := range []struct {
		method, fields, want string
		code                 int
	}{
		{"POST", `"title":"x","url":"https://docs.example/1","hash":"md5:d41d8cd98f00b204e9800998ecf8427e"`, "hash", 201},
		{"POST", `"title":"x","url":"https://docs.example/2"`, "", 201},
		{"POST", `"title":"","url":"https://docs.example/2","hash":"md5:d41d8cd98f00b204e9800998ecf8427e"`, "", 400},
	} {
		body := `{"data":{"documentType":"notice",` + c.fields + `}}`
		got := s.do(t, exchange{c.method, at, identity.Broker, "token", body, c.code, ""}).Header()
		if names := got.Get(httpserver.UncheckedHeader); names != c.want {
			t.Errorf("%s %s: got %s %q, want %q", c.method, body, httpserver.UncheckedHeader, names, c.want)
		}
	}
}
