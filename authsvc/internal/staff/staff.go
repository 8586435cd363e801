package staff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/fair"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/identity"
)

const (
	answerWithin = 4 * time.Second // longest time from a request to the last byte of its answer
	maxAnswer    = 256 << 10       // maximum number of bytes of an answer
	maxHeaders   = 64 << 10        // maximum number of bytes of an answer's headers
	atOnce       = 8               // maximum number of questions to the provider at the same time
	findEvery    = time.Hour       // after this time the addresses and keys of the provider are read again
	leeway       = 5 * time.Minute // maximum difference of the provider's clock
	maxName      = 100             // characters of a person's name that are kept
	maxSubject   = 255             // characters of a subject (OpenID Connect Core, 2)
)

// Provider is a provider of sign-ins. It is safe for concurrent use. It asks the provider when somebody signs in, so a
// provider that is away does not matter before.
type Provider struct {
	settings Settings
	secret   string
	rules    []rule
	client   *http.Client
	now      func() time.Time
	failures *failurelog.Log
	places   *fair.Semaphore // of questions to the provider, shared by address or person
	found    atomic.Pointer[found]
}

// found has what the provider says about itself.
type found struct {
	*oidc.Provider
	at           time.Time
	verifier     *oidc.IDTokenVerifier
	announcesISS bool // the answer to a sign-in has the parameter "iss" (RFC 9207)
	style        oauth2.AuthStyle
}

// New returns a provider, or nil for settings without an issuer.
func New(s Settings, log *slog.Logger, now func() time.Time) (*Provider, error) {
	if s.Issuer == "" {
		return nil, nil
	}
	rules, err1 := s.rules()
	secret, err2 := s.secret()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxHeaders
	p := &Provider{settings: s, secret: secret, rules: rules, client: httpclient.New(bounded{transport}), now: now,
		failures: failurelog.New(log, "staff cannot sign in by OpenID Connect"), places: fair.New(atOnce)}
	p.client.Timeout = answerWithin
	return p, errors.Join(err1, err2)
}

// bounded bounds the bytes of answers. Without it, go-oidc reads them without a limit.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// Name returns the name of the provider for people.
func (p *Provider) Name() string { return p.settings.name() }

// Issuer returns the issuer.
func (p *Provider) Issuer() string { return p.settings.Issuer }

// Attempt is one sign-in. Its fields are secrets between the browser and this service, except State.
type Attempt struct {
	State, Nonce, Verifier string
	Silent                 bool // the provider must show no page
}

// Person is somebody whom the provider has signed in.
type Person struct {
	Issuer  string
	Subject string // identifies the person at the issuer
	Name    string // for people only; "": not known
	Role    identity.Role
	Refresh string // refresh token; "": none
	Nonce   string // of the sign-in
}

// ID identifies the person in the audit log.
func (p Person) ID() string { return idPrefix + p.Subject }

const idPrefix = "oidc:"

// IsID reports whether an id of an actor is the ID of a person.
func IsID(id string) bool { return strings.HasPrefix(id, idPrefix) }

// Begin returns the address at which the provider signs a person in. The argument `from` names the caller, who shares
// the places with others.
func (p *Provider) Begin(ctx context.Context, from string, a Attempt) (string, error) {
	var to string
	err := p.ask(ctx, from, func(ctx context.Context, f *found) error {
		options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
		if a.Silent {
			options = append(options, oauth2.SetAuthURLParam("prompt", "none"))
		}
		to = p.config(f).AuthCodeURL(a.State, options...)
		return nil
	})
	return to, err
}

