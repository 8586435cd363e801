package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/upstream"
)

func TestTakeToken(t *testing.T) {
	for _, c := range []struct {
		query string
		want  [2]string
	}{
		{"", [2]string{"", ""}},
		{"limit=5&offset=a+b%2Bc", [2]string{"limit=5&offset=a+b%2Bc", ""}},
		{"acc_token=t", [2]string{"", "t"}},
		{"limit=5&acc_token=t&offset=a+b", [2]string{"limit=5&offset=a+b", "t"}},
		{"acc_token=&limit=5", [2]string{"limit=5", ""}},
		{"acc_token=&acc_token=t", [2]string{"", "t"}},
		{"acc_token=t&acc_token=u", [2]string{"", "t"}},
		{"acc_token=a%2Bb", [2]string{"", "a+b"}},
		{"%61cc_token=t", [2]string{"", "t"}},
		{"acc_token", [2]string{"", ""}},
		{"acc_token=%zz&limit=5", [2]string{"limit=5", ""}},
		{"xacc_token=t&acc_tokens=u", [2]string{"xacc_token=t&acc_tokens=u", ""}},
		{"a=%zz&acc_token=t", [2]string{"a=%zz", "t"}},
		{"opt_pretty=1&&acc_token=t&", [2]string{"opt_pretty=1&&", "t"}},
		{strings.Repeat("a=b&", 3) + "a=b", [2]string{"a=b&a=b&a=b&a=b", ""}},
	} {
		rest, token := takeToken(c.query)
		if rest != c.want[0] || token != c.want[1] {
			t.Errorf("%q: got %q, %q; want %q, %q", c.query, rest, token, c.want[0], c.want[1])
		}
	}
}

func newSigner(t *testing.T) *identity.Signer {
	t.Helper()
	signer, err := identity.NewSigner(keyring.Ring{bytes.Repeat([]byte("s"), identity.MinSecret)}, time.Now)
	expect.OK(t, err)
	return signer
}

// call returns a pool with one server, at the given address.
func call(t *testing.T, url string) *upstream.Pool {
	t.Helper()
	pool, err := upstream.New(upstream.Config{
		Name: "assetsvc", URLs: []string{url}, Log: slog.New(slog.DiscardHandler),
		Meter: new(telemetry.Telemetry).Meter(),
	})
	expect.OK(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// upstreams returns two upstreams with the same handler: one upstream calls a server, and the other upstream
// calls the handler in this process.
func upstreams(t *testing.T, signer *identity.Signer, handler http.Handler) map[string]*Upstream {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" { // ignore the pool's health checks
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return map[string]*Upstream{"remote": Remote(call(t, server.URL), signer), "local": Local(handler, signer)}
}

func TestForwardSaysWhatTheEdgeHasFoundOut(t *testing.T) {
	signer := newSigner(t)
	var got *http.Request
	var body []byte
	for name, u := range upstreams(t, signer, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "answer")
	})) {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/api/0/assets?acc_token=t&offset=a+b", strings.NewReader("question"))
			for _, header := range []string{
				"Authorization", "Cookie", "Expect", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port",
				"X-Forwarded-Proto", "Te", "Upgrade", "X-Mine", "X-Mine-Too",
			} {
				r.Header.Set(header, "claimed")
			}
			// Connection names headers that must not be forwarded. It must not remove the gateway's headers.
			r.Header.Add("Connection", "close, x-mine")
			r.Header.Add("Connection", "X-Mine-Too,"+identity.Header)
			r.Header.Set(identity.Header, "forged")
			r.Header.Set("X-Access-Token", "of the header")
			r.Header.Set("Content-Type", "application/json")
			ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
			defer cancel()
			recorder := httptest.NewRecorder()
			caller := identity.Identity{Broker: "b", Role: identity.Broker}
			to := Request{Path: "/api/2.5/assets", Caller: caller, BaseURL: "http://public"}
			expect.OK(t, u.Forward(recorder, r.WithContext(ctx), to))
			if recorder.Code != 201 || recorder.Body.String() != "answer" ||
				recorder.Header().Get("X-Answer") != "yes" || string(body) != "question" {
				t.Errorf("got the answer %d %q %v to the body %q; want 201 answer with X-Answer to the body question",
					recorder.Code, recorder.Body, recorder.Header(), body)
			}
			if got.Method != "POST" || got.URL.Path != "/api/2.5/assets" || got.URL.RawQuery != "offset=a+b" ||
				strings.Contains(got.RequestURI, "acc_token") {
				t.Errorf("got %s %s, want POST /api/2.5/assets?offset=a+b", got.Method, got.RequestURI)
			}
			expect.Value(t, caller, "")(signer.Verify(got.Header.Get(identity.Header)))
			for _, c := range []struct{ header, want string }{
				{"X-Access-Token", "t"}, {httpserver.BaseURLHeader, "http://public"}, {"Content-Type", "application/json"},
			} {
				expect.Equal(t, got.Header.Get(c.header), c.want, "%s", c.header)
			}
			for header, values := range got.Header {
				if strings.Join(values, "") == "claimed" {
					t.Errorf("%s: got the client's value, want it removed", header)
				}
			}
			if got.Header.Get(httpserver.TimeoutHeader) == "" {
				t.Errorf("got no %s, want the time left", httpserver.TimeoutHeader)
			}
		})
	}
}

