package httpserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/shared/metrictest"
	"asset-registry/shared/testing/expect"
)

// certify writes a certificate for 127.0.0.1 with a serial number. It returns the
// files, and a pool that trusts the certificate.
func certify(t testing.TB, dir string, number int64) (Certificate, *x509.CertPool) {
	t.Helper()
	return certifyAs(t, dir, &x509.Certificate{
		SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	})
}

// certifyAs does the same as certify, with a template.
func certifyAs(t testing.TB, dir string, template *x509.Certificate) (Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.OK(t, err)
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	expect.OK(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	expect.OK(t, err)
	c := Certificate{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for _, f := range []struct {
		name  string
		block pem.Block
	}{
		{c.Cert, pem.Block{Type: "CERTIFICATE", Bytes: signed}},
		{c.Key, pem.Block{Type: "PRIVATE KEY", Bytes: private}},
	} {
		expect.OK(t, os.WriteFile(f.name, pem.EncodeToMemory(&f.block), 0o600))
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(signed)
	expect.OK(t, err)
	pool.AddCert(parsed)
	return c, pool
}

// withTLS returns a server's TLS configuration, and the pool for its clients.
func withTLS(t testing.TB) (*tls.Config, *x509.CertPool) {
	t.Helper()
	c, pool := certify(t, t.TempDir(), 1)
	config, err := c.Config(slog.New(slog.DiscardHandler))
	expect.OK(t, err)
	return config, pool
}

func TestACertificateIsReadAnew(t *testing.T) {
	dir := t.TempDir()
	c, pool := certify(t, dir, 1)
	secure, err := c.Config(slog.New(slog.DiscardHandler))
	expect.OK(t, err)
	addr, _ := serveFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.ErrorIf(t, r.TLS == nil || !r.TLS.HandshakeComplete, "got no TLS state in the request, want it")
		io.WriteString(w, r.Proto)
	}), ServeOptions{TLS: secure}, defaultTimeouts)
	ask := func(pool *x509.CertPool) (string, error) {
		client := http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true,
		}}
		defer client.CloseIdleConnections()
		resp, err := client.Get("https://" + addr)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return fmt.Sprintf("%s, certificate %d", text, resp.TLS.PeerCertificates[0].SerialNumber), err
	}
	if got, err := ask(pool); err != nil || got != "HTTP/2.0, certificate 1" {
		t.Fatalf("got %q, %v; want HTTP/2.0 with certificate 1", got, err)
	}
	expect.OK(t, os.WriteFile(c.Cert, []byte("broken"), 0o600))
	time.Sleep(checkFilesEvery)
	if got, err := ask(pool); err != nil || got != "HTTP/2.0, certificate 1" {
		t.Fatalf("with a broken file: got %q, %v; want HTTP/2.0 with certificate 1", got, err)
	}
	_, pool = certify(t, dir, 2)
	for {
		if got, err := ask(pool); err == nil && got == "HTTP/2.0, certificate 2" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	old := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}} // no HTTP/2
	defer old.CloseIdleConnections()
	resp, err := old.Get("https://" + addr)
	expect.OK(t, err)
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "HTTP/1.1" {
		t.Errorf("without HTTP/2: got %s, %v; want HTTP/1.1", text, err)
	}
	for _, wrong := range []Certificate{{Cert: c.Cert}, {Key: c.Key}, {Cert: "nowhere", Key: "nowhere"}} {
		expect.FailsOf(t, "%+v", wrong)(wrong.Config(slog.New(slog.DiscardHandler)))
	}
}

// TestOldVersionsOfTLSAreRefused connects once with each version of TLS.
func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	config, pool := withTLS(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	expect.OK(t, err)
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_ = connection.(*tls.Conn).Handshake() // the client sees an error
			_ = connection.Close()
		}
	}()
	for version, want := range map[uint16]bool{
		tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true,
	} {
		connection, err := tls.Dial("tcp", listener.Addr().String(),
			&tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: got %v, want a connection: %t", tls.VersionName(version), err, want)
		}
		if err == nil {
			_ = connection.Close()
		}
	}
}

func TestTheEndOfACertificateIsTold(t *testing.T) {
	dir, meter := t.TempDir(), metrictest.New()
	c, _ := certify(t, dir, 1)
	secure, err := c.Config(slog.New(slog.DiscardHandler))
	expect.OK(t, err)
	MeasureCertificate(meter, nil)
	MeasureCertificate(meter, secure)
	got := time.Unix(int64(meter.Read(t)["registry.tls.expires.timestamp"]), 0)
	if left := time.Until(got); left < 50*time.Minute || left > time.Hour {
		t.Errorf("got a certificate that expires in %v, want an hour", left)
	}
}
