package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// must ends the test after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorIf fails the test if something is wrong.
func errorIf(t testing.TB, isWrong bool, format string, args ...any) {
	t.Helper()
	if isWrong {
		t.Errorf(format, args...)
	}
}

// reply is one answer of a fake registry.
type reply struct {
	status int
	body   string
	header map[string]string
}

// breaks stands for no reply: the fake registry closes the connection.
var breaks = reply{}

// registry is a fake registry that sends its replies in order and repeats the last
// one. It records each request as "METHOD URL body".
type registry struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	headers  []http.Header
}

func (r *registry) sent() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

func (r *registry) heads() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers
}

func newRegistry(t *testing.T, replies ...reply) *registry {
	t.Helper()
	r := &registry{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		next := replies[min(len(r.requests), len(replies)-1)]
		r.requests = append(r.requests, strings.TrimSpace(req.Method+" "+req.URL.String()+" "+string(body)))
		r.headers = append(r.headers, req.Header)
		r.mu.Unlock()
		if next.status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		for name, value := range next.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(next.status)
		io.WriteString(w, next.body)
	}))
	t.Cleanup(r.Close)
	return r
}

// client returns a client with few tries and short timeouts.
func (r *registry) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(Config{
		URL: r.URL, Key: "very-secret-key", Timeout: 5 * time.Second, Retry: Retry{Tries: 3, Total: 20 * time.Second},
	})
	must(t, err)
	return c
}

func (r *registry) check(t *testing.T, want ...string) {
	t.Helper()
	errorIf(t, !slices.Equal(r.sent(), want), "got requests %q, want %q", r.sent(), want)
}

const (
	assetBody = `{"data":{"id":"a1","title":"t"},"access":{"token":"tok","transfer":"tra"}}`
	busyBody  = `{"status":"error","errors":[{"location":"url","name":"registry","description":"Busy."}]}`
)

var (
	ok      = reply{200, assetBody, map[string]string{"ETag": `"5-2.5"`}}
	busy    = reply{503, busyBody, nil}
	limited = reply{429, busyBody, nil}
	changed = reply{412, busyBody, nil}
)

func TestRetries(t *testing.T) {
	guarded := Write{Token: "tok", IfMatch: `"4-2.5"`}
	get := func(c *Client) error { _, err := c.Get(t.Context(), "a1"); return err }
	create := func(c *Client) error { _, err := c.Create(t.Context(), Asset{}); return err }
	patch := func(w Write) func(c *Client) error {
		return func(c *Client) error { _, err := c.Patch(t.Context(), "a1", Fields{}, w); return err }
	}
	add := func(c *Client) error { _, err := c.Items("a1").Add(t.Context(), Item{}, Write{}); return err }
	transfer := func(c *Client) error { _, err := c.CreateTransfer(t.Context()); return err }
	take := func(c *Client) error { _, err := c.TakeOver(t.Context(), "a1", "t1", "x"); return err }
	for _, c := range []struct {
		name    string
		call    func(*Client) error
		replies []reply
		tries   int
		status  int // status of the error; 0: no error, -1: an error without a status
	}{
		{"a read is repeated after 503", get, []reply{busy, ok}, 2, 0},
		{"a read is repeated after 502", get, []reply{{502, "<html>", nil}, ok}, 2, 0},
		{"a read is repeated after a broken connection", get, []reply{breaks, ok}, 2, 0},
		{"a read is tried at most three times", get, []reply{busy}, 3, 503},
		{"a read is not repeated after 404", get, []reply{{404, busyBody, nil}}, 1, 404},
		{"a read is not repeated after 500", get, []reply{{500, busyBody, nil}}, 1, 500},
		{"a creation is repeated after 503", create, []reply{busy, ok}, 2, 0},
		{"a creation is repeated after a broken connection", create, []reply{breaks, ok}, 2, 0},
		{"a change is repeated after 429", patch(Write{}), []reply{limited, ok}, 2, 0},
		{"a change is not repeated after 503", patch(Write{}), []reply{busy, ok}, 1, 503},
		{"a change is not repeated after a broken connection", patch(Write{}), []reply{breaks, ok}, 1, -1},
		{"a change with any tag is not repeated after 503", patch(Write{IfMatch: AnyTag}), []reply{busy, ok}, 1, 503},
		{"a change with a tag is repeated after 503", patch(guarded), []reply{busy, ok}, 2, 0},
		{"a change with a tag is repeated after a broken connection", patch(guarded), []reply{breaks, ok}, 2, 0},
		{"a change is not repeated after 412", patch(guarded), []reply{changed}, 1, 412},
		{"an addition is not repeated after 503", add, []reply{busy, ok}, 1, 503},
		{"a new transfer is repeated after 503", transfer, []reply{busy, ok}, 2, 0},
		{"a change of owner is repeated after a broken connection", take, []reply{breaks, ok}, 2, 0},
		{"a health check is not repeated", func(c *Client) error { return c.Health(t.Context()) }, []reply{busy}, 1,
			503},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t, c.replies...)
			err := c.call(r.client(t))
			errorIf(t, len(r.sent()) != c.tries, "got %d tries, want %d", len(r.sent()), c.tries)
			if got := StatusOf(err); (err == nil) != (c.status == 0) || got != max(c.status, 0) {
				t.Errorf("got %v, want status %d (0: no error, -1: no status)", err, c.status)
			}
		})
	}
}