// Finish returns the person whom the provider has signed in. The argument `answer` has the parameters with which the
// provider has sent the browser back; the caller has compared the state. It returns a fault of kind Unauthorized for a
// sign-in that has failed, Forbidden for a person without a role, and Unavailable for a provider that is away.
func (p *Provider) Finish(ctx context.Context, from string, a Attempt, answer url.Values) (who Person, err error) {
	err = p.ask(ctx, from, func(ctx context.Context, f *found) error {
		iss := answer.Get("iss")
		if (iss != "" || f.announcesISS) && iss != p.settings.Issuer {
			return refused("The answer came from another provider than %s.", p.Name())
		}
		if code := answer.Get("error"); code != "" {
			return refused("%s", p.told(code))
		}
		token, err := p.config(f).Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
		if err != nil {
			return p.refusal(err)
		}
		who, err = p.read(ctx, f, token, a.Nonce)
		if err == nil && who.Nonce != a.Nonce {
			err = refused("The answer of %s belongs to another sign-in.", p.Name())
		}
		return err
	})
	return who, err
}

// Ask asks for the role of a person again by the refresh token. It returns the faults of Finish. Unauthorized means
// that the token does not count any more.
func (p *Provider) Ask(ctx context.Context, was Person) (who Person, err error) {
	err = p.ask(ctx, was.ID(), func(ctx context.Context, f *found) error {
		token, err := p.config(f).TokenSource(ctx, &oauth2.Token{RefreshToken: was.Refresh}).Token()
		if err != nil {
			return p.refusal(err)
		}
		who, err = p.read(ctx, f, token, was.Nonce)
		if err == nil && who.Subject != was.Subject {
			err = refused("%s has answered about another person.", p.Name())
		}
		who.Nonce = was.Nonce
		return err
	})
	return who, err
}

// ask calls the function `do` with what the provider says about itself. Every error is then a fault.
func (p *Provider) ask(ctx context.Context, by string, do func(context.Context, *found) error) error {
	away := fault.New(fault.Unavailable, fault.URL, "provider",
		"%s gives no answer that can be used. Try again, or sign in with a key.", p.Name())
	release, err := p.places.Acquire(ctx, by, 1)
	if err != nil {
		return fault.New(fault.Unavailable, fault.URL, "provider", "Too many people sign in just now. Try again.")
	}
	defer release()
	ctx = oidc.ClientContext(ctx, p.client)
	f, err := p.find(ctx)
	if err == nil {
		err = do(ctx, f)
	}
	if fault.KindOf(err) == fault.Internal && err != nil {
		p.failures.Failed(fmt.Errorf("%.300s", err.Error())) // some errors have a whole answer in them
		return away
	}
	return err
}

// find returns what the provider says about itself.
func (p *Provider) find(ctx context.Context) (*found, error) {
	now := p.now()
	if f := p.found.Load(); f != nil && now.Sub(f.at).Abs() < findEvery {
		return f, nil
	}
	provider, err := oidc.NewProvider(ctx, p.settings.Issuer)
	if err != nil {
		return nil, fmt.Errorf("read what the provider says about itself: %w", err)
	}
	var says struct {
		Authorize    string   `json:"authorization_endpoint"`
		Token        string   `json:"token_endpoint"`
		Keys         string   `json:"jwks_uri"`
		AnnouncesISS bool     `json:"authorization_response_iss_parameter_supported"`
		Methods      []string `json:"token_endpoint_auth_methods_supported"`
	}
	err = provider.Claims(&says)
	for _, address := range []string{says.Authorize, says.Token, says.Keys} {
		u, bad := url.Parse(address)
		secure := bad == nil && u.Host != "" && (u.Scheme == "https" || strings.HasPrefix(p.settings.Issuer, "http:"))
		if !secure {
			err = errors.Join(err, fmt.Errorf("the provider names the address %q, which has no TLS", address))
		}
	}
	if err != nil {
		return nil, err
	}
	f := &found{provider, now, provider.Verifier(&oidc.Config{ClientID: p.settings.Client, SkipExpiryCheck: true}),
		says.AnnouncesISS, oauth2.AuthStyleInHeader}
	basic := len(says.Methods) == 0 || slices.Contains(says.Methods, "client_secret_basic")
	if p.secret == "" || !basic {
		f.style = oauth2.AuthStyleInParams
	}
	p.found.Store(f)
	return f, nil
}

