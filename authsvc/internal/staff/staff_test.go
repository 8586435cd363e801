package staff_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"asset-registry/authsvc/internal/staff"
	"asset-registry/authsvc/internal/stafftest"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

const console = "https://console.example"

// desk is a console that signs people in at a provider.
type desk struct {
	t        *testing.T
	provider *stafftest.Provider
	staff    *staff.Provider
	log      bytes.Buffer
	now      time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, provider: stafftest.New(t, console), now: time.Now()}
	file := filepath.Join(t.TempDir(), "secret")
	expect.OK(t, os.WriteFile(file, []byte(stafftest.Secret+"\n"), 0o600))
	made, err := staff.New(staff.Settings{
		Issuer: d.provider.URL, Client: stafftest.Client, SecretFile: file, Console: console,
		Roles: []string{"groups=registry:operator", "sub=4712:auditor", "team=urn:x:audit:auditor"},
	}, slog.New(slog.NewTextHandler(&d.log, nil)), func() time.Time { return d.now })
	expect.OK(t, err)
	d.staff = made
	return d
}

// signIn signs a person in.
func (d *desk) signIn() (staff.Person, error) {
	d.t.Helper()
	a := staff.Attempt{State: "the state", Nonce: "the nonce", Verifier: oauth2.GenerateVerifier()}
	to, err := d.staff.Begin(d.t.Context(), "192.0.2.1", a)
	if err != nil {
		return staff.Person{}, err
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(to)
	expect.OK(d.t, err)
	resp.Body.Close()
	back, err := resp.Location()
	expect.OK(d.t, err)
	if got := back.Scheme + "://" + back.Host + back.Path; got != console+staff.BackPath {
		d.t.Fatalf("got the redirect address %s, want %s", got, console+staff.BackPath)
	}
	return d.staff.Finish(d.t.Context(), "192.0.2.1", a, back.Query())
}

func TestThePersonIsTheSubject(t *testing.T) {
	d := newDesk(t)
	for name, c := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"a group":              {nil, "oidc:4711 Олена Коваль operator"},
		"a subject":            {map[string]any{"groups": nil, "sub": "4712"}, "oidc:4712 Олена Коваль auditor"},
		"a text":               {map[string]any{"groups": "registry"}, "oidc:4711 Олена Коваль operator"},
		"a value with a colon": {map[string]any{"groups": nil, "team": []string{"urn:x:audit"}}, "oidc:4711 Олена Коваль auditor"},
		"no name":              {map[string]any{"name": nil}, "oidc:4711  operator"},
		"a name with markup":   {map[string]any{"name": " a\u202e\n<b>\x00 "}, "oidc:4711 a <b> operator"},
		"a long name":          {map[string]any{"name": strings.Repeat("я", 200)}, "oidc:4711 " + strings.Repeat("я", 100) + " operator"},
	} {
		d.provider.Claims = c.claims
		who, err := d.signIn()
		expect.OK(t, err)
		expect.Equal(t, who.ID()+" "+who.Name+" "+string(who.Role), c.want, "%s", name)
	}
}

