package httpapi

import (
	"errors"
	"io"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// TestAHeadHasTheHeadersOfItsGet reads several resources with both methods. The answers must have the same status and
// the same headers, which name the size of the body.
func TestAHeadHasTheHeadersOfItsGet(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	url := "https://docs.example/1"
	document := s.made(t, exchange{"POST", at + "/documents", identity.Broker, "token",
		`{"data":{"documentType":"notice","title":"x","url":"` + url + `"}}`, 201, ""})
	for _, c := range []struct {
		path   string
		status int
	}{
		{at, 200}, {at + "?opt_pretty=1", 200}, {at + "?opt_jsonp=f", 200}, {at + "/items", 200}, {document, 200},
		{document + "?download=x", 302}, {"/api/2.5/assets", 200},
	} {
		got := s.do(t, exchange{"GET", c.path, "", "", "", c.status, ""})
		head := s.do(t, exchange{"HEAD", c.path, "", "", "", c.status, ""})
		for name := range got.Header() {
			if g, h := got.Header().Get(name), head.Header().Get(name); g != h {
				t.Errorf("%s: got the header %s %q, want %q", c.path, name, h, g)
			}
		}
		if size := strconv.Itoa(got.Body.Len()); head.Header().Get("Content-Length") != size || head.Body.Len() > 0 {
			t.Errorf("%s: got the size %s and %d bytes, want %s and none", c.path, head.Header().Get("Content-Length"),
				head.Body.Len(), size)
		}
		expect.Equal(t, got.Header().Get("Cache-Control"), "no-cache", "Cache-Control")
	}
}

// TestAnIndentedAnswerEndsItsLine asks for indented answers in the query, and in the body.
func TestAnIndentedAnswerEndsItsLine(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	change, option := `{"data":{"title":"y"}}`, `{"data":{"title":"z"},"options":{"pretty":true}}`
	for _, e := range []exchange{
		{"GET", at + "?opt_pretty=1", "", "", "", 200, ""},
		{"PATCH", at + "?opt_pretty=1", identity.Broker, "token", change, 200, `"y"`},
		{"PATCH", at, identity.Broker, "token", option, 200, `"z"`},
		{"GET", at, "", "", "", 200, ""},
		{"PATCH", at, identity.Broker, "token", change, 200, `"y"`},
	} {
		got := s.do(t, e).Body.String()
		want := strings.Contains(e.path, "pretty") || e.body == option
		if indented := strings.HasPrefix(got, "{\n    \"data\": {\n") && strings.HasSuffix(got, "\n}\n"); indented != want {
			t.Errorf("%s %s %s: got an indented answer: %t, want %t:\n%s", e.method, e.path, e.body, indented, want, got)
		}
	}
}

// TestARequestThatCannotBeReadIsRefused sends malformed queries and bodies.
func TestARequestThatCannotBeReadIsRefused(t *testing.T) {
	s := newService(t)
	at := s.published(t)
	for _, query := range []string{"?%zz", "?a;b", "?%ff=1", "?opt_fields=%ff"} {
		s.do(t, exchange{"GET", at + query, "", "", "", 400, `"name":"query"`})
	}
	s.do(t, exchange{"GET", at + "?opt_jsonp=a-b", "", "", "", 400, `"name":"opt_jsonp"`})
	long := `{"data":{}}` + strings.Repeat(" ", 1<<20-len(`{"data":{}}`))
	s.do(t, exchange{"PATCH", at, identity.Broker, "token", long, 200, ""})
	s.do(t, exchange{"POST", "/api/2.5/assets", identity.Broker, "", long + " ", 413, "The body has more than"})
	r := httptest.NewRequest("PATCH", at, io.MultiReader(strings.NewReader(`{"data":{}}`),
		iotest.ErrReader(errors.New("the connection broke"))))
	signed := expect.Get(s.signer.Sign(identity.Identity{Broker: "broker", Role: identity.Broker, Levels: "3"}))(t)
	r.Header.Set(identity.Header, signed)
	r.Header.Set(tokenHeader, "token")
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, r)
	if recorder.Code != 400 || !strings.Contains(recorder.Body.String(), "ended before it was complete") {
		t.Errorf("got %d %s, want 400 for a body that ends too early", recorder.Code, recorder.Body)
	}
}