func (p *Provider) config(f *found) *oauth2.Config {
	at := f.Endpoint()
	at.AuthStyle = f.style
	return &oauth2.Config{
		ClientID: p.settings.Client, ClientSecret: p.secret, Endpoint: at,
		RedirectURL: strings.TrimSuffix(p.settings.Console, "/") + BackPath,
		Scopes:      append([]string{oidc.ScopeOpenID, oidc.ScopeProfile}, p.settings.Scopes...),
	}
}

// read verifies the ID token in an answer. A refreshed ID token may lack the nonce.
func (p *Provider) read(ctx context.Context, f *found, answer *oauth2.Token, nonce string) (Person, error) {
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return Person{}, refused("%s has sent no ID token.", p.Name())
	}
	token, err := f.verifier.Verify(ctx, raw)
	if err != nil {
		return Person{}, fmt.Errorf("verify the ID token: %w", err)
	}
	var says struct {
		Name      string  `json:"name"`
		Party     string  `json:"azp"`
		NotBefore float64 `json:"nbf"`
	}
	claims := map[string]json.RawMessage{}
	if err := errors.Join(token.Claims(&says), token.Claims(&claims)); err != nil {
		return Person{}, fmt.Errorf("read the ID token: %w", err)
	}
	latest := p.now().Add(leeway)
	switch unusual := func(r rune) bool { return r <= ' ' || r > '~' }; {
	case token.Expiry.Before(latest.Add(-2 * leeway)), token.IssuedAt.After(latest),
		says.NotBefore > float64(latest.Unix()):
		return Person{}, fmt.Errorf("the ID token holds from %v to %v: is one of the clocks wrong?",
			token.IssuedAt, token.Expiry)
	case token.Nonce != "" && token.Nonce != nonce, cmp.Or(says.Party, p.settings.Client) != p.settings.Client:
		return Person{}, refused("The answer of %s belongs to another sign-in.", p.Name())
	case token.Subject == "", len(token.Subject) > maxSubject, strings.ContainsFunc(token.Subject, unusual):
		return Person{}, fmt.Errorf("the subject %.300q cannot stand in the audit log", token.Subject)
	}
	who := Person{Issuer: p.settings.Issuer, Subject: token.Subject, Name: plain(says.Name),
		Role: role(p.rules, claims), Refresh: answer.RefreshToken, Nonce: token.Nonce}
	if who.Role == "" {
		return who, fault.New(fault.Forbidden, fault.Header, "Authorization",
			"%s knows you as %s, but you have no role here. Ask an operator for one.", p.Name(), who.Subject)
	}
	return who, nil
}

// plain returns a name without characters that change how a line looks.
func plain(name string) string {
	name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, name)), " ")
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName])
	}
	return name
}

func refused(format string, args ...any) error {
	return fault.New(fault.Unauthorized, fault.URL, "provider", format, args...)
}

// refusal returns the fault of an answer to a code or a refresh token. The error of the library has the whole answer,
// so it must not be logged.
func (p *Provider) refusal(err error) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case ok && answer.ErrorCode == "invalid_grant":
		return refused("%s does not accept this sign-in any more. Sign in again.", p.Name())
	case ok:
		return fmt.Errorf("the provider has answered %d with the error %.60q", answer.Response.StatusCode, answer.ErrorCode)
	}
	return fmt.Errorf("ask the provider for tokens: %w", err)
}

// told returns an error code of the provider in words.
func (p *Provider) told(code string) string {
	switch code {
	case "access_denied":
		return p.Name() + " has refused the sign-in."
	case "login_required", "interaction_required", "consent_required", "account_selection_required":
		return "Your sign-in at " + p.Name() + " has ended. Sign in again."
	}
	return p.Name() + " could not sign you in. Try again, or ask its administrator."
}