func TestTheTriesOfACreationHaveOneIdempotencyKey(t *testing.T) {
	r := newRegistry(t, breaks, busy, ok)
	c := r.client(t)
	for range 2 {
		if _, err := c.Create(t.Context(), Asset{Title: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for _, h := range r.heads() {
		keys = append(keys, h.Get("Idempotency-Key"))
	}
	errorIf(t, len(keys) != 4 || len(keys[0]) < 20 || keys[1] != keys[0] || keys[2] != keys[0] || keys[3] == keys[0],
		"got keys %q, want one for the first three tries and another for the next creation", keys)
	if _, err := c.CreateOnce(t.Context(), Asset{}, "mine"); err != nil {
		t.Fatal(err)
	}
	if got := r.heads()[4].Get("Idempotency-Key"); got != "mine" {
		t.Errorf("got key %q, want mine", got)
	}
	if _, err := c.CreateReferenced(t.Context(), Fields{}, "lot-1", "mine"); err != nil {
		t.Fatal(err)
	}
	if h := r.heads()[5]; h.Get("Registry-Reference") != "lot-1" || h.Get("Idempotency-Key") != "mine" {
		t.Errorf("got the headers %v, want the reference lot-1 and the key mine", h)
	}
}

func TestARefusalAfterALostAnswerIsUncertain(t *testing.T) {
	w := Write{IfMatch: `"4-2.5"`}
	for _, c := range []struct {
		name    string
		replies []reply
		want    bool
	}{
		{"412 at once", []reply{changed}, false},
		{"412 after 429", []reply{limited, changed}, false},
		{"412 after 503", []reply{busy, changed}, true},
		{"412 after a broken connection", []reply{breaks, changed}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newRegistry(t, c.replies...).client(t).Patch(t.Context(), "a1", Fields{}, w)
			got, _ := errors.AsType[*Error](err)
			if got == nil || !IsChanged(err) || got.Uncertain != c.want {
				t.Errorf("got %v, want a 412 with Uncertain %t", err, c.want)
			}
		})
	}
}

func TestARetryWaitsForRetryAfter(t *testing.T) {
	r := newRegistry(t, reply{429, busyBody, map[string]string{"Retry-After": "1"}}, ok)
	began := time.Now()
	if _, err := r.client(t).Get(t.Context(), "a1"); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("got a retry after %v, want at least 1 s", waited)
	}
}

func TestALongRetryAfterIsReturnedToTheCaller(t *testing.T) {
	long := reply{503, busyBody, map[string]string{"Retry-After": "3600"}}
	_, err := newRegistry(t, long).client(t).Get(t.Context(), "a1")
	if got, _ := errors.AsType[*Error](err); got == nil || got.RetryAfter != time.Hour || !IsBusy(err) {
		t.Errorf("got %v, want a 503 with RetryAfter 1h", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	c := newRegistry(t, long).client(t)
	c.retry.Total = 24 * time.Hour
	if _, err := c.Get(ctx, "a1"); StatusOf(err) != 503 {
		t.Errorf("got %v, want a 503, because the context ends before the retry", err)
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"7", 7 * time.Second}, {"Sun, 22 Nov 2026 12:01:00 GMT", time.Minute}, {"Sun, 22 Nov 2026 11:00:00 GMT", 0},
		{"-3", 0}, {"", 0}, {"soon", 0}, {"2592000", 30 * 24 * time.Hour}, {"99999999999999999999", longestRetryAfter},
		{"-99999999999999999999", 0}, {"Fri, 31 Dec 9999 23:59:59 GMT", longestRetryAfter},
	} {
		if got := retryAfter(c.value, now); got != c.want {
			t.Errorf("%q: got %v, want %v", c.value, got, c.want)
		}
	}
}

func TestAContextEndsACall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRegistry(t, reply{503, busyBody, map[string]string{"Retry-After": "2"}})
	c := r.client(t)
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := c.Get(ctx, "a1"); err == nil {
		t.Error("got nil, want an error")
	}
	if _, err := c.Get(ctx, "a1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	errorIf(t, len(r.sent()) != 1, "got %d requests, want 1", len(r.sent()))
}

func TestARefusedConnectionIsTriedAgainForEveryWrite(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	listener.Close()
	c, err := New(Config{URL: "http://" + listener.Addr().String(), Retry: Retry{Tries: 2}})
	must(t, err)
	_, err = c.Patch(t.Context(), "a1", Fields{}, Write{})
	errorIf(t, endOf(err) != nothing, "got %v, want a refused connection", err)
}

func TestLargeAnswersAreRefused(t *testing.T) {
	r := newRegistry(t, reply{200, strings.Repeat(" ", maxAnswer+1), nil})
	if _, err := r.client(t).Get(t.Context(), "a1"); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v, want %v", err, errTooLarge)
	}
	errorIf(t, len(r.sent()) != 1, "got %d requests, want 1", len(r.sent()))
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := newRegistry(t, ok)
	for _, status := range []int{301, 302, 303, 304, 307, 308} {
		r := newRegistry(t, reply{status, "", map[string]string{"Location": other.URL}})
		if _, err := r.client(t).Patch(t.Context(), "a1", Fields{}, Write{Token: "tok"}); StatusOf(err) != status {
			t.Errorf("got %v, want an error with status %d", err, status)
		}
	}
	other.check(t)
}

func TestErrorsNameEveryProblem(t *testing.T) {
	body := `{"status":"error","errors":[{"location":"body","name":"title","description":"This field is required."},
		{"location":"body","name":"items.0.unit","description":"Rogue\nfield"}]}`
	r := newRegistry(t, reply{400, body, map[string]string{"X-Request-ID": "r1"}})
	_, err := r.client(t).Create(t.Context(), Asset{})
	want := "POST /api/2.5/assets: 400 Bad Request: body title: This field is required.; body items.0.unit: Rogue field"
	errorIf(t, err == nil || err.Error() != want, "got %v, want %s", err, want)
	got, _ := errors.AsType[*Error](fmt.Errorf("wrapped: %w", err))
	if d, found := got.Detail("title"); !found || d.Location != "body" || got.RequestID != "r1" || !IsInvalid(err) {
		t.Errorf("got %+v, want a problem of title and RequestID r1", got)
	}
	html := reply{404, "<html>token</html>", nil}
	_, err = newRegistry(t, html).client(t).Get(t.Context(), "a1")
	want = "GET /api/2.5/assets/a1: 404 Not Found: the answer is not the registry's: check the address"
	errorIf(t, err.Error() != want, "got %v, want %s", err, want)
}

// TestAnAnswerOfAnotherServerTellsWhereToLook makes errors from answers of other servers. The bodies of these answers
// do not have the form of the registry's errors. The text of each error must say where to look.
func TestAnAnswerOfAnotherServerTellsWhereToLook(t *testing.T) {
	for status, want := range map[int]string{
		302: "check the address", 404: "check the address", 405: "check the address",
		403: "a server in between refuses the request", 413: "a server in between refuses the request",
		429: "a server in between refuses the request",
		500: "a server in between cannot reach it, or fails", 502: "a server in between cannot reach it, or fails",
		504: "a server in between cannot reach it, or fails",
	} {
		err := &Error{Method: "GET", Path: "/x", Status: status}
		if got := err.Error(); !strings.HasSuffix(got, ": the answer is not the registry's: "+want) {
			t.Errorf("%d: got %s, want it to end with %q", status, got, want)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	config := Config{URL: "http://127.0.0.1:1", Key: "very-secret-key", Retry: Retry{Tries: 1}}
	c, err := New(config)
	must(t, err)
	made := Created{Access: Access{Token: "very-secret-token", Transfer: "very-secret-transfer"}}
	_, failed := c.Patch(t.Context(), "a1", Fields{}, Write{Token: made.Access.Token})
	refusing := newRegistry(t, reply{403, busyBody, nil})
	_, refused := refusing.client(t).TakeOver(t.Context(), "a", "b", made.Access.Transfer)
	var shown strings.Builder
	for _, v := range []any{config, &config, c, *c, made, &made, Write{Token: made.Access.Token}, failed, refused} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
	}
	for _, secret := range []string{"very-secret", fmt.Sprintf("%x", "very-secret")} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("got %s, want no %s in it", shown.String(), secret)
		}
	}
	want := `{"token":"very-secret-token","transfer":"very-secret-transfer"}`
	if text, err := json.Marshal(made.Access); err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, address := range []string{"", "registry", "ftp://registry", "http://", "http://very-secret@registry",
		"http://registry?key=very-secret", "http://registry/#x", "http://very-secret:%zz@x"} {
		if _, err := New(Config{URL: address}); err == nil || strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%q: got %v, want an error without the address", address, err)
		}
	}
}

