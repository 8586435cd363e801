// Package certificate gets the certificate of one host by ACME (RFC 8555) and renews it
// (docs/one-process.md, "TLS by ACME").
//
// It uses a client of the protocol, not autocert: autocert does not report why a renewal failed, leaves
// goroutines that never end, and calls the authority when a stranger begins a handshake.
package certificate

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/crypto/acme"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/sleep"
	"asset-registry/shared/telemetry"
)

// Authority says which authority signs the certificate. Its tags declare flags.
type Authority struct {
	Directory string `placeholder:"URL" help:"ACME directory of the authority; by default Let's Encrypt's directory."`
	Contact   string `placeholder:"MAIL" help:"Mail address that the authority may write to."`
	Roots     string `placeholder:"FILE" help:"Certificates (PEM) of an authority of your own, to reach its directory."`
	Addr      string `default:":80" help:"Address for plain HTTP: challenges of the authority and redirects."`
}

func (a Authority) directory() string { return cmp.Or(a.Directory, acme.LetsEncryptURL) }

// Host returns the host of a base URL, for which ACME can give a certificate.
func Host(baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("--acme needs --base-url with https and a host, such as https://registry.example")
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return "", errors.New("--acme needs --base-url with a name, not an address: authorities certify names")
	}
	return u.Hostname(), nil
}

// Validate reports everything that is wrong with the settings.
func (a Authority) Validate() error {
	var faults []error
	if u, err := url.Parse(a.directory()); err != nil || u.Scheme != "https" || u.Host == "" {
		faults = append(faults, errors.New("--acme-directory: it must be an address that begins with https"))
	}
	_, err := a.pool()
	return errors.Join(append(faults, err)...)
}

// pool returns the roots with which the certificate of the authority's server is verified. A nil pool stands for
// the roots of the system.
func (a Authority) pool() (*x509.CertPool, error) {
	if a.Roots == "" {
		return nil, nil
	}
	text, err := os.ReadFile(a.Roots)
	if err != nil {
		return nil, fmt.Errorf("--acme-roots: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--acme-roots: %s has no certificate in PEM", a.Roots)
	}
	return pool, nil
}

// Times of renewals and attempts.
const (
	early      = 30 * 24 * time.Hour // time from the renewal to the expiry, but at most half of the certificate's life
	within     = 5 * time.Minute     // longest time for one attempt
	firstPause = 2 * time.Minute     // pause after the first failure; Let's Encrypt allows five failures an hour
	longPause  = 6 * time.Hour
	least      = 10 * time.Second // least pause after a success, for certificates that live for seconds
	lookEvery  = time.Hour        // interval of reading the clock: the machine may have slept, or its clock was set
)

// Manager keeps the certificate of one host valid. Its methods may be called concurrently.
type Manager struct {
	host      string
	stored    folder
	authority Authority
	log       *slog.Logger
	obtain    func(context.Context) (*tls.Certificate, error)

	renewals metric.Int64Counter
	answers  sync.Map // answers to challenges; the authority may ask for these answers now; the key is the path

	mu       sync.Mutex
	current  *tls.Certificate
	failures int
	early    int       // certificates in a row whose renewal was due as soon as they came
	cause    error     // why the last attempt failed
	next     time.Time // when the next attempt is due
}

// Open returns the manager of a host's certificate. The certificate is stored below the directory in the argument
// `dir`. Open reads it, and sends no request.
func Open(a Authority, host, dir string, log *slog.Logger, meter metric.Meter) *Manager {
	renewals := telemetry.Counter(meter, "registry.tls.renewals", "",
		"Attempts to get or renew the certificate by ACME, by result.")
	m := &Manager{host: host, stored: folderOf(dir, a.directory()), authority: a, log: log, renewals: renewals}
	m.obtain = m.ask
	found, err := m.stored.certificate(host)
	if err != nil {
		log.Warn("the stored certificate cannot be used; a new one will be asked for", "error", err)
	}
	m.current = found
	return m
}

// errNone is the error of a handshake while there is no certificate yet.
var errNone = errors.New("there is no certificate yet; see the log")

// TLS returns the configuration of the public listener.
func (m *Manager) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.current == nil {
				return nil, errNone
			}
			return m.current, nil
		},
	}
}

// State is the state of the certificate, for the operator.
type State struct {
	Host     string    `json:"host"`
	Expires  time.Time `json:"expires,omitzero"` // zero: there is no certificate yet
	Failures int       `json:"failures"`         // failures in a row
	Cause    string    `json:"cause,omitempty"`  // why the last attempt failed
	Next     time.Time `json:"next,omitzero"`    // time of the renewal, or of the next attempt
}

