package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/acme"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/testing/expect"
)

const host = "registry.example"

// signed returns a key as text, and a certificate for this key and a host.
func signed(t *testing.T, host string, from, to time.Time) (key []byte, chain [][]byte) {
	t.Helper()
	private, key, err := newKey()
	expect.OK(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to, DNSNames: []string{host}}
	der := expect.Get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	return key, [][]byte{der}
}

// open opens a manager with its files in a directory.
func open(t *testing.T, dir string) (*Manager, metrictest.Meter) {
	t.Helper()
	meter := metrictest.New()
	return Open(Authority{}, host, dir, slog.New(slog.DiscardHandler), meter), meter
}

// TestFailuresAreRepeatedLessAndLess lets every attempt fail for a day, and then lets one succeed. There are many
// handshakes during that time, and a handshake must not start an attempt.
func TestFailuresAreRepeatedLessAndLess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		key, chain := signed(t, host, time.Now(), time.Now().Add(90*24*time.Hour)) // time.Now is the clock of synctest
		m, meter := open(t, dir)
		begin := time.Now()
		var at []string
		m.obtain = func(context.Context) (*tls.Certificate, error) {
			at = append(at, time.Since(begin).String())
			if len(at) == 10 {
				return nil, &acme.Error{ProblemType: "urn:ietf:params:acme:error:rateLimited",
					Header: http.Header{"Retry-After": {"36000"}}}
			}
			if len(at) == 11 {
				return read(append(key, pemOf(chain)...), host)
			}
			return nil, errors.New("no such name")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { m.Keep(ctx); close(done) }()
		for range 100 {
			if _, err := m.TLS().GetCertificate(&tls.ClientHelloInfo{ServerName: host}); !errors.Is(err, errNone) {
				t.Fatalf("a handshake: got %v, want %v", err, errNone)
			}
			time.Sleep(15 * time.Minute)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		want := strings.Fields("0s 2m0s 6m0s 14m0s 30m0s 1h2m0s 2h6m0s 4h14m0s 10h14m0s 16h14m0s 26h14m0s")
		expect.NoDiff(t, cmp.Diff(want, at), "attempts")
		told := meter.Read(t)
		expect.ErrorIf(t, told["registry.tls.renewals{failed}"] != 10 || told["registry.tls.renewals{ok}"] != 1,
			"got the metrics %v, want ten failures and a success", told)
		if s := m.State(); s.Failures != 0 || s.Cause != "" || s.Expires.IsZero() {
			t.Errorf("got %+v, want a certificate without a failure", s)
		}
		cancel()
		<-done
	})
}

// TestASuccessIsNotRepeatedAtOnce has an authority whose certificates are due for renewal as soon as they come, and
// later one that gives good certificates.
func TestASuccessIsNotRepeatedAtOnce(t *testing.T) {
	const day = 24 * time.Hour
	for _, life := range []struct{ before, after time.Duration }{
		{89 * day, day}, {20 * time.Second, time.Second}, {300 * day, 0}, {0, 19 * time.Second},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			m, _ := open(t, dir)
			begin := time.Now()
			var at []string
			m.obtain = func(context.Context) (*tls.Certificate, error) {
				at = append(at, time.Since(begin).String())
				from, to := time.Now().Add(-life.before), time.Now().Add(life.after)
				if len(at) >= 11 {
					from, to = time.Now(), time.Now().Add(90*day)
				}
				key, chain := signed(t, host, from, to)
				return read(append(key, pemOf(chain)...), host)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { m.Keep(ctx); close(done) }()
			time.Sleep(70 * day)
			synctest.Wait()
			cancel()
			<-done
			// The last two are good: they are renewed when they have 30 days left.
			want := strings.Fields("0s 2m0s 6m0s 14m0s 30m0s 1h2m0s 2h6m0s 4h14m0s 10h14m0s 16h14m0s 22h14m0s 1462h14m0s")
			expect.NoDiff(t, cmp.Diff(want, at), "%v: orders", life)
		})
	}
}

func pemOf(chain [][]byte) (text []byte) {
	for _, der := range chain {
		text = append(text, blockOf(der)...)
	}
	return text
}

func TestRenewalIsDueBeforeTheEnd(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name       string
		life, left time.Duration // left: how much of its life the certificate has left when the renewal is due
	}{
		{"90 days", 90 * day, 30 * day},
		{"45 days", 45 * day, 22*day + 12*time.Hour},
		{"6 days", 6 * day, 3 * day},
	} {
		from := time.Now()
		key, chain := signed(t, host, from, from.Add(c.life))
		m, _ := open(t, t.TempDir())
		var err error
		m.current, err = m.stored.keep(key, chain, host)
		expect.OK(t, err)
		leaf := m.current.Leaf
		if got := leaf.NotAfter.Sub(m.due(time.Now(), nil)); (got - c.left).Abs() > time.Second {
			t.Errorf("%s: got a renewal %v before the end, want %v", c.name, got, c.left)
		}
	}
}