func TestGetTellsWhatIsMissing(t *testing.T) {
	for name, u := range upstreams(t, newSigner(t), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"status":"error","errors":[{"location":"url","name":"asset_id","description":"Not Found"}]}`)
		}
	})) {
		t.Run(name, func(t *testing.T) {
			expect.Fault(t, u.Get(t.Context(), "/missing"), fault.NotFound, "missing")
			expect.Err(t, u.Get(t.Context(), "/there"), nil, "there")
		})
	}
}

// TestMissingTransfersNoAsset calls Missing for a path that exists and for one that does not. For the first
// path, no GET may be sent, so that no bytes of the asset are transferred.
func TestMissingTransfersNoAsset(t *testing.T) {
	var asked []string
	for name, u := range upstreams(t, newSigner(t), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"status":"error","errors":[{"location":"url","name":"item_id","description":"Not Found"}]}`)
		}
	})) {
		t.Run(name, func(t *testing.T) {
			asked = nil
			err := u.Missing(t.Context(), "/missing")
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.NotFound || f.Details[0].Name != "item_id" {
				t.Errorf("missing: got %v, want the fault url/item_id", err)
			}
			expect.Err(t, u.Missing(t.Context(), "/there"), nil, "there")
			want := []string{"HEAD /missing", "GET /missing", "HEAD /there"}
			expect.ErrorIf(t, !slices.Equal(asked, want), "got the requests %q, want %q", asked, want)
		})
	}
}

func TestAnUpstreamThatIsDownIsUnavailable(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	u := Remote(call(t, down.URL), newSigner(t))
	recorder := httptest.NewRecorder()
	err := u.Forward(recorder, httptest.NewRequest("GET", "/", nil), Request{Path: "/"})
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v, want kind Unavailable with the cause", err)
	}
	expect.ErrorIf(t, recorder.Body.Len() > 0, "got the body %s, want none: the caller writes the error", recorder.Body)
	for _, c := range []struct {
		name string
		ask  func(context.Context, string) error
	}{{"Get", u.Get}, {"Missing", u.Missing}} {
		expect.Fault(t, c.ask(t.Context(), "/"), fault.Unavailable, "%s", c.name)
	}
}

func TestATokenThatNoHeaderCanCarryStaysWrong(t *testing.T) {
	var got string
	for name, u := range upstreams(t, newSigner(t), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get(tokenHeader)
	})) {
		for _, c := range []struct{ query, want string }{
			{"plain", "plain"},
			{"%20", "+"}, // not " ": this would count as no token, and the token in the body would be used
			{"%20plain%20", "+plain+"},
			{"a%0D%0AX-Evil:1", "a%0D%0AX-Evil%3A1"},
			{"%00", "%00"},
			{"%D1%82%D0%BE%FF", "%D1%82%D0%BE%FF"},
			{"a+b", "a+b"}, // in a query, a plus sign stands for a space
			{"~!", "~!"},
			{"%7F", "%7F"},
			{"plain&acc_token=", "plain"},
		} {
			got = "not called"
			recorder := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/assets?acc_token="+c.query, nil)
			r.Header.Set(tokenHeader, "of the header")
			if err := u.Forward(recorder, r, Request{Path: "/assets"}); err != nil || got != c.want {
				t.Errorf("%s, %q: got %q, want %q; %v", name, c.query, got, c.want, err)
			}
		}
	}
}

func TestPathsArriveAsTheyAre(t *testing.T) {
	var got []string
	for name, u := range upstreams(t, newSigner(t), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, r.RequestURI)
	})) {
		got = nil
		r := httptest.NewRequest("GET", "/x", nil)
		expect.OK(t, u.Forward(httptest.NewRecorder(), r, Request{Path: "/assets/a%b?"}))
		expect.OK(t, u.Get(t.Context(), "/assets/a%b?"))
		if want := "/assets/a%25b%3F"; len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("%s: got %q, want %q twice", name, got, want)
		}
	}
}

// FuzzTakeToken compares takeToken with url.ParseQuery. Both must find the same token, and the same other
// parameters.
func FuzzTakeToken(f *testing.F) {
	for _, seed := range []string{
		"", "acc_token=t", "acc_token=&limit=5&acc_token=t", "%61cc_token=a%2Bb&offset=a+b", "acc_token=%zz&&=",
		"a;acc_token=t", "acc_token", "acc%5Ftoken=%00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		rest, token := takeToken(query)
		before, _ := url.ParseQuery(query) // even with an error, ParseQuery returns the well-formed parameters
		after, _ := url.ParseQuery(rest)
		expect.FatalIf(t, after.Has(tokenParameter), "%q: got the rest %q, want no token in it", query, rest)
		if !strings.Contains(query, ";") { // because ParseQuery skips parameters with a semicolon
			var want string
			for _, value := range before[tokenParameter] {
				if want = value; want != "" {
					break
				}
			}
			expect.FatalIf(t, token != want, "%q: got the token %q, want %q", query, token, want)
		}
		delete(before, tokenParameter)
		if before.Encode() != after.Encode() {
			t.Fatalf("%q: got the rest %q, want all other parameters in it", query, rest)
		}
		if again, none := takeToken(rest); again != rest || none != "" {
			t.Fatalf("%q: takeToken of the rest: got %q, %q; want %q, none", query, again, none, rest)
		}
	})
}