func TestRequests(t *testing.T) {
	w := Write{Token: "tok", IfMatch: `"4-2.5"`}
	for _, c := range []struct {
		name string
		call func(*Client) error
		want string
	}{
		{"get", func(c *Client) error { _, err := c.Get(t.Context(), "a/1"); return err }, "GET /api/2.5/assets/a%2F1"},
		{"patch", func(c *Client) error {
			_, err := c.Patch(t.Context(), "a1", Fields{"title": "x", "title_en": nil}, w)
			return err
		}, `PATCH /api/2.5/assets/a1 {"data":{"title":"x","title_en":null}}`},
		{"publish", func(c *Client) error { _, err := c.Publish(t.Context(), "a1", w); return err },
			`PATCH /api/2.5/assets/a1 {"data":{"status":"pending"}}`},
		{"replace", func(c *Client) error { _, err := c.Replace(t.Context(), "a1", Asset{Title: "x"}, w); return err },
			`PUT /api/2.5/assets/a1 {"data":{"title":"x"}}`},
		{"take over", func(c *Client) error { _, err := c.TakeOver(t.Context(), "a1", "t1", "tra"); return err },
			`POST /api/2.5/assets/a1/ownership {"data":{"id":"t1","transfer":"tra"}}`},
		{"remove", func(c *Client) error { return c.Remove(t.Context(), "a1", w) }, "DELETE /api/2.5/assets/a1"},
		{"recover", func(c *Client) error { _, err := c.Recover(t.Context(), "a1", "lost"); return err },
			`POST /api/2.5/assets/a1/recovery {"data":{"reason":"lost"}}`},
		{"transfer", func(c *Client) error { _, err := c.Transfer(t.Context(), "t1"); return err },
			"GET /api/2.5/transfers/t1"},
		{"get an item", func(c *Client) error { _, err := c.Items("a1").Get(t.Context(), "i1"); return err },
			"GET /api/2.5/assets/a1/items/i1"},
		{"add a decision", func(c *Client) error {
			_, err := c.Decisions("a1").Add(t.Context(), Decision{DecisionID: "7"}, w)
			return err
		}, `POST /api/2.5/assets/a1/decisions {"data":{"decisionID":"7"}}`},
		{"change a document", func(c *Client) error {
			_, err := c.Documents("a1").Patch(t.Context(), "d1", Fields{"title": "x"}, w)
			return err
		}, `PATCH /api/2.5/assets/a1/documents/d1 {"data":{"title":"x"}}`},
		{"add a version", func(c *Client) error {
			_, err := c.Documents("a1").AddVersion(t.Context(), "d1", Document{Title: "x"}, w)
			return err
		}, `PUT /api/2.5/assets/a1/documents/d1 {"data":{"title":"x"}}`},
		{"remove a process", func(c *Client) error { return c.RelatedProcesses("a1").Remove(t.Context(), "p1", w) },
			"DELETE /api/2.5/assets/a1/related_processes/p1"},
		{"me", func(c *Client) error { _, err := c.Me(t.Context()); return err }, "GET /api/2.5/me"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRegistry(t, ok)
			must(t, c.call(r.client(t)))
			r.check(t, c.want)
			method, _, _ := strings.Cut(c.want, " ")
			if h := r.heads()[0]; method == "PATCH" &&
				(h.Get("X-Access-Token") != "tok" || h.Get("If-Match") != `"4-2.5"`) {
				t.Errorf("got headers %v, want X-Access-Token tok and the tag in If-Match", h)
			}
			if user, _, found := (&http.Request{Header: r.heads()[0]}).BasicAuth(); !found ||
				user != "very-secret-key" {
				t.Errorf("got key %q, want very-secret-key", user)
			}
		})
	}
}

