package console_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/testing/expect"
)

func TestASessionEnds(t *testing.T) {
	rotate := func(grace time.Duration) func(*testing.T, *desk, adminapi.Key) {
		return func(t *testing.T, d *desk, k adminapi.Key) { d.service.RotateKey(t.Context(), root, k.ID, grace) }
	}
	for name, c := range map[string]struct {
		end  func(*testing.T, *desk, adminapi.Key)
		want bool // whether the session must still be valid
	}{
		"not after 20 minutes less a second": {
			func(_ *testing.T, d *desk, _ adminapi.Key) { d.now = d.now.Add(20*time.Minute - time.Second) }, true,
		},
		"after 20 idle minutes": {
			func(_ *testing.T, d *desk, _ adminapi.Key) { d.now = d.now.Add(20 * time.Minute) }, false,
		},
		"not when its clock was a minute ahead": {
			func(_ *testing.T, d *desk, _ adminapi.Key) { d.now = d.now.Add(-time.Minute) }, true,
		},
		"when its clock was a day ahead": {
			func(_ *testing.T, d *desk, _ adminapi.Key) { d.now = d.now.AddDate(0, 0, -1) }, false,
		},
		"when its clock was ten years ahead": {
			func(_ *testing.T, d *desk, _ adminapi.Key) { d.now = d.now.AddDate(-10, 0, 0) }, false,
		},
		"when its clock was a year ahead": {
			func(_ *testing.T, d *desk, _ adminapi.Key) { d.now = d.now.AddDate(-1, 0, 0) }, false,
		},
		"when its clock was a year behind": {
			func(_ *testing.T, d *desk, k adminapi.Key) { d.now = d.now.AddDate(1, 0, 0) }, false,
		},
		"when the key is revoked": {
			func(t *testing.T, d *desk, k adminapi.Key) { d.service.RevokeKey(t.Context(), root, k.ID) }, false,
		},
		"when the key expires": {
			func(_ *testing.T, d *desk, k adminapi.Key) { d.now = *k.Expires }, false,
		},
		"when the secret is rotated without grace": {rotate(0), false},
		"not while the rotated secret has grace":   {rotate(time.Hour), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			expires := d.now.Add(10 * time.Minute)
			if name != "when the key expires" {
				expires = d.now.Add(time.Hour)
			}
			n := adminapi.NewKey{KeySettings: settings("n", "auditor")}
			n.Expires = &expires
			k, secret := d.key(t, n)
			b := d.browser(t)
			b.post("/console/sign-in", url.Values{"key": {secret}}).must(t, 200, "<h1>Needs attention</h1>")
			b.base = d.consoles[1].URL // every auth service accepts the session
			cookies := b.client.Jar.Cookies(mustURL(t, d.consoles[0].URL+"/console/"))
			b.client.Jar.SetCookies(mustURL(t, b.base+"/console/"), cookies)
			c.end(t, d, k)
			got := b.get("/console/brokers?q=x")
			if c.want {
				got.must(t, 200, "<h1>Brokers</h1>")
				return
			}
			got.must(t, 200, "<h1>Sign in</h1>", `name="next" value="/console/brokers?q=x"`)
			if left := b.client.Jar.Cookies(mustURL(t, b.base+"/console/")); len(left) > 0 {
				t.Errorf("got cookies %v, want none", left)
			}
		})
	}
}

func TestABusySessionIsRenewedForHoursAndNoLonger(t *testing.T) {
	d := newDesk(t)
	b := d.signedIn(t, "auditor")
	began := d.now
	for d.now.Sub(began) < 4*time.Hour-10*time.Minute {
		d.now = d.now.Add(10 * time.Minute)
		if got := b.get("/console/keys"); d.now.Sub(began) < 4*time.Hour && got.Request.URL.Path != "/console/keys" {
			t.Fatalf("after %v: got the page %s, want /console/keys", d.now.Sub(began), got.Request.URL)
		}
	}
	d.now = began.Add(4 * time.Hour)
	b.get("/console/keys").must(t, 200, "<h1>Sign in</h1>")
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	expect.OK(t, err)
	return u
}

// stay makes a client follow no redirects.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func TestTheCookieIsForThisOriginAlone(t *testing.T) {
	d := newDesk(t)
	_, secret := d.key(t, adminapi.NewKey{KeySettings: settings("n", "auditor")})
	for name, c := range map[string]struct {
		header     http.Header
		want, path string
		secure     bool
	}{
		"over HTTP":  {http.Header{}, "registry-console", "/console", false},
		"over HTTPS": {http.Header{"X-Forwarded-Proto": {"https"}}, "__Host-registry-console", "/", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := d.browser(t)
			b.client.CheckRedirect = stay
			got := b.postFrom("/console/sign-in", url.Values{"key": {secret}}, c.header).Cookies()
			if len(got) != 1 || got[0].Name != c.want || !got[0].HttpOnly || got[0].Secure != c.secure ||
				got[0].SameSite != http.SameSiteStrictMode || got[0].Path != c.path || got[0].Domain != "" ||
				got[0].MaxAge != 1200 {
				t.Fatalf("got %+v, want a strict HttpOnly cookie %s for %s, Secure %t", got, c.want, c.path, c.secure)
			}
			if strings.Contains(got[0].Value, secret) || strings.Contains(got[0].Value, authapi.Hash(secret)) {
				t.Errorf("got the cookie %q, want neither the secret nor its hash in it", got[0].Value)
			}
			forged := *got[0]
			forged.Value = got[0].Value[:len(got[0].Value)-2] + "AA"
			for _, value := range []string{forged.Value, "", "x"} {
				req, err := http.NewRequest(http.MethodGet, b.base+"/console/keys", nil)
				expect.OK(t, err)
				req.Header = c.header.Clone()
				req.AddCookie(&http.Cookie{Name: c.want, Value: value})
				if got := (&browser{t, &http.Client{CheckRedirect: stay}, b.base}).do(req); got.StatusCode != 303 {
					t.Errorf("the cookie %q: got status %d, want 303", value, got.StatusCode)
				}
			}
		})
	}
}

