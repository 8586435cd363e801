package httpserver

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// templateOf returns a template of a certificate that is valid from and to these times from now.
func templateOf(host string, from, to time.Duration) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
		DNSNames: []string{host}}
}

// TestACertificateOfOnesOwnIsLookedAt compares certificates with the clock and with the base URL. A start must work
// nevertheless, and warn of the same.
func TestACertificateOfOnesOwnIsLookedAt(t *testing.T) {
	const host, hour = "registry.example", time.Hour
	for _, c := range []struct {
		name, host string
		from, to   time.Duration
		base       string
		says       string // in the warning; "": none
	}{
		{"good", host, -hour, hour, "https://registry.example:8443/x", ""},
		{"a pattern", "*.example", -hour, hour, "https://registry.example", ""},
		{"without a base URL", "other.example", -hour, hour, "", ""},
		{"expired", host, -2 * hour, -hour, "https://registry.example", "has expired"},
		{"not yet valid", host, hour, 2 * hour, "https://registry.example", "is not valid before"},
		{"not yet valid, without a base URL", host, hour, 2 * hour, "", "is not valid before"},
		{"plain HTTP", host, -hour, hour, "http://registry.example", "begins with http://"},
		{"plain HTTP in capitals", host, -hour, hour, "HTTP://registry.example", "begins with http://"},
		{"another host", "other.example", -hour, hour, "https://registry.example", "does not fit"},
		{"an address", host, -hour, hour, "https://203.0.113.1", "does not fit"},
	} {
		files, _ := certifyAs(t, t.TempDir(), templateOf(c.host, c.from, c.to))
		files.BaseURL = c.base
		var printed, logged bytes.Buffer
		err := files.Check(&printed)
		if got := printed.String(); err != nil || (got != "") != (c.says != "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: got %v and the warning %q, want no error and %q", c.name, err, got, c.says)
		}
		expect.ErrOf(t, nil, "%s: a start", c.name)(files.Config(slog.New(slog.NewTextHandler(&logged, nil))))
		if got := logged.String(); strings.Contains(got, "WARN") != (c.says != "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: a start: got the log %q, want a warning with %q", c.name, got, c.says)
		}
	}
}

// TestAWorseCertificateReplacesNone changes the files of a certificate. A certificate that is good stays until the
// files have another good one.
func TestAWorseCertificateReplacesNone(t *testing.T) { synctest.Test(t, replacements) }

func replacements(t *testing.T) {
	const host, hour = "registry.example", time.Hour
	good, short := templateOf(host, -hour, 9*hour), templateOf(host, -hour, hour)
	expired, early := templateOf(host, -2*hour, -hour), templateOf(host, hour, 2*hour)
	other := templateOf("other.example", -hour, 9*hour)
	for _, c := range []struct {
		name          string
		first, second *x509.Certificate
		base          string
		replaced      bool
	}{
		{"good by good", good, good, "https://" + host, true},
		{"good by one that ends earlier", good, short, "https://" + host, true},
		{"good by expired", good, expired, "https://" + host, false},
		{"good by one that is not yet valid", good, early, "https://" + host, false},
		{"good by one of another host", good, other, "https://" + host, false},
		{"good by another host without a base URL", good, other, "", true},
		{"good by expired without a base URL", good, expired, "", false},
		{"expired by good", expired, good, "https://" + host, true},
		{"expired by expired", expired, expired, "https://" + host, true},
		{"another host by another", other, other, "https://" + host, true},
	} {
		dir := t.TempDir()
		files, _ := certifyAs(t, dir, c.first)
		files.BaseURL = c.base
		var logged bytes.Buffer
		secure, err := files.Config(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelInfo})))
		expect.OK(t, err)
		before, err := secure.GetCertificate(nil)
		expect.OK(t, err)
		logged.Reset()
		certifyAs(t, dir, c.second)
		later := time.Now().Add(time.Minute)
		expect.OK(t, os.Chtimes(files.Cert, later, later))
		time.Sleep(checkFilesEvery) // the least time between two looks
		now, err := secure.GetCertificate(nil)
		if err != nil || (now != before) != c.replaced || strings.Contains(logged.String(), "ERROR") == c.replaced {
			t.Errorf("%s: got replaced: %t, %v, log %q; want replaced: %t", c.name, now != before, err, logged.String(), c.replaced)
		}
	}
}