// TestAStoredCertificateIsUsedAgain stores the key of an account and a certificate. Only the owner may have access
// to the files. After a restart, the manager must have the same certificate.
func TestAStoredCertificateIsUsedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "acme")
	expect.OK(t, os.Mkdir(filepath.Dir(dir), 0o700))
	m, _ := open(t, dir)
	first := expect.Get(m.stored.account())(t)
	again, err := m.stored.account()
	expect.ErrorIf(t, err != nil || !first.Public().(*ecdsa.PublicKey).Equal(again.Public()),
		"got another account, %v, want the first one", err)
	key, chain := signed(t, host, time.Now(), time.Now().Add(time.Hour))
	expect.Get(m.stored.keep(key, chain, host))(t)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if want := fs.FileMode(0o600); err == nil && !e.IsDir() && info.Mode() != want {
			t.Errorf("%s: got the mode %v, want %v", path, info.Mode(), want)
		}
		return err
	})
	expect.Try(t, err)
	if m, _ = open(t, dir); m.State().Expires.IsZero() {
		t.Error("got no certificate after a restart, want the stored one")
	}
	for name, text := range map[string]string{"of another host": "", "damaged": "x"} {
		key, chain := signed(t, "other.example", time.Now(), time.Now().Add(time.Hour))
		if text == "" {
			text = string(key) + string(pemOf(chain))
		}
		expect.OK(t, os.WriteFile(m.stored.file(certificateFile), []byte(text), 0o600))
		if m, _ = open(t, dir); !m.State().Expires.IsZero() {
			t.Errorf("got a certificate %s, want none", name)
		}
	}
}

// TestNoWrongCertificateIsStored tries to store certificates that clients would refuse. Each must be an error.
func TestNoWrongCertificateIsStored(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		host     string
		from, to time.Time
	}{
		"of another key":  {host, now, now.Add(time.Hour)},
		"of another host": {"other.example", now, now.Add(time.Hour)},
		"expired":         {host, now.Add(-2 * time.Hour), now.Add(-time.Hour)},
		"of next year":    {host, now.Add(365 * 24 * time.Hour), now.Add(400 * 24 * time.Hour)},
	} {
		m, _ := open(t, t.TempDir())
		key, chain := signed(t, c.host, c.from, c.to)
		if name == "of another key" {
			key, _ = signed(t, c.host, c.from, c.to)
		}
		expect.FailsOf(t, "%s", name)(m.stored.keep(key, chain, host))
		if _, err := os.Stat(m.stored.file(certificateFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got a file, %v, want none", name, err)
		}
	}
}

// TestPlainHTTPDoesLittle sends many kinds of requests over plain HTTP. Only a challenge of the authority may be
// answered. Other reads must be redirected to HTTPS, and writes must be refused.
func TestPlainHTTPDoesLittle(t *testing.T) {
	m, _ := open(t, t.TempDir())
	m.answers.Store(challenges+"known", "known.thumb")
	handler := m.Plain("https://registry.example:8443")
	for _, c := range []struct {
		method, target string
		status         int
		want           string // content of the body or of Location
	}{
		{"GET", challenges + "known", 200, "known.thumb"},
		{"GET", challenges + "other", 404, "challenge"},
		{"GET", challenges + "../../account.key", 404, "challenge"},
		{"POST", challenges + "known", 404, "challenge"},
		{"GET", "/api/2.5/assets?offset=1&x=%0d%0a", 301, "https://registry.example:8443/api/2.5/assets?offset=1&x=%0d%0a"},
		{"HEAD", "/", 301, "https://registry.example:8443/"},
		{"GET", "http://evil.example/a", 301, "https://registry.example:8443/a"},
		{"GET", "//evil.example/a", 301, "https://registry.example:8443//evil.example/a"},
		{"GET", "evil.example:80", 301, "https://registry.example:8443/"},
		{"POST", "/api/2.5/assets", 403, "https://registry.example:8443"},
		{"DELETE", "/api/2.5/assets/1", 403, "rotated"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, "/", neverRead{t})
		var err error
		if r.URL, err = url.ParseRequestURI(c.target); err != nil { // parses the target as net/http does
			t.Fatal(err)
		}
		handler.ServeHTTP(w, r)
		if got := w.Header().Get("Location") + w.Body.String(); w.Code != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %d %s, want %d %s", c.method, c.target, w.Code, got, c.status, c.want)
		}
	}
}

// neverRead is a body that fails the test if somebody reads it.
type neverRead struct{ t *testing.T }

func (n neverRead) Read([]byte) (int, error) {
	n.t.Error("the body was read")
	return 0, io.EOF
}

func TestFaultySettingsAreNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	expect.OK(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct {
		a    Authority
		says string
	}{
		{Authority{Directory: "http://acme.example/directory"}, "--acme-directory"},
		{Authority{Directory: "https://"}, "--acme-directory"},
		{Authority{Roots: empty}, "--acme-roots"},
		{Authority{Roots: empty + "x"}, "--acme-roots"},
	} {
		expect.Says(t, c.a.Validate(), c.says, "%+v", c.a)
	}
	for _, base := range []string{"", "http://registry.example", "registry.example", "https://", "https://203.0.113.1"} {
		if got, err := Host(base); err == nil {
			t.Errorf("%q: got the host %q, want an error", base, got)
		}
	}
}