func TestABadIDSendsNoRequest(t *testing.T) {
	r := newRegistry(t, ok)
	c := r.client(t)
	_, get := c.Get(t.Context(), "")
	_, patch := c.Patch(t.Context(), "", Fields{}, Write{})
	_, part := c.Items("a1").Get(t.Context(), "")
	_, list := c.Items("").List(t.Context())
	_, up := c.Transfer(t.Context(), "..")
	for i, err := range []error{get, patch, part, list, up} {
		errorIf(t, !errors.Is(err, errNoID), "call %d: got %v, want %v", i, err, errNoID)
	}
	r.check(t)
}

func TestAnAnswerHasItsTagAndTokens(t *testing.T) {
	r := newRegistry(t, ok)
	made, err := r.client(t).Create(t.Context(), Asset{})
	must(t, err)
	if made.Asset.ID != "a1" || made.Asset.Tag != `"5-2.5"` || made.Access != (Access{Token: "tok", Transfer: "tra"}) {
		t.Errorf("got %+v, want asset a1 with its tag and tokens", made)
	}
}

func TestDownloadReturnsTheAddress(t *testing.T) {
	r := newRegistry(t, reply{302, "", map[string]string{"Location": "https://files.example/1"}})
	got, err := r.client(t).Documents("a1").Download(t.Context(), "d1", "key")
	errorIf(t, err != nil || got != "https://files.example/1", "got %q, %v, want https://files.example/1", got, err)
	r.check(t, "GET /api/2.5/assets/a1/documents/d1?download=key")
}

