package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
)

// TestAWebhookIsChanged sends changes to one webhook. Each answer must name the ignored fields, and show the same
// webhook as a later read.
func TestAWebhookIsChanged(t *testing.T) {
	s := newHooked(t)
	created := s.call(t, nil, call{broker1, "POST", allHooks,
		`{"data":{"url":"https://hook.example/","filters":{"owner":["b1"]}}}`, 201, ""})
	at := strings.TrimPrefix(created.Header().Get("Location"), "https://registry.example")
	before := s.call(t, nil, call{broker1, "GET", at, "", 200, ""}).Body.String()
	for _, c := range []struct {
		name string
		call
		ignored string
	}{
		{"a pause", call{broker1, "PATCH", at, `{"data":{"state":"disabled"}}`, 200,
			`"state":"disabled","reason":"paused"`}, ""},
		{"a resumption", call{broker1, "PATCH", at, `{"data":{"state":"active"}}`, 200, `"state":"unverified"`}, ""},
		{"an address", call{broker1, "PATCH", at, `{"data":{"url":"https://hook.example/2"}}`, 200,
			`"url":"https://hook.example/2"`}, ""},
		{"all that only a creation sets", call{broker1, "PATCH", at,
			`{"data":{"filters":{},"opt_fields":"*","mode":"test","version":"2.4"}}`, 200,
			`"version":"2.5","mode":"","opt_fields":"","filters":{"owner":["b1"]}`}, "version, mode, opt_fields, filters"},
		{"some that only a creation sets", call{broker1, "PATCH", at,
			`{"data":{"mode":"","opt_fields":"*","version":null}}`, 200, `"opt_fields":""`}, "opt_fields"},
		{"nothing", call{broker1, "PATCH", at, `{"data":{}}`, 200, `"https://hook.example/2"`}, ""},
		{"what was read before", call{broker1, "PATCH", at, before, 200, `"url":"https://hook.example/"`}, ""},
		{"a stop", call{admin, "PATCH", at, `{"data":{"state":"disabled"}}`, 200,
			`"state":"disabled","reason":"stopped"`}, ""},
		{"an administrator's replay", call{admin, "POST", at + "/replay",
			`{"data":{"offset":"2026-11-20T11:00:00+02:00","mode":"test"}}`, 200,
			`"state":"unverified","offset":"2026-11-20T11:00:00.000000+02:00","behind":90`}, "mode"},
		{"a service's replay", call{helper, "POST", at + "/replay", `{"data":{"offset":"2027-01-01"}}`, 200,
			`"offset":"2026-11-20T13:59:30.000000+02:00","behind":0`}, ""},
		{"a replay without an offset", call{broker1, "POST", at + "/replay", `{"data":{}}`, 200,
			`"offset":"2026-11-20T13:59:30.000000+02:00"`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := s.call(t, nil, c.call)
			if got := strings.Join(answer.Header().Values(httpserver.IgnoredHeader), ";"); got != c.ignored {
				t.Errorf("got %s %q, want %q", httpserver.IgnoredHeader, got, c.ignored)
			}
			read := s.call(t, nil, call{broker1, "GET", at, "", 200, ""})
			if answer.Body.String() != read.Body.String() {
				t.Errorf("got %s, want what a read shows: %s", answer.Body, read.Body)
			}
		})
	}
}

// TestARotationShowsANewSecret rotates the secrets of a webhook. Only the answer to the rotation has the secret.
func TestARotationShowsANewSecret(t *testing.T) {
	s := newHooked(t)
	at := s.created(t, broker1)
	before := s.call(t, nil, call{broker1, "GET", at, "", 200, ""}).Body.String()
	rotated := s.call(t, nil, call{broker1, "POST", at + "/rotate", `{"data":{}}`, 200, `{"access":{"secret":"whsec_`})
	_, shown, _ := strings.Cut(rotated.Body.String(), "},")
	if now := s.call(t, nil, call{broker1, "GET", at, "", 200, ""}).Body.String(); now != "{"+shown || now == before {
		t.Errorf("got %s, want another public key than %s, as in %s", now, before, rotated.Body)
	}
}