func TestSigningIn(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.service.CreateBroker(t.Context(), root, adminapi.NewBroker{Name: "b"}))(t)
	_, broker := d.key(t, adminapi.NewKey{Broker: "b", KeySettings: settings("n", "broker")})
	elsewhere := adminapi.NewKey{KeySettings: settings("n", "operator")}
	elsewhere.Allow = []string{"192.0.2.0/24"}
	_, far := d.key(t, elsewhere)
	_, good := d.key(t, adminapi.NewKey{KeySettings: settings("n", "operator")})
	b := d.browser(t)
	for name, key := range map[string]string{"no key": "", "an unknown key": "ark_x", "a broker's key": broker} {
		t.Run(name, func(t *testing.T) {
			b.post("/console/sign-in", url.Values{"key": {key}}).must(t, 401, "This key does not open the console")
		})
	}
	b.post("/console/sign-in", url.Values{"key": {far}}).must(t, 403, "may not be used from the address 127.0.0.1")
	if got := b.get("/console/keys"); got.Request.URL.Path != "/console/sign-in" {
		t.Errorf("after a refused sign-in: got the page %s, want /console/sign-in", got.Request.URL)
	}
	b.post("/console/sign-in", url.Values{"key": {" " + good + "\n"}}).must(t, 200, "<h1>Needs attention</h1>")
	b.post("/console/sign-out", nil).must(t, 200, "You are signed out.")
	if got := b.get("/console/keys"); got.Request.URL.Path != "/console/sign-in" {
		t.Errorf("after the sign-out: got the page %s, want /console/sign-in", got.Request.URL)
	}
	copied := d.browser(t) // a browser that sends a copy of the cookie to another auth service
	copied.base = d.consoles[1].URL
	copied.client.CheckRedirect = stay
	sent := b.postFrom("/console/sign-in", url.Values{"key": {good}}, http.Header{})
	use := func() int {
		req, err := http.NewRequest(http.MethodGet, copied.base+"/console/keys", nil)
		expect.OK(t, err)
		for _, kept := range b.client.Jar.Cookies(mustURL(t, b.base+"/console/keys")) {
			req.AddCookie(kept)
		}
		return copied.do(req).StatusCode
	}
	sent.must(t, 200, "<h1>Needs attention</h1>")
	jar := b.client.Jar.Cookies(mustURL(t, b.base+"/console/keys"))
	if got := use(); got != 200 {
		t.Fatalf("a copied cookie during the session: got %d, want 200", got)
	}
	b.post("/console/sign-out", nil).must(t, 200, "You are signed out.")
	b.client.Jar.SetCookies(mustURL(t, b.base+"/console/keys"), jar)
	expect.Equal(t, use(), 303, "a copied cookie after the sign-out")
	inside := d.browser(t)
	inside.post("/console/sign-in", url.Values{"key": {good}}).must(t, 200, "<h1>Needs attention</h1>")
	for range 30 {
		b.post("/console/sign-in", url.Values{"key": {"wrong"}})
	}
	inside.get("/console/keys").must(t, 200, "<h1>Keys</h1>")
	refused := b.post("/console/sign-in", url.Values{"key": {good}})
	refused.must(t, 429, "Too many wrong keys")
	if n, err := strconv.Atoi(refused.Header.Get("Retry-After")); err != nil || n < 1 || n > 60 {
		t.Errorf("got Retry-After %q, want 1 to 60", refused.Header.Get("Retry-After"))
	}
}

// TestTheSignInGoesNowhereElse signs in with next pages that are not pages of the console. No sign-in may lead
// there.
func TestTheSignInGoesNowhereElse(t *testing.T) {
	d := newDesk(t)
	_, good := d.key(t, adminapi.NewKey{KeySettings: settings("Ольга", "operator")})
	for _, c := range []struct{ next, want string }{
		{"/console/audit?q=a%2Fb", "/console/audit"},
		{"/console/../../evil", "/console/"},
		{"/console/..", "/console/"},
		{"/console/%2e%2e/evil", "/console/"},
		{"/console/.%2E/%2e./evil", "/console/"},
		{"/console/a/../../evil", "/console/"},
		{"/console//evil.example", "/console/"},
		{"/console/./keys", "/console/"},
		{"//evil.example/console/", "/console/"},
		{"/consoles", "/console/"},
		{"https://evil.example/console/keys", "/console/"},
		{"/\\evil.example/console/", "/console/"},
		{"/elsewhere", "/console/"},
	} {
		b := d.browser(t)
		got := b.post("/console/sign-in", url.Values{"key": {good}, "next": {c.next}})
		if got.Request.URL.Path != c.want {
			t.Errorf("next=%s: got %s, want %s", c.next, got.Request.URL, c.want)
		}
	}
}
