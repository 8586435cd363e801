// Package stafftest has a small provider of OpenID Connect for tests. It does what providers that others wrote do not:
// it names itself in its answers, is slow, answers too much, signs for others, or has another clock.
package stafftest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"asset-registry/shared/testing/expect"
)

// The client that the provider knows.
const (
	Client = "console"
	Secret = "the secret of the client"
)

// Provider is a running provider. A test may change its exported fields between requests.
type Provider struct {
	*httptest.Server
	Console string // address of the console

	Says     map[string]any // replaces members of what the provider says about itself
	Claims   map[string]any // replaces claims of ID tokens; nil: the claim is missing
	Back     url.Values     // replaces parameters of the answer to a sign-in; "": the parameter is missing
	Before   http.Handler   // answers instead of the provider; one that writes nothing lets it go on
	Refresh  bool           // it gives refresh tokens, each for one use
	LoggedIn bool           // it knows the browser, so that it may sign in without a page
	Now      func() time.Time
	Asked    []string // paths that were asked, with the prompt or the type of grant
	Tokens   []string // refresh tokens that were given

	t      *testing.T
	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	name   string                // of the key
	codes  map[string]url.Values // parameters of the sign-in of each code
	living string                // refresh token that counts
	nonce  string
}

// New starts a provider for a console at an address.
func New(t *testing.T, console string) *Provider {
	t.Helper()
	p := &Provider{t: t, Console: console, LoggedIn: true, Now: time.Now, codes: map[string]url.Values{}}
	p.Rotate()
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Server.Close)
	return p
}

// Rotate gives the provider another key to sign with.
func (p *Provider) Rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.OK(p.t, err)
	p.key, p.name = key, rand.Text()
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	expect.OK(p.t, r.ParseForm())
	how := r.Form.Get("prompt") + r.PostForm.Get("grant_type")
	p.Asked = append(p.Asked, r.URL.Path+" "+how)
	if p.Before != nil {
		noted := &writer{ResponseWriter: w}
		if p.Before.ServeHTTP(noted, r); noted.wrote {
			return
		}
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		says := map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
		}
		maps.Copy(says, p.Says)
		answer(w, 200, says)
	case "/keys":
		point, err := p.key.PublicKey.Bytes() // 4, x, y
		expect.OK(p.t, err)
		answer(w, 200, map[string]any{"keys": []any{map[string]string{
			"kty": "EC", "crv": "P-256", "use": "sig", "kid": p.name,
			"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])}}})
	case "/authorize":
		p.authorize(w, r)
	case "/token":
		p.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

type writer struct {
	http.ResponseWriter
	wrote bool
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) { w.wrote = true; w.ResponseWriter.WriteHeader(status) }

func (w *writer) Write(text []byte) (int, error) { w.wrote = true; return w.ResponseWriter.Write(text) }

func answer(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(what)
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.Form
	if q.Get("client_id") != Client || q.Get("redirect_uri") != p.Console+"/console/sign-in/back" ||
		q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "this client may not ask so", 400)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if q.Get("prompt") == "none" && !p.LoggedIn {
		back.Set("error", "login_required")
	} else {
		code := rand.Text()
		p.codes[code] = q
		back.Set("code", code)
	}
	for name, values := range p.Back {
		if back[name] = values; values[0] == "" {
			back.Del(name)
		}
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	refuse := func() { answer(w, 400, map[string]string{"error": "invalid_grant"}) }
	id, secret, _ := r.BasicAuth()
	if told, err := url.QueryUnescape(secret); id != Client || err != nil || told != Secret {
		answer(w, 401, map[string]string{"error": "invalid_client"})
		return
	}
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		code := r.PostForm.Get("code")
		asked, ok := p.codes[code]
		delete(p.codes, code)
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") ||
			r.PostForm.Get("redirect_uri") != asked.Get("redirect_uri") {
			refuse()
			return
		}
		p.nonce = asked.Get("nonce")
	case "refresh_token":
		if sent := r.PostForm.Get("refresh_token"); sent == "" || sent != p.living {
			refuse()
			return
		}
		p.nonce = ""
	}
	now := p.Now()
	claims := jwt.MapClaims{"iss": p.URL, "aud": Client, "sub": "4711", "name": "Олена Коваль",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "groups": []string{"staff", "registry"}}
	if p.nonce != "" {
		claims["nonce"] = p.nonce
	}
	for name, value := range p.Claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = p.name
	signed, err := token.SignedString(p.key)
	expect.OK(p.t, err)
	given := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "id_token": signed}
	if p.living = ""; p.Refresh {
		p.living = "refresh-" + rand.Text()
		p.Tokens = append(p.Tokens, p.living)
		given["refresh_token"] = p.living
	}
	answer(w, 200, given)
}