// TestACreationOfAWebhookIsRepeated repeats creations under an idempotency key.
func TestACreationOfAWebhookIsRepeated(t *testing.T) {
	s := newHooked(t)
	under := func(seeds string) http.Header {
		return http.Header{idempotencyHeader: {"key"}, httpserver.SeedHeader: {seeds}}
	}
	created := s.call(t, under("aa"), call{broker1, "POST", allHooks, hookData, 201, "whsec_"})
	for _, c := range []struct {
		name, seeds string
		again       bool
	}{
		{"the same seed", "aa", true}, {"the seed after a newer one", "bb,aa", true}, {"another seed", "bb", false},
	} {
		answer := s.call(t, under(c.seeds), call{broker1, "POST", allHooks, hookData, 201, "whsec_"})
		if again := answer.Body.String() == created.Body.String() &&
			answer.Header().Get("Location") == created.Header().Get("Location"); again != c.again {
			t.Errorf("%s: got the same webhook: %t, want %t:\n%s", c.name, again, c.again, answer.Body)
		}
	}
	s.call(t, under("aa"), call{broker1, "POST", allHooks, `{"data":{"url":"https://hook.example/2"}}`, 400,
		`"name":"Idempotency-Key"`})
	s.call(t, under("x"), call{broker1, "POST", allHooks, hookData, 500, `"name":"server"`})
	s.call(t, http.Header{idempotencyHeader: {"a b"}}, call{broker1, "POST", allHooks, hookData, 400,
		`"name":"Idempotency-Key"`})
}

// TestRequestsForWebhooksAreRefused sends requests that are malformed or not allowed. If a request has two faults,
// the answer must have the fault that is checked first (docs/contract.md, "Order of checks").
func TestRequestsForWebhooksAreRefused(t *testing.T) {
	s := newHooked(t)
	own, other := s.created(t, broker1), s.created(t, broker2)
	rogue := `{"data":{"url":"https://hook.example/","rogue":1}}`
	for _, c := range []call{
		{broker1, "POST", allHooks, rogue, 400, `"location":"body","name":"rogue"`},
		{broker1, "POST", allHooks, `{"data":`, 400, `"location":"body","name":"data"`},
		{broker1, "POST", allHooks, `{}`, 400, "Data not available"},
		{stranger, "POST", allHooks, rogue, 403, `"location":"url","name":"permission"`},
		{broker1, "GET", allHooks + "?limit=0", "", 400, `"location":"querystring","name":"limit"`},
		{broker1, "GET", allHooks + "?opt_jsonp=a-b", "", 400, `"name":"opt_jsonp"`},
		{broker1, "GET", allHooks + "?%zz", "", 400, `"location":"querystring","name":"query"`},
		{stranger, "GET", allHooks + "?limit=0", "", 403, `"location":"url","name":"permission"`},
		{identity.Identity{}, "GET", allHooks, "", 403, `"location":"url","name":"permission"`},
		{broker1, "GET", own + "?%zz", "", 400, `"location":"querystring","name":"query"`},
		{broker1, "GET", own + "0", "", 404, `"location":"url","name":"webhook"`},
		{broker1, "DELETE", own + "0", "", 404, `"location":"url","name":"webhook"`},
		{broker1, "POST", own + "/rotate", rogue, 400, `"location":"body","name":"rogue"`},
	} {
		s.call(t, nil, c)
	}
	for _, r := range []struct{ method, step string }{{"PATCH", ""}, {"POST", "/replay"}, {"POST", "/rotate"}} {
		s.call(t, nil, call{broker1, r.method, own + r.step, `{"data":`, 400, `"location":"body","name":"data"`})
		s.call(t, nil, call{broker1, r.method, other + r.step, `{"data":`, 404, `"location":"url","name":"webhook"`})
		s.call(t, nil, call{stranger, r.method, own + r.step, `{"data":`, 403, `"location":"url","name":"permission"`})
	}
	s.call(t, nil, call{broker1, "GET", own, "", 200, `"url":"https://hook.example/"`})
	s.call(t, nil, call{broker1, "GET", allHooks, "", 200, idOf(own)})
}

