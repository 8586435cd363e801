package faulthttp

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

func TestAFaultSurvivesHTTP(t *testing.T) {
	for _, c := range []struct {
		kind   fault.Kind
		status int
	}{
		{fault.Invalid, 400},
		{fault.Unauthorized, 401},
		{fault.Forbidden, 403},
		{fault.NotFound, 404},
		{fault.Conflict, 409},
		{fault.Precondition, 412},
		{fault.TooLarge, 413},
		{fault.UnsupportedMedia, 415},
		{fault.TooMany, 429},
		{fault.Unavailable, 503},
		{fault.Misdirected, 421},
	} {
		t.Run(fmt.Sprint(c.status), func(t *testing.T) {
			want := &fault.Error{Kind: c.kind, Details: []fault.Detail{
				{Location: fault.Body, Name: "title", Description: "«так»"},
				{Location: fault.Body, Name: "items.0", Description: "no"},
			}}
			if c.kind == fault.TooMany || c.kind == fault.Unavailable {
				want.RetryAfter = 7 * time.Second
			}
			recorder := httptest.NewRecorder()
			Write(recorder, fmt.Errorf("wrapped: %w", want))
			resp := recorder.Result()
			expect.Equal(t, resp.StatusCode, c.status, "status")
			for _, h := range []struct{ name, want string }{
				{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"},
			} {
				expect.Equal(t, resp.Header.Get(h.name), h.want, "%s", h.name)
			}
			expect.NoDiff(t, cmp.Diff(error(want), Read(resp)), "the fault")
		})
	}
}

func TestWriteHidesWhatIsNoFault(t *testing.T) {
	recorder := httptest.NewRecorder()
	Write(recorder, errors.New("password of the store is hunter2"))
	body := recorder.Body.String()
	if recorder.Code != 500 || strings.Contains(body, "hunter2") || !strings.Contains(body, `"status":"error"`) {
		t.Errorf("got %d %s, want 500 and an error body without the error's text", recorder.Code, body)
	}
}

// Promises: retry-after
func TestWriteSaysHowToGoOn(t *testing.T) {
	for _, c := range []struct {
		name         string
		err          error
		header, want string
	}{
		{"401 names the scheme", fault.New(fault.Unauthorized, fault.Header, "Authorization", "x"),
			"WWW-Authenticate", `Basic realm="registry"`},
		{"503 says when to retry", fault.New(fault.Unavailable, fault.URL, "store", "x"), "Retry-After", "1"},
		{"429 rounds the wait up", &fault.Error{Kind: fault.TooMany, RetryAfter: 1200 * time.Millisecond},
			"Retry-After", "2"},
		{"400 has no Retry-After", fault.New(fault.Invalid, fault.Body, "data", "x"), "Retry-After", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			Write(recorder, c.err)
			expect.Equal(t, recorder.Header().Get(c.header), c.want, "%s", c.header)
		})
	}
}

func TestReadTakesNothingForAFaultThatIsNone(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
	}{
		{"a proxy's HTML page", 502, "<html>"},
		{"an empty body", 400, ""},
		{"an empty list of errors", 403, `{"status":"error","errors":[]}`},
		{"an internal error", 500, `{"status":"error","errors":[{"location":"url","name":"x","description":"y"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			recorder.WriteHeader(c.status)
			expect.Get(io.WriteString(recorder, c.body))(t)
			if err := Read(recorder.Result()); err == nil || fault.KindOf(err) != fault.Internal {
				t.Errorf("got %v, want an internal error", err)
			}
		})
	}
}

// TestDecodeTakesNoOtherAnswer decodes answers that lack what the service always writes.
func TestDecodeTakesNoOtherAnswer(t *testing.T) {
	type inner struct {
		Owner string `json:"owner"`
	}
	for _, c := range []struct {
		name, kind string
		status     int
		body       string
		isOurs     bool
	}{
		{"whole", "application/json", 200, `{"valid":false,"owner":"","new":1}`, true},
		{"created", "application/json", 201, `{"valid":true,"owner":"b","more":2}`, true},
		{"a page", "text/html", 200, "<html>", false},
		{"JSON as a page", "text/html", 200, `{"valid":true,"owner":"b"}`, false},
		{"without a type", "", 200, `{"valid":true,"owner":"b"}`, false},
		{"empty", "application/json", 200, `{}`, false},
		{"null", "application/json", 200, `null`, false},
		{"a list", "application/json", 200, `[]`, false},
		{"without a member", "application/json", 200, `{"valid":true}`, false},
		{"a member in capitals", "application/json", 200, `{"Valid":true,"owner":"b"}`, false},
		{"a member that is null", "application/json", 200, `{"valid":null,"owner":"b"}`, false},
		{"two objects", "application/json", 200, `{"valid":true,"owner":"b"}{}`, false},
		{"half", "application/json", 200, `{"valid":true,"owner":"b"`, false},
		{"not too long", "application/json", 200, `{"valid":true,"owner":"` + strings.Repeat("b", 75) + `"}`, true},
		{"too long", "application/json", 200, `{"valid":true,"owner":"` + strings.Repeat("b", 76) + `"}`, false},
		{"a part", "application/json", 206, `{"valid":true,"owner":"b"}`, false},
		{"accepted", "application/json", 202, `{"valid":true,"owner":"b"}`, false},
		{"a redirect", "application/json", 302, `{"valid":true,"owner":"b"}`, false},
		{"no content", "application/json", 204, "", false},
	} {
		recorder := httptest.NewRecorder()
		recorder.Header().Set("Content-Type", c.kind)
		recorder.WriteHeader(c.status)
		recorder.WriteString(c.body)
		var into struct {
			inner
			Valid bool `json:"valid"`
			More  int  `json:"more,omitempty"`
		}
		if err := Decode(recorder.Result(), 100, &into); (err == nil) != c.isOurs {
			t.Errorf("%s: got %+v and %v, want that it is an answer: %t", c.name, into, err, c.isOurs)
		}
	}
}