func TestOnlyTheRightAnswerCounts(t *testing.T) {
	elsewhere := url.Values{"iss": {"https://other.example"}}
	announced := map[string]any{"authorization_response_iss_parameter_supported": true}
	for name, c := range map[string]struct {
		change func(*desk)
		want   fault.Kind // Internal: no fault
		says   string     // in the fault or the log
	}{
		"the announced issuer": {func(d *desk) { d.provider.Says, d.provider.Back = announced, url.Values{"iss": {d.provider.URL}} }, 0, ""},
		"no announced issuer":  {func(d *desk) { d.provider.Says = announced }, fault.Unauthorized, "another provider"},
		"another issuer":       {func(d *desk) { d.provider.Back = elsewhere }, fault.Unauthorized, "another provider"},
		"a refusal":            {func(d *desk) { d.provider.Back = url.Values{"error": {"access_denied"}} }, fault.Unauthorized, "has refused"},
		"a code of nobody":     {func(d *desk) { d.provider.Back = url.Values{"code": {"x"}} }, fault.Unauthorized, "does not accept"},
		"no code":              {func(d *desk) { d.provider.Back = url.Values{"code": {""}} }, fault.Unauthorized, "does not accept"},

		"no role":             {claim("groups", []string{"others"}), fault.Forbidden, "knows you as 4711, but you have no role"},
		"a mail address":      {claim("groups", nil, "email", "4712"), fault.Forbidden, "no role"},
		"an object":           {claim("groups", map[string]bool{"registry": true}), fault.Forbidden, "no role"},
		"another nonce":       {claim("nonce", "x"), fault.Unauthorized, "another sign-in"},
		"no nonce":            {claim("nonce", nil), fault.Unauthorized, "another sign-in"},
		"another audience":    {claim("aud", "x"), fault.Unavailable, "audience"},
		"for another party":   {claim("aud", []string{"x", stafftest.Client}, "azp", "x"), fault.Unauthorized, "another sign-in"},
		"by another issuer":   {claim("iss", "https://other.example"), fault.Unavailable, "different provider"},
		"no subject":          {claim("sub", nil), fault.Unavailable, "cannot stand in the audit log"},
		"a subject of spaces": {claim("sub", "a b"), fault.Unavailable, "cannot stand in the audit log"},
		"a long subject":      {claim("sub", strings.Repeat("a", 256)), fault.Unavailable, "cannot stand in the audit log"},
		"no expiry":           {claim("exp", nil), fault.Unavailable, "clocks"},

		"a clock 5 minutes ahead":  {clock(5*time.Minute - time.Second), 0, ""},
		"a clock 6 minutes ahead":  {clock(6 * time.Minute), fault.Unavailable, "clocks"},
		"a clock 5 minutes behind": {clock(-5*time.Minute - time.Hour + time.Minute), 0, ""},
		"a clock 6 minutes behind": {clock(-6*time.Minute - time.Hour), fault.Unavailable, "clocks"},
		"valid later": {func(d *desk) {
			d.provider.Claims = map[string]any{"nbf": d.now.Add(6 * time.Minute).Unix()}
		}, fault.Unavailable, "clocks"},

		"10 MB about itself": {before("/.well-known", large), fault.Unavailable, "too large"},
		"10 MB of keys":      {before("/keys", large), fault.Unavailable, "too large"},
		"10 MB of tokens":    {before("/token", large), fault.Unavailable, "too large"},
		"a redirect to a private address": {before("/.well-known", func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://169.254.169.254/latest/meta-data")
			w.WriteHeader(http.StatusFound)
		}), fault.Unavailable, "302"},
		"a redirect of the code": {before("/token", func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://10.0.0.1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}), fault.Unavailable, "answered 307"},
		"an error with our secrets": {before("/token", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusInternalServerError)
			w.Write([]byte(`{"error":"x","error_description":"secret-of-ours"}`))
		}), fault.Unavailable, "answered 500"},
		"another issuer about itself": {func(d *desk) {
			d.provider.Says = map[string]any{"issuer": "https://other.example"}
		}, fault.Unavailable, "did not match"},
		"tokens without an ID token": {before("/token", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"access_token":"a","token_type":"Bearer"}`))
		}), fault.Unauthorized, "no ID token"},
		"a provider that is away": {func(d *desk) { d.provider.Close() }, fault.Unavailable, "sign in with a key"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.provider.Now = func() time.Time { return d.now }
			c.change(d)
			_, err := d.signIn()
			expect.Equal(t, fault.KindOf(err), c.want, "%v", err)
			told := d.log.String()
			if err != nil {
				told += err.Error()
			}
			if !strings.Contains(told, c.says) || strings.Contains(told, "secret-of-ours") || len(told) > 2000 {
				t.Errorf("got %.3000s, want %q", told, c.says)
			}
		})
	}
}

// claim replaces claims of ID tokens. A name and a value follow each other.
func claim(pairs ...any) func(*desk) {
	return func(d *desk) {
		d.provider.Claims = map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			d.provider.Claims[pairs[i].(string)] = pairs[i+1]
		}
	}
}

// clock sets the provider's clock ahead of the console's.
func clock(ahead time.Duration) func(*desk) {
	return func(d *desk) { d.provider.Now = func() time.Time { return d.now.Add(ahead) } }
}

// before answers requests to paths that begin so, instead of the provider.
func before(path string, answer func(http.ResponseWriter)) func(*desk) {
	return func(d *desk) {
		d.provider.Before = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, path) {
				answer(w)
			}
		})
	}
}

func large(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"a":"`))
	part := bytes.Repeat([]byte("a"), 1<<20)
	for range 10 {
		w.Write(part)
	}
	w.Write([]byte(`"}`))
}

