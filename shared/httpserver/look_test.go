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
		proxied    bool
		fault      string // in the error; "": none
		warns      bool
	}{
		{"good", host, -hour, hour, "https://registry.example:8443/x", false, "", false},
		{"a pattern", "*.example", -hour, hour, "https://registry.example", false, "", false},
		{"without a base URL", "other.example", -hour, hour, "", false, "", false},
		{"expired", host, -2 * hour, -hour, "https://registry.example", false, "has expired", false},
		{"expired behind a proxy", host, -2 * hour, -hour, "https://registry.example", true, "has expired", false},
		{"not yet valid", host, hour, 2 * hour, "https://registry.example", false, "is not valid before", false},
		{"not yet valid, without a base URL", host, hour, 2 * hour, "", false, "is not valid before", false},
		{"plain HTTP", host, -hour, hour, "http://registry.example", false, "begins with http://", false},
		{"plain HTTP behind a proxy", host, -hour, hour, "HTTP://registry.example", true, "begins with http://", false},
		{"another host", "other.example", -hour, hour, "https://registry.example", false, "does not fit", false},
		{"another host behind a proxy", "other.example", -hour, hour, "https://registry.example", true, "", true},
		{"an address", host, -hour, hour, "https://203.0.113.1", false, "does not fit", false},
	} {
		files, _ := certifyAs(t, t.TempDir(), templateOf(c.host, c.from, c.to))
		files.BaseURL, files.Proxied = c.base, c.proxied
		var printed, logged bytes.Buffer
		err := files.Check(&printed)
		if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: got the fault %v, want %q", c.name, err, c.fault)
		}
		if got := printed.String(); (got != "") != c.warns {
			t.Errorf("%s: got the warning %q, want one: %t", c.name, got, c.warns)
		}
		expect.ErrOf(t, nil, "%s: a start", c.name)(files.Config(slog.New(slog.NewTextHandler(&logged, nil))))
		if got := logged.String(); strings.Contains(got, "WARN") != (c.warns || c.fault != "") || !strings.Contains(got, c.fault) {
			t.Errorf("%s: a start: got the log %q, want a warning with %q: %t", c.name, got, c.fault, c.warns)
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
