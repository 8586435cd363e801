package console_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/console"
	"asset-registry/authsvc/internal/staff"
	"asset-registry/authsvc/internal/stafftest"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/testing/expect"
)

// office has two consoles on one store, at which people sign in at one provider. A load balancer sends the requests of
// each path to another console in turn.
type office struct {
	*desk
	provider *stafftest.Provider
	front    *httptest.Server
	turn     int
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{desk: newDesk(t)}
	var handlers []http.Handler
	o.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.turn++
		handlers[o.turn%len(handlers)].ServeHTTP(w, r)
	}))
	t.Cleanup(o.front.Close)
	o.provider = stafftest.New(t, o.front.URL)
	o.provider.Now = func() time.Time { return o.now }
	file := filepath.Join(t.TempDir(), "secret")
	expect.OK(t, os.WriteFile(file, []byte(stafftest.Secret), 0o600))
	for range 2 {
		options := o.options()
		made, err := staff.New(staff.Settings{
			Issuer: o.provider.URL, Name: "Example ID", Client: stafftest.Client, SecretFile: file, Console: o.front.URL,
			Roles: []string{"groups=registry:operator", "groups=audit:auditor"},
		}, o.logger, options.Now)
		expect.OK(t, err)
		options.Staff = made
		c, err := console.New(options)
		expect.OK(t, err)
		handlers = append(handlers, c.Handler())
	}
	return o
}

// onward is the link of a page that leads to another page by itself.
var onward = regexp.MustCompile(`^0; url=(.+)$`)

// visitor is a browser that also follows the header Refresh.
type visitor struct{ *browser }

func (o *office) visitor(t *testing.T) visitor {
	b := o.browser(t)
	b.base = o.front.URL
	return visitor{b}
}

func (v visitor) get(path string) answer {
	v.t.Helper()
	got := v.browser.get(path)
	for range 3 {
		next := onward.FindStringSubmatch(got.Header.Get("Refresh"))
		if next == nil {
			break
		}
		got = v.browser.get(next[1])
	}
	return got
}

// tells compares the entries of the audit log with texts.
func (o *office) tells(t *testing.T, want ...string) {
	t.Helper()
	var told []string
	for _, e := range expect.Get(o.service.Entries(t.Context(), 0, 10))(t) {
		told = append(told, e.Who+" "+e.Action+" "+e.Subject+" "+e.From)
	}
	expect.ErrorIf(t, !slices.Equal(told, want), "got entries %v, want %v", told, want)
}

const startOfKeys = "/console/sign-in/start?next=%2Fconsole%2Fkeys"

func (o *office) signedInPerson(t *testing.T) visitor {
	t.Helper()
	v := o.visitor(t)
	v.get("/console/keys").must(t, 200, "<h1>Sign in</h1>", `<a class="button" href="`+startOfKeys+`">Sign in with <bdi>Example ID`)
	v.get(startOfKeys).must(t, 200, "<h1>Keys</h1>", "Олена Коваль")
	return v
}

func TestAPersonSignsIn(t *testing.T) {
	o := newOffice(t)
	v := o.signedInPerson(t)
	v.submit("/console/new-broker", url.Values{"name": {"acme"}, "title": {"Acme"}}).must(t, 200, "Created.")
	v.get("/console/audit").must(t, 200, "oidc:4711 Олена Коваль")
	v.get("/console/audit/check").must(t, 200, "The log is as it was written")
	cookies := v.client.Jar.Cookies(mustURL(t, v.base+"/console/"))
	if len(cookies) != 1 || cookies[0].Name != "registry-console" {
		t.Errorf("got the cookies %v after the sign-in, want the session's only", cookies)
	}
	copied := o.visitor(t)
	copied.client.Jar.SetCookies(mustURL(t, v.base+"/console/"), cookies)
	copied.get("/console/keys").must(t, 200, "<h1>Keys</h1>")
	o.now = o.now.Add(16 * time.Minute) // the role has to be asked again, in the browser only
	v.post("/console/sign-out", nil).must(t, 200, "You are signed out.")
	copied.client.CheckRedirect = stay
	expect.Equal(t, copied.browser.get("/console/keys").StatusCode, 303, "a copied cookie after the sign-out")
	o.tells(t, "oidc:4711 Олена Коваль session.begin log 127.0.0.1",
		"oidc:4711 Олена Коваль broker.create broker acme 127.0.0.1", "oidc:4711 Олена Коваль session.end log 127.0.0.1")
}

