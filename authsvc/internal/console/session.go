package console

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	stdpath "path"
	"strings"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
)

const (
	idleTime    = 20 * time.Minute // a session ends after this time without a request
	longest     = 4 * time.Hour    // a session ends after this time at the latest
	clockError  = time.Minute      // maximum time by which the clocks of two services may differ
	renewEvery  = time.Minute      // minimum time between two renewals of the cookie
	plainCookie = "registry-console"
	// hostPrefix begins names with TLS. Browsers accept them only from this host, and only with the attribute Secure.
	hostPrefix = "__Host-"
)

// The purposes of sealed texts. A text opens for its purpose only.
const (
	sessionPurpose = "" // an earlier release knows no other purpose
	ticketPurpose  = "sign-in"
	keptPurpose    = "session " // the id of the session follows
)

// session holds the hash of the user's key. Each request verifies the key again.
type session struct {
	ID    string    `json:"id"`
	Hash  string    `json:"hash"`
	Staff bool      `json:"staff,omitempty"` // the user has no key: the store keeps the person (kept)
	Begun time.Time `json:"begun"`
	Used  time.Time `json:"used"`
}

// The method `over` reports whether the session has ended. A session that begins in the future counts as ended: its
// beginning comes from a wrong clock, so it would last too long.
func (s session) over(now time.Time) bool {
	used, begun := now.Sub(s.Used), now.Sub(s.Begun)
	return used >= idleTime || begun >= longest || used < -clockError || begun < -clockError
}

// sealer seals sessions for cookies. Its keys are derived from the registry's secrets. So every auth service
// can open a cookie, and nobody else can.
type sealer struct{ aeads []cipher.AEAD } // the first one seals cookies; each of them can open a cookie

func newSealer(secrets keyring.Ring) (*sealer, error) {
	keys, err := secrets.Derive("asset-registry console session")
	if err != nil {
		return nil, err
	}
	s := &sealer{}
	for _, k := range keys {
		block, err := aes.NewCipher(k.Key)
		if err != nil {
			return nil, fmt.Errorf("seal the console's sessions: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("seal the console's sessions: %w", err)
		}
		s.aeads = append(s.aeads, aead)
	}
	return s, nil
}

func (s *sealer) close(what any, purpose string) (string, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return "", fmt.Errorf("encode session: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aeads[0].Seal(nil, nil, text, []byte(purpose))), nil
}

// open returns the value in a text that the method `close` has sealed for the purpose, or false for any other text.
func open[T any](s *sealer, text, purpose string) (of T, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return of, false
	}
	for _, aead := range s.aeads {
		if plain, err := aead.Open(nil, nil, sealed, []byte(purpose)); err == nil {
			return of, json.Unmarshal(plain, &of) == nil
		}
	}
	return of, false
}

// secure reports whether the browser uses TLS, to this server or to a proxy. A client may send a false header
// X-Forwarded-Proto. This harms only the client itself: its browser drops the cookie.
func secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

func cookie(r *http.Request) *http.Cookie { return cookieOf(r, plainCookie, http.SameSiteStrictMode) }

func cookieOf(r *http.Request, name string, site http.SameSite) *http.Cookie {
	path := strings.TrimSuffix(root, "/")
	if secure(r) {
		name, path = hostPrefix+name, "/" // a cookie with the prefix __Host- must have this path
	}
	return &http.Cookie{Name: name, Path: path, HttpOnly: true, Secure: secure(r), SameSite: site}
}

func (c *Console) remember(w http.ResponseWriter, r *http.Request, s session) error {
	sealed, err := c.seal.close(s, sessionPurpose)
	if err != nil {
		return err
	}
	kept := cookie(r)
	kept.Value, kept.MaxAge = sealed, int(idleTime.Seconds())
	http.SetCookie(w, kept)
	return nil
}

func (c *Console) forget(w http.ResponseWriter, r *http.Request) {
	gone := cookie(r)
	gone.MaxAge = -1
	http.SetCookie(w, gone)
}

// session returns the session in the cookie of a request, or false if there is none or it is over.
func (c *Console) session(r *http.Request) (s session, ok bool) {
	sent, err := r.Cookie(cookie(r).Name)
	if err != nil {
		return s, false
	}
	s, ok = open[session](c.seal, sent.Value, sessionPurpose)
	return s, ok && !s.over(c.Now())
}

var errNobody = fault.New(fault.Unauthorized, fault.Header, "Cookie", "You are not signed in.")

// user identifies the user of a request and renews the session. It returns a fault of kind Unauthorized if the
// session is missing or over.
func (c *Console) user(w http.ResponseWriter, r *http.Request) (by admin.Actor, err error) {
	s, ok := c.session(r)
	if !ok {
		return by, errNobody
	}
	if ended, err := c.Ended.SessionEnded(r.Context(), s.ID); err != nil || ended {
		return by, cmp.Or(err, error(errNobody))
	}
	if by, err = c.holder(r, s); err != nil {
		return by, err
	}
	if now := c.Now(); now.Sub(s.Used) >= renewEvery {
		s.Used = now
		err = c.remember(w, r, s)
	}
	return by, err
}

// holder identifies the user of a session.
func (c *Console) holder(r *http.Request, s session) (admin.Actor, error) {
	if s.Staff {
		return c.person(r, s.ID)
	}
	return enter(r, s.Hash, c.Users.SignedIn)
}

// identify is the type of the methods of Authenticator.
type identify func(ctx context.Context, hash string, from netip.Addr) (admin.Actor, error)

// enter identifies a user by the hash of a key and the address from which the request came.
func enter(r *http.Request, hash string, who identify) (admin.Actor, error) {
	from, err := addressOf(r)
	if err != nil {
		return admin.Actor{}, err
	}
	by, err := who(r.Context(), hash, from)
	by.RequestID = r.Header.Get(httpserver.RequestIDHeader)
	return by, err
}

func addressOf(r *http.Request) (netip.Addr, error) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, fault.New(fault.Forbidden, fault.URL, "permission", "The registry does not know your address.")
	}
	return from.Addr().Unmap(), nil
}