// TestASlowProviderEndsTheSignIn stops the provider in the middle of an answer. The deadline of the caller is shorter
// than that of the client here.
func TestASlowProviderEndsTheSignIn(t *testing.T) {
	d := newDesk(t)
	ended := make(chan struct{})
	d.provider.Before = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"issuer":`))
		w.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	expect.FaultOf(t, fault.Unavailable, "a slow provider")(d.staff.Begin(ctx, "192.0.2.1", staff.Attempt{}))
	<-ended
}

// noticing is a context that tells when somebody begins to wait.
type noticing struct {
	context.Context
	waits func()
}

func (n noticing) Done() <-chan struct{} { n.waits(); return n.Context.Done() }

// TestNobodyTakesAllPlaces lets one address ask for all places and more. The next free place is for another address.
func TestNobodyTakesAllPlaces(t *testing.T) {
	const atOnce = 8
	asked, done, other := make(chan chan bool), make(chan error, 2*atOnce), make(chan error, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		answer := make(chan bool)
		select {
		case asked <- answer:
			<-answer
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	made := expect.Get(staff.New(staff.Settings{Issuer: silent.URL}, slog.New(slog.DiscardHandler), time.Now))(t)
	begin := func(ctx context.Context, from string, done chan error) {
		_, err := made.Begin(ctx, from, staff.Attempt{})
		done <- err
	}
	var places []chan bool
	for range atOnce {
		go begin(t.Context(), "192.0.2.1", done)
		places = append(places, <-asked)
	}
	for i, done := range []chan error{done, other} {
		waits := make(chan bool)
		go begin(noticing{t.Context(), sync.OnceFunc(func() { close(waits) })}, fmt.Sprintf("192.0.2.%d", i+1), done)
		<-waits
	}
	close(places[0])
	<-done
	next := <-asked
	close(next)
	select {
	case <-other:
	case err := <-done:
		t.Errorf("got %v for the first address, want the place for the other one", err)
	}
	for _, place := range places[1:] {
		close(place)
	}
}

func TestKeysThatRotateAreReadAgain(t *testing.T) {
	d := newDesk(t)
	for range 3 {
		expect.Get(d.signIn())(t)
		d.provider.Rotate()
	}
	// A key that the provider has withdrawn counts for an hour at most.
	expect.Equal(t, strings.Count(strings.Join(d.provider.Asked, "\n"), "/.well-known"), 1, "readings in an hour")
	d.now = d.now.Add(time.Hour)
	d.provider.Now = func() time.Time { return d.now }
	expect.Get(d.signIn())(t)
	expect.Equal(t, strings.Count(strings.Join(d.provider.Asked, "\n"), "/.well-known"), 2, "readings after an hour")
}

func TestTheRoleIsAskedByTheRefreshToken(t *testing.T) {
	d := newDesk(t)
	d.provider.Refresh = true
	who := expect.Get(d.signIn())(t)
	d.provider.Claims = map[string]any{"groups": nil, "team": "urn:x:audit"}
	again := expect.Get(d.staff.Ask(t.Context(), who))(t)
	if again.Role != "auditor" || again.Refresh == who.Refresh || again.Nonce != who.Nonce {
		t.Errorf("got %+v, want an auditor with another refresh token", again)
	}
	expect.FaultOf(t, fault.Unauthorized, "a token that was used")(d.staff.Ask(t.Context(), who))
	for want, claims := range map[fault.Kind]map[string]any{
		fault.Forbidden: {"groups": nil}, fault.Unauthorized: {"sub": "4712"},
	} {
		d.provider.Claims = nil
		who = expect.Get(d.signIn())(t)
		d.provider.Claims = claims
		expect.FaultOf(t, want, "%v", claims)(d.staff.Ask(t.Context(), who))
	}
	for _, token := range d.provider.Tokens {
		if strings.Contains(d.log.String(), token) {
			t.Errorf("got a refresh token in the log: %s", d.log.String())
		}
	}
}

func TestTheSettingsAreChecked(t *testing.T) {
	good := staff.Settings{Issuer: "https://login.example/realms/a", Client: "c", Console: "https://console.example/",
		Roles: []string{"sub=a:auditor", "https://x.example/roles=a=b:c:operator"}}
	expect.OK(t, good.Check())
	expect.OK(t, staff.Settings{}.Check())
	for says, change := range map[string]func(*staff.Settings){
		"--oidc-issuer needs --oidc-client":             func(s *staff.Settings) { s.Client = "" },
		"--oidc-issuer needs --oidc-console":            func(s *staff.Settings) { s.Console = "" },
		"--oidc-issuer needs --oidc-roles":              func(s *staff.Settings) { s.Roles = nil },
		`"sub=a:broker" is not CLAIM=VALUE:ROLE`:        func(s *staff.Settings) { s.Roles = []string{"sub=a:broker"} },
		`"auditor" is not CLAIM=VALUE:ROLE`:             func(s *staff.Settings) { s.Roles = []string{"auditor"} },
		`"=a:operator" is not CLAIM=VALUE:ROLE`:         func(s *staff.Settings) { s.Roles = []string{"=a:operator"} },
		`"groups=:operator" is not CLAIM=VALUE:ROLE`:    func(s *staff.Settings) { s.Roles = []string{"groups=:operator"} },
		"--oidc-secret-file: the file is empty":         func(s *staff.Settings) { s.SecretFile = os.DevNull },
		"the claim email may change":                    func(s *staff.Settings) { s.Roles = []string{"email=a@b:operator"} },
		"--oidc-secret-file: open /none":                func(s *staff.Settings) { s.SecretFile = "/none" },
		`--oidc-client needs --oidc-issuer, got "c"`:    func(s *staff.Settings) { s.Issuer = "" },
		`--oidc-roles needs --oidc-issuer, got "sub=a:`: func(s *staff.Settings) { *s = staff.Settings{Roles: s.Roles} },
	} {
		s := good
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