func TestTheCookieOfASignIn(t *testing.T) {
	o := newOffice(t)
	for name, c := range map[string]struct {
		header     http.Header
		name, path string
		secure     bool
	}{
		"over HTTP":  {http.Header{}, "registry-sign-in-", "/console", false},
		"over HTTPS": {http.Header{"X-Forwarded-Proto": {"https"}}, "__Host-registry-sign-in-", "/", true},
	} {
		v := o.visitor(t)
		v.client.CheckRedirect = stay
		req, err := http.NewRequest(http.MethodGet, v.base+startOfKeys, nil)
		expect.OK(t, err)
		req.Header = c.header
		got := v.do(req)
		given := got.Cookies()
		to := mustURL(t, got.Header.Get("Location")).Query()
		if len(given) != 1 || !strings.HasPrefix(given[0].Name, c.name) || !given[0].HttpOnly ||
			given[0].Secure != c.secure || given[0].SameSite != http.SameSiteLaxMode || given[0].Path != c.path ||
			given[0].MaxAge != 600 || strings.Contains(given[0].Value, to.Get("nonce")) {
			t.Errorf("%s: got %v, want one lax HttpOnly cookie for 10 minutes", name, given)
		}
		if to.Get("state") == "" || to.Get("nonce") == "" || to.Get("code_challenge") == "" || to.Has("prompt") {
			t.Errorf("%s: got %v, want state, nonce and challenge", name, to)
		}
	}
	v := o.visitor(t)
	v.client.CheckRedirect = stay
	for range 30 {
		v.browser.get(startOfKeys)
	}
	if n := len(v.client.Jar.Cookies(mustURL(t, v.base+"/console/"))); n > 6 {
		t.Errorf("got %d cookies after 30 beginnings, want at most 6", n)
	}
}

func TestASignInBelongsToItsBrowser(t *testing.T) {
	o := newOffice(t)
	begin := func(v visitor) string { // the address to which the provider sends the browser back
		v.client.CheckRedirect = stay
		to := v.browser.get(startOfKeys).Header.Get("Location")
		resp, err := v.client.Get(to)
		expect.OK(t, err)
		resp.Body.Close()
		return strings.TrimPrefix(resp.Header.Get("Location"), o.front.URL)
	}
	const none = "did not begin in this browser"
	one, other := o.visitor(t), o.visitor(t)
	back := begin(one)
	other.browser.get(back).must(t, 400, none)
	one.browser.get(strings.Replace(back, "state=", "state=A", 1)).must(t, 400, none)
	one.browser.get("/console/sign-in/back").must(t, 400, none)
	second := begin(one) // two tabs
	one.browser.get(back).must(t, 200, "One moment", "Олена Коваль")
	one.browser.get(back).must(t, 400, none)
	one.browser.get(second).must(t, 200, "One moment")
	late := begin(other)
	o.now = o.now.Add(10 * time.Minute)
	other.browser.get(late).must(t, 400, none)
	ahead := begin(other)
	o.now = o.now.Add(-2 * time.Minute)
	other.browser.get(ahead).must(t, 400, none)
	o.provider.Back = url.Values{"error": {"access_denied"}}
	other.browser.get(begin(other)).must(t, 401, "Example ID has refused the sign-in.")
	o.provider.Back, o.provider.Claims = nil, map[string]any{"groups": nil}
	other.browser.get(begin(other)).must(t, 403, "Example ID knows you as 4711, but you have no role here.")
	expect.Equal(t, other.browser.get("/console/keys").StatusCode, 303, "the keys without a role")
	o.operators.NoteRefused(t.Context(), o.service.Service)
	o.tells(t, "oidc:4711 Олена Коваль session.begin log 127.0.0.1", "oidc:4711 Олена Коваль session.begin log 127.0.0.1",
		"nobody session.refused log 127.0.0.1")
	expect.Equal(t, string(expect.Get(o.service.Entries(t.Context(), 2, 1))(t)[0].After), `{"keys":0,"sign_ins":2}`, "refused")
	o.provider.Close()
	other.browser.get(startOfKeys).must(t, 303)
	other.client.CheckRedirect = nil
	_, key := o.key(t, adminapi.NewKey{KeySettings: settings("n", "auditor")})
	other.post("/console/sign-in", url.Values{"key": {key}}).must(t, 200, `<span class="badge">auditor`)
}