// TestAnAnswerAboutWebhooksIsIndented asks for indented answers in the query, and in the body. It also asks for scripts.
// Answers that are not indented are compared in other tests.
func TestAnAnswerAboutWebhooksIsIndented(t *testing.T) {
	s := newHooked(t)
	at := s.created(t, broker1)
	const query, none, option = "?opt_pretty=1", `{"data":{}}`, `{"data":{},"options":{"pretty":true}}`
	for _, c := range []call{
		{broker1, "POST", allHooks + query, hookData, 201, ""},
		{broker1, "POST", allHooks, strings.Replace(option, "{}", `{"url":"https://hook.example/"}`, 1), 201, ""},
		{broker1, "GET", allHooks + query, "", 200, ""},
		{broker1, "GET", at + query, "", 200, ""},
		{broker1, "PATCH", at + query, none, 200, ""},
		{broker1, "PATCH", at, option, 200, ""},
		{broker1, "POST", at + "/replay" + query, none, 200, ""},
		{broker1, "POST", at + "/rotate", option, 200, ""},
		{broker1, "DELETE", s.created(t, broker1) + query, "", 200, ""},
	} {
		text := s.call(t, nil, c).Body.String()
		if !strings.HasPrefix(text, "{\n    \"") || !strings.HasSuffix(text, "\n}\n") {
			t.Errorf("%s %s %s: got %s, want an indented answer", c.method, c.path, c.body, text)
		}
	}
	for _, path := range []string{at, allHooks} {
		answer := s.call(t, nil, call{broker1, "GET", path + "?opt_jsonp=f", "", 200, `f({"data":`})
		if got := answer.Header().Get("Content-Type"); !strings.HasPrefix(got, "application/javascript") {
			t.Errorf("GET %s: got the type %q, want a script", path, got)
		}
	}
}

// TestWebhooksWithoutAStoreAreUnavailable closes the store.
func TestWebhooksWithoutAStoreAreUnavailable(t *testing.T) {
	s := newHooked(t)
	at := s.created(t, broker1)
	expect.OK(t, s.store.Close())
	s.call(t, nil, call{broker1, "GET", allHooks, "", 503, `"name":"store"`})
	s.call(t, nil, call{broker1, "PATCH", at, `{"data":`, 503, `"name":"store"`})
	feed := NewPositions(s.assets)
	expect.FailsOf(t, "")(feed.Horizon(t.Context()))
	if next, err := feed.Next(t.Context(), "", 0); err == nil || next != 0 {
		t.Errorf("got the next position %d, %v; want 0 and an error", next, err)
	}
}

// TestReadsOfWebhooksNeedMemory holds all memory for answers. Reads are refused, but writes are not.
func TestReadsOfWebhooksNeedMemory(t *testing.T) {
	s := newHooked(t)
	at := s.created(t, broker1)
	for s.memory.Answers.Hold(memory.Small) || s.memory.Answers.Hold(1) {
	}
	for _, c := range []call{
		{broker1, "GET", allHooks, "", 503, `"name":"registry"`},
		{broker1, "GET", at, "", 503, `"name":"registry"`},
		{broker1, "POST", allHooks, hookData, 201, "whsec_"},
		{broker1, "PATCH", at, `{"data":{}}`, 200, idOf(at)},
		{broker1, "POST", at + "/rotate", `{"data":{}}`, 200, "whsec_"},
		{broker1, "DELETE", at, "", 200, "null"},
	} {
		s.call(t, nil, c)
	}
}

// TestPositionsAreOfAMode asks for the first change after a position, in each mode.
func TestPositionsAreOfAMode(t *testing.T) {
	s := newHooked(t)
	feed := NewPositions(s.assets)
	horizon, err := feed.Horizon(t.Context())
	if want := s.now.Add(-30 * time.Second).UnixMicro(); err != nil || horizon != want {
		t.Fatalf("got the horizon %d, %v; want %d", horizon, err, want)
	}
	real := s.now.Add(-90 * time.Second).UnixMicro()
	for _, c := range []struct {
		name, mode  string
		after, want int64
	}{
		{"the first real asset", "", 0, real}, {"no second real asset", "", real, 0},
		{"the first test asset", "test", 0, horizon}, {"no second test asset", "test", horizon, 0},
		{"the first asset", "_all_", 0, real}, {"the second asset", "_all_", real, horizon},
	} {
		expect.Value(t, c.want, "%s", c.name)(feed.Next(t.Context(), c.mode, c.after))
	}
}
