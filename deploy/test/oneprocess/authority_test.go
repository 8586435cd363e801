package oneprocess

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// authority runs pebble, an ACME certificate authority that others wrote.
type authority struct {
	program, dir     string
	listens, manages string
	roots            string // file with the certificate that the authority's ACME directory uses
	trusting         *http.Client
	process          *processes.Process
	output           *processes.Output
}

// newAuthority creates an authority whose certificates are valid for the given number of seconds. To check who owns
// a host, it connects to 127.0.0.1 at the port of the address in the parameter `plain`.
func newAuthority(t *testing.T, plain string, seconds int) *authority {
	t.Helper()
	a := &authority{program: needtest.Tool(t, "pebble"), dir: t.TempDir(), listens: freeAddr(t), manages: freeAddr(t),
		output: &processes.Output{}}
	a.certify(t)
	_, port, _ := net.SplitHostPort(plain)
	number := expect.Get(strconv.Atoi(port))(t)
	settings := expect.Get(json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": a.listens, "managementListenAddress": a.manages,
		"certificate": filepath.Join(a.dir, "cert.pem"), "privateKey": filepath.Join(a.dir, "key.pem"),
		"httpPort": number, "tlsPort": 1, "keyAlgorithm": "ecdsa",
		"profiles": map[string]any{"default": map[string]any{"description": "-", "validityPeriod": seconds}},
	}}))(t)
	expect.OK(t, os.WriteFile(filepath.Join(a.dir, "settings.json"), settings, 0o600))
	return a
}

// start starts the authority. Like a real authority, it rejects some correct requests.
func (a *authority) start(t *testing.T) {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	a.process = start(t, a.listens, a.output, a.program, "-config", filepath.Join(a.dir, "settings.json"),
		"-dnsserver", serveNames(t), "-strict")
}

// root returns a pool with the authority's root certificate.
func (a *authority) root(t *testing.T) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	soon(t, "the authority tells its root", func() bool {
		_, text := get(t, a.trusting, "https://"+a.manages+"/roots/0")
		return pool.AppendCertsFromPEM([]byte(text))
	})
	return pool
}

// certify creates the certificate for the authority's own addresses.
func (a *authority) certify(t *testing.T) {
	t.Helper()
	key := expect.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	signed := expect.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	private := expect.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	a.roots = filepath.Join(a.dir, "cert.pem")
	for file, block := range map[string]*pem.Block{
		a.roots: {Type: "CERTIFICATE", Bytes: signed}, filepath.Join(a.dir, "key.pem"): {Type: "PRIVATE KEY", Bytes: private},
	} {
		expect.OK(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	a.trusting = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(a.trusting.CloseIdleConnections)
}

// serveNames starts a DNS server on TCP, which runs until the test ends. It answers that every name has the address
// 127.0.0.1.
func serveNames(t *testing.T) (addr string) {
	t.Helper()
	listener := expect.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerNames(conn)
		}
	}()
	return listener.Addr().String()
}

// answerNames answers the DNS queries on one connection. Each message is preceded by its length.
func answerNames(conn net.Conn) {
	defer conn.Close()
	for {
		var size uint16
		if binary.Read(conn, binary.BigEndian, &size) != nil {
			return
		}
		question := make([]byte, size)
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		answer, ok := nameAnswer(question)
		if !ok {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func nameAnswer(question []byte) (answer []byte, ok bool) {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil, false
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	answer, err := m.Pack()
	return answer, err == nil
}

// clientOf returns a client for registry.example at addr, and a function that returns the serial number of the
// certificate there. The function returns "" if there is no certificate, or if the pool does not trust it.
func clientOf(t *testing.T, addr string, pool *x509.CertPool) (client *http.Client, serial func() string) {
	t.Helper()
	trust := &tls.Config{RootCAs: pool, ServerName: host}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: trust, DialContext: dial, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(client.CloseIdleConnections)
	return client, func() string {
		conn, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			return ""
		}
		defer conn.Close()
		leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
		if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != host {
			t.Errorf("got a certificate of %q, want one of %s alone", leaf.DNSNames, host)
		}
		return leaf.SerialNumber.String()
	}
}