func TestNextOfASignInStaysInTheConsole(t *testing.T) {
	o := newOffice(t)
	for next, want := range map[string]string{
		"/console/audit?q=a": "/console/audit?q=a", "//evil.example/console/": "/console/",
		"https://evil.example/console/keys": "/console/", "/console/../evil": "/console/", "": "/console/",
		"/console/audit?q=" + strings.Repeat("a", 2000): "/console/",
	} {
		got := o.visitor(t).browser.get("/console/sign-in/start?" + url.Values{"next": {next}}.Encode())
		expect.Equal(t, got.Header.Get("Refresh"), "0; url="+want, "next=%.50s", next)
	}
}

// TestTheRoleIsAskedAgain takes a role away. The session learns of it after 15 minutes, on both consoles.
func TestTheRoleIsAskedAgain(t *testing.T) {
	auditor := map[string]any{"groups": []string{"audit"}}
	for name, c := range map[string]struct {
		refresh, loggedIn bool
		claims            map[string]any
		later             time.Duration
		says              string
		grants            int // questions after the sign-in
	}{
		"not before 15 minutes":          {true, true, auditor, 15*time.Minute - time.Second, `<span class="badge">operator`, 0},
		"a clock that was ahead":         {true, true, auditor, -2 * time.Minute, "<h1>Sign in</h1>", 0},
		"by refresh token":               {true, false, auditor, 15 * time.Minute, `<span class="badge">auditor`, 1},
		"by refresh token, no role":      {true, true, map[string]any{"groups": nil}, 15 * time.Minute, "you have no role here", 1},
		"by refresh token, another sub":  {true, false, map[string]any{"sub": "4712"}, 15 * time.Minute, "Your sign-in at Example ID has ended", 1},
		"by silent sign-in":              {false, true, auditor, 15 * time.Minute, `<span class="badge">auditor`, 1},
		"by silent sign-in, no role":     {false, true, map[string]any{"groups": nil}, 15 * time.Minute, "you have no role here", 1},
		"by silent sign-in, another sub": {false, true, map[string]any{"sub": "4712"}, 15 * time.Minute, "named another person", 1},
		"by silent sign-in, logged out":  {false, false, auditor, 15 * time.Minute, "Your sign-in at Example ID has ended", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.provider.Refresh = c.refresh
			v := o.signedInPerson(t)
			o.provider.LoggedIn, o.provider.Claims = c.loggedIn, c.claims
			o.now = o.now.Add(c.later)
			o.provider.Asked = nil
			got := v.get("/console/keys?q=x")
			expect.ErrorIf(t, !strings.Contains(got.text, c.says), "got %s, want %q", got.text, c.says)
			if strings.Contains(name, "no role") {
				o.tells(t, "oidc:4711 Олена Коваль session.begin log 127.0.0.1", "oidc:4711 Олена Коваль session.end log 127.0.0.1")
			}
			for range 3 {
				v.get("/console/brokers")
			}
			asked := strings.Count(strings.Join(o.provider.Asked, "\n"), "/token")
			expect.Equal(t, asked, c.grants, "questions %v", o.provider.Asked)
			if strings.Contains(o.log.String(), "refresh-") {
				t.Errorf("got a refresh token in the log: %s", o.log.String())
			}
		})
	}
}

// TestAProviderThatIsAwayEndsNoSession refuses requests while the role cannot be asked, and goes on after that.
func TestAProviderThatIsAwayEndsNoSession(t *testing.T) {
	o := newOffice(t)
	o.provider.Refresh = true
	v := o.signedInPerson(t)
	o.now = o.now.Add(15 * time.Minute)
	o.provider.Before = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for range 2 {
		v.get("/console/keys").must(t, 503, "Example ID gives no answer that can be used.")
	}
	o.provider.Before = nil
	v.get("/console/keys").must(t, 200, "<h1>Keys</h1>")
}