func TestACallerHearsOfIgnoredFieldsUnlessItSentAnObjectBack(t *testing.T) {
	answer := reply{status: 200, body: `{"data":{"id":"a"}}`, header: map[string]string{
		"ETag": `"1"`, "Registry-Ignored": "documents, owner"}}
	c, ctx := newRegistry(t, answer).client(t), t.Context()
	hand, theirs := Fields{"title": "x"}, Fields{"title": "x", "dateModified": "2026-11-20T12:00:00+02:00"}
	for _, call := range []struct {
		name  string
		of    func() (Tagged, error)
		hears bool
	}{
		{"create", func() (Tagged, error) { got, err := c.Create(ctx, Asset{}); return got.Asset.Tagged, err }, true},
		{"create fields", func() (Tagged, error) {
			got, err := c.CreateFields(ctx, hand, "")
			return got.Asset.Tagged, err
		}, true},
		{"patch", func() (Tagged, error) { got, err := c.Patch(ctx, "a", hand, Write{}); return got.Tagged, err }, true},
		{"patch back", func() (Tagged, error) {
			got, err := c.Patch(ctx, "a", theirs, Write{})
			return got.Tagged, err
		}, false},
		{"replace back", func() (Tagged, error) {
			got, err := c.Replace(ctx, "a", Asset{DateModified: "2026-11-20T12:00:00+02:00"}, Write{})
			return got.Tagged, err
		}, false},
		{"add", func() (Tagged, error) {
			got, err := c.Documents("a").Add(ctx, Document{Author: "x"}, Write{})
			return got.Tagged, err
		}, true},
		{"add back", func() (Tagged, error) {
			got, err := c.Documents("a").Add(ctx, Document{DateModified: "2026-11-20T12:00:00+02:00"}, Write{})
			return got.Tagged, err
		}, false},
		{"item", func() (Tagged, error) { got, err := c.Items("a").Add(ctx, Item{}, Write{}); return got.Tagged, err }, true},
	} {
		got, err := call.of()
		var want []string
		if call.hears {
			want = []string{"documents", "owner"}
		}
		errorIf(t, err != nil || got.Tag != `"1"` || !slices.Equal(got.Ignored, want),
			"%s: got %+v, %v, want the tag \"1\" and the ignored fields %v", call.name, got, err, want)
	}
}
