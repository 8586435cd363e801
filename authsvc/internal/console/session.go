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
	// hostCookie is the name with TLS. Browsers accept it only from this host, and only with the attribute Secure.
	hostCookie = "__Host-registry-console"
)

// session holds the hash of the user's key. Each request verifies the key again.
type session struct {
	ID    string    `json:"id"` // "" for a session that an earlier release has begun
	Hash  string    `json:"hash"`
	Begun time.Time `json:"begun"`
	Used  time.Time `json:"used"`
}

// name returns a text that identifies the session.
func (s session) name() string {
	return cmp.Or(s.ID, digest([]byte(s.Hash+" "+s.Begun.Format(time.RFC3339Nano))))
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

func (s *sealer) close(of session) (string, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("encode session: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aeads[0].Seal(nil, nil, text, nil)), nil
}

// open returns the session in a text that the method `close` has sealed, or false for any other text.
func (s *sealer) open(text string) (of session, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return of, false
	}
	for _, aead := range s.aeads {
		if plain, err := aead.Open(nil, nil, sealed, nil); err == nil {
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

func cookie(r *http.Request) *http.Cookie {
	name, path := plainCookie, strings.TrimSuffix(root, "/")
	if secure(r) {
		name, path = hostCookie, "/" // a cookie with the prefix __Host- must have this path
	}
	return &http.Cookie{Name: name, Path: path, HttpOnly: true, Secure: secure(r), SameSite: http.SameSiteStrictMode}
}

func (c *Console) remember(w http.ResponseWriter, r *http.Request, s session) error {
	sealed, err := c.seal.close(s)
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

// user identifies the user of a request and renews the session. It returns a fault of kind Unauthorized if the
// session is missing or over.
func (c *Console) user(w http.ResponseWriter, r *http.Request) (admin.Actor, error) {
	nobody := fault.New(fault.Unauthorized, fault.Header, "Cookie", "You are not signed in.")
	sent, err := r.Cookie(cookie(r).Name)
	if err != nil {
		return admin.Actor{}, nobody
	}
	s, ok := c.seal.open(sent.Value)
	now := c.Now()
	if !ok || s.over(now) {
		return admin.Actor{}, nobody
	}
	if ended, err := c.Ended.SessionEnded(r.Context(), s.name()); err != nil || ended {
		return admin.Actor{}, cmp.Or(err, error(nobody))
	}
	by, err := enter(r, s.Hash, c.Users.SignedIn)
	if err != nil {
		return by, err
	}
	if now.Sub(s.Used) >= renewEvery {
		s.Used = now
		err = c.remember(w, r, s)
	}
	return by, err
}

// identify is the type of the methods of Authenticator.
type identify func(ctx context.Context, hash string, from netip.Addr) (admin.Actor, error)

// enter identifies a user by the hash of a key and the address from which the request came.
func enter(r *http.Request, hash string, who identify) (admin.Actor, error) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return admin.Actor{}, fault.New(fault.Forbidden, fault.URL, "permission", "The registry does not know your address.")
	}
	by, err := who(r.Context(), hash, from.Addr().Unmap())
	by.RequestID = r.Header.Get(httpserver.RequestIDHeader)
	return by, err
}

// signInPage is the body of the sign-in page.
type signInPage struct {
	Next  string // path of the page that is shown after the sign-in
	Wrong string // what is wrong with the key; "": nothing
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
	return c.show(w, http.StatusOK, "sign-in", view{
		Title: "Sign in", Notice: notices[q.Get("notice")], Body: signInPage{Next: inside(q.Get("next"))},
	})
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
		return c.show(w, http.StatusUnauthorized, "sign-in", view{Title: "Sign in", Body: signInPage{
			Next: next, Wrong: "This key does not open the console. Only valid keys of operators and auditors do.",
		}})
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
		if s, ok := c.seal.open(sent.Value); ok {
			by, err := enter(r, s.Hash, c.Users.SignedIn)
			if err != nil { // the key has ended meanwhile
				by.Name = "nobody"
			}
			if err := c.end(r, by, s.name()); err != nil {
				return err
			}
		}
	}
	redirect(w, r, "/console/sign-in", signedOut)
	return nil
}

// digest returns the first half of the text's SHA-256 in hex.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