// TestOneOfSeveralRequestsAsks sends requests to both consoles while one of them asks the provider. A refresh token
// counts once, so a second question would end the session.
func TestOneOfSeveralRequestsAsks(t *testing.T) {
	o := newOffice(t)
	o.provider.Refresh = true
	v := o.signedInPerson(t)
	o.now = o.now.Add(15 * time.Minute)
	asked, answer, done := make(chan struct{}), make(chan struct{}), make(chan string)
	o.provider.Before = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked); <-answer })
	go func() { done <- v.get("/console/keys").text }()
	<-asked
	for range 4 {
		v.get("/console/keys").must(t, 200, "<h1>Keys</h1>")
	}
	o.now = o.now.Add(14 * time.Second)
	v.get("/console/keys").must(t, 200, "<h1>Keys</h1>")
	o.provider.Before = nil
	close(answer)
	if text := <-done; !strings.Contains(text, "<h1>Keys</h1>") {
		t.Errorf("got %s, want the keys", text)
	}
	grants := strings.Count(strings.Join(o.provider.Asked, "\n"), "/token refresh_token")
	expect.Equal(t, grants, 1, "questions")
}

// TestNoFormIsLostWhenTheRoleIsAsked sends a form 16 minutes after the sign-in.
func TestNoFormIsLostWhenTheRoleIsAsked(t *testing.T) {
	for _, refresh := range []bool{true, false} {
		o := newOffice(t)
		o.provider.Refresh = refresh
		v := o.signedInPerson(t)
		form := v.fill("/console/new-broker", url.Values{"name": {"acme"}, "title": {`<b>"Ю & Я"`}})
		o.now = o.now.Add(16 * time.Minute)
		got := v.post("/console/new-broker", form)
		if refresh {
			got.must(t, 200, "Created.")
			continue
		}
		got.must(t, 409, "Nothing was done yet", `action="/console/new-broker"`)
		confirm := regexp.MustCompile(`href="(/console/sign-in/start\?[^"]+)" target`).FindStringSubmatch(got.text)
		if confirm == nil {
			t.Fatalf("got %s, want a link that confirms", got.text)
		}
		kept := url.Values{}
		for _, field := range regexp.MustCompile(`name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(got.text, -1) {
			kept.Add(field[1], strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&amp;", "&").Replace(field[2]))
		}
		expect.Equal(t, kept.Encode(), form.Encode(), "the form on the page")
		v.get(confirm[1]).must(t, 200, "Your role is confirmed", "Close this tab")
		v.post("/console/new-broker", kept).must(t, 200, "Created.", "Ю &amp; Я")
	}
}

// TestAnotherConfigurationEndsTheSessions gives the cookie of a person to consoles without the provider, and with
// another one.
func TestAnotherConfigurationEndsTheSessions(t *testing.T) {
	o := newOffice(t)
	v := o.signedInPerson(t)
	cookies := v.client.Jar.Cookies(mustURL(t, v.base+"/console/"))
	for _, base := range []string{o.consoles[0].URL, newOffice(t).front.URL} {
		jar, err := cookiejar.New(nil)
		expect.OK(t, err)
		b := browser{t, &http.Client{Jar: jar}, base}
		jar.SetCookies(mustURL(t, base+"/console/"), cookies)
		b.get("/console/keys").must(t, 200, "<h1>Sign in</h1>")
	}
	o.browser(t).get("/console/sign-in/start").must(t, 404)
}

// TestAnAuditorDoesNothing tries every route of the console that sends something, as a person with the role of an
// auditor. It reads the routes from the source.
func TestAnAuditorDoesNothing(t *testing.T) {
	o := newOffice(t)
	o.provider.Claims = map[string]any{"groups": []string{"audit"}}
	v := o.signedInPerson(t)
	source, err := os.ReadFile("console.go")
	expect.OK(t, err)
	before := expect.Get(o.service.Head(t.Context()))(t)
	tried := 0
	for _, route := range regexp.MustCompile(`"(GET|POST) (/console/[^"$]*)", c\.(\w+)\(`).FindAllStringSubmatch(string(source), -1) {
		path := strings.ReplaceAll(route[2], "{id}", "x")
		if route[1] == "POST" && !strings.HasPrefix(path, "/console/sign-") {
			tried++
			v.post(path, url.Values{"once": {"0.AAAAAAAAAAAAAAAAAAAAAAAAAA"}, "name": {"x"}}).must(t, 403, "may read here and change nothing")
		} else if route[3] == "changing" || route[3] == "opening" {
			v.get(path).must(t, 403, "may read here and change nothing")
		}
	}
	if after := expect.Get(o.service.Head(t.Context()))(t); tried < 10 || after != before || len(o.assets.done) > 0 {
		t.Errorf("got %d acts, head %v and %v; want at least 10, %v and none", tried, after, o.assets.done, before)
	}
}