// State returns the state of the certificate.
func (m *Manager) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := State{Host: m.host, Failures: m.failures, Next: m.next}
	if m.current != nil {
		s.Expires = m.current.Leaf.NotAfter
	}
	if m.cause != nil {
		s.Cause = m.cause.Error()
	}
	return s
}

// Keep gets the certificate, and renews it whenever it is due, until ctx is done.
func (m *Manager) Keep(ctx context.Context) {
	for m.await(ctx) {
		got, err := m.obtain(ctx)
		if ctx.Err() != nil {
			return
		}
		m.note(ctx, got, err)
	}
}

// note records the result of an attempt.
func (m *Manager) note(ctx context.Context, got *tls.Certificate, err error) {
	result := "ok"
	m.mu.Lock()
	if err == nil {
		m.current, m.failures, m.cause = got, 0, nil
	} else {
		result = "failed"
		m.failures++
		m.cause = err
	}
	now := time.Now()
	m.next = m.due(now, err)
	if err == nil && m.next.Before(now.Add(least)) { // the authority gives old certificates, or the clock is wrong
		m.early++
		m.next = now.Add(pauseAfter(m.early))
	} else if err == nil {
		m.early = 0
	}
	next := m.next
	m.mu.Unlock()
	m.renewals.Add(ctx, 1, metric.WithAttributes(attribute.String("result", result)))
	if err != nil {
		m.log.Error("the certificate cannot be got or renewed", "host", m.host, "error", err, "again", next)
		return
	}
	m.log.Info("there is a new certificate", "host", m.host, "expires", got.Leaf.NotAfter, "renewal", next)
}

// pauseAfter returns the pause after so many attempts in a row that gave no certificate that lasts.
func pauseAfter(attempts int) time.Duration {
	if attempts < 8 {
		return min(firstPause<<(attempts-1), longPause)
	}
	return longPause
}

// due returns when the next attempt is due. Its arguments are the time at which the last attempt ended, and the error
// of that attempt.
func (m *Manager) due(now time.Time, err error) time.Time {
	if m.failures > 0 {
		pause := pauseAfter(m.failures)
		if wait, told := acme.RateLimit(err); told {
			pause = max(pause, min(wait, 24*time.Hour))
		}
		return now.Add(pause)
	}
	if m.current == nil {
		return now
	}
	leaf := m.current.Leaf
	return leaf.NotAfter.Add(-min(leaf.NotAfter.Sub(leaf.NotBefore)/2, early))
}

// await waits until an attempt is due. It returns false if ctx ends first.
func (m *Manager) await(ctx context.Context) bool {
	m.mu.Lock()
	if m.next.IsZero() {
		m.next = m.due(time.Now(), nil)
	}
	next := m.next
	m.mu.Unlock()
	for {
		wait := time.Until(next)
		if wait <= 0 {
			return ctx.Err() == nil
		}
		if !sleep.For(ctx, min(wait, lookEvery)) {
			return false
		}
	}
}

// challenges is the prefix of the paths at which an authority asks for answers (RFC 8555, section 8.3).
const challenges = "/.well-known/acme-challenge/"

// Plain returns the handler for plain HTTP. It answers challenges, and redirects other GET and HEAD requests to the
// same path on the host of the base URL. It reads no body and no file.
func (m *Manager) Plain(baseURL string) http.Handler {
	base := baseURL
	if u, err := url.Parse(baseURL); err == nil {
		base = u.Scheme + "://" + u.Host
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch answer, known := m.answers.Load(r.URL.Path); {
		case known && reads:
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = fmt.Fprint(w, answer) // an error only means that the authority has left
		case strings.HasPrefix(r.URL.Path, challenges):
			faulthttp.Write(w, fault.New(fault.NotFound, fault.URL, "challenge", "No such challenge is under way."))
		case reads:
			w.Header().Set("Location", base+target(r.URL))
			w.Header().Set("Connection", "close")
			w.WriteHeader(http.StatusMovedPermanently)
		default: // a broker may have sent its key in clear text; a redirect would hide this mistake
			w.Header().Set("Connection", "close")
			faulthttp.Write(w, fault.New(fault.Forbidden, fault.URL, "scheme",
				"Only HTTPS is understood here: use %s. A key that was sent by HTTP should be rotated.", base))
		}
	})
}

// target returns the path and the query of a request. If the path does not begin with a slash, it returns "/",
// because the path would otherwise become a part of the host in the redirect.
func target(u *url.URL) string {
	path := u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		return "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}