// signInPage is the body of the sign-in page.
type signInPage struct {
	Next  string // path of the page that is shown after the sign-in
	Wrong string // what is wrong with the key; "": nothing

	Provider string // what is wrong with the sign-in at the provider; "": nothing
	Name     string // of the provider; "": there is none. The method showSignInPage sets it
}

// Start returns the path at which the sign-in at the provider begins.
func (p signInPage) Start() string { return startPath + "?" + url.Values{"next": {p.Next}}.Encode() }

func (c *Console) showSignInPage(w http.ResponseWriter, status int, notice string, p signInPage) error {
	if c.Staff != nil {
		p.Name = c.Staff.Name()
	}
	return c.show(w, status, "sign-in", view{Title: "Sign in", Notice: notice, Body: p})
}

func signInPath(r *http.Request) string {
	next := r.URL.RequestURI()
	if r.Method != http.MethodGet {
		next = r.URL.Path
	}
	return "/console/sign-in?" + url.Values{"next": {next}}.Encode()
}

// inside returns a path of the console unchanged. For any other text, it returns the path of the console's first page.
// So the sign-in never redirects to another site, and a path with ".." never leads out of the console.
func inside(path string) string {
	at, err := url.Parse(path)
	if err != nil || at.IsAbs() || at.Host != "" || !strings.HasPrefix(at.Path, root) ||
		stdpath.Clean(at.Path) != at.Path || strings.ContainsAny(path, "\\\r\n") {
		return root
	}
	return at.RequestURI()
}

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	return c.showSignInPage(w, http.StatusOK, notices[q.Get("notice")], signInPage{Next: inside(q.Get("next"))})
}

func (c *Console) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	hash := authapi.Hash(strings.TrimSpace(r.PostForm.Get("key")))
	next := inside(r.PostForm.Get("next"))
	by, err := enter(r, hash, c.Users.Operator)
	if err != nil {
		if fault.KindOf(err) != fault.Unauthorized {
			return err
		}
		return c.showSignInPage(w, http.StatusUnauthorized, "", signInPage{
			Next: next, Wrong: "This key does not open the console. Only valid keys of operators and auditors do.",
		})
	}
	now := c.Now()
	if err := c.begin(w, r, by, session{ID: rand.Text(), Hash: hash, Begun: now, Used: now}); err != nil {
		return err
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// signOut ends the session on the server too, so that a copy of the cookie opens nothing.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) error {
	c.forget(w, r)
	if sent, err := r.Cookie(cookie(r).Name); err == nil {
		if s, ok := open[session](c.seal, sent.Value, sessionPurpose); ok {
			by, err := c.leaver(r, s)
			if err != nil {
				return err
			}
			if err := c.end(r, by, s.ID); err != nil {
				return err
			}
		}
	}
	return redirect(w, r, "/console/sign-in", signedOut)
}

// digest returns the first half of the text's SHA-256 in hex.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
