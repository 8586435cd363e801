package assetsvc

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/lease"
)

var testSecrets = keyring.Ring{bytes.Repeat([]byte{'s'}, keyring.MinLength)}

// startOnFile starts a service on a file, which the caller closes.
func startOnFile(t *testing.T, path string, leases bool) (*Server, error) {
	t.Helper()
	return New(t.Context(), Config{
		Store: "file:" + path, AuthURLs: []string{"http://127.0.0.1:1"}, Secrets: testSecrets, Leases: leases,
		Log: slog.New(slog.DiscardHandler),
	})
}

// noMemory is a memory without answers.
type noMemory struct{}

func (noMemory) Change([]string) (done func()) { return func() {} }
func (noMemory) Forget()                       {}

func TestOnlyServicesGetLeases(t *testing.T) {
	s, err := startOnFile(t, filepath.Join(t.TempDir(), "assets.db"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	signer, err := identity.NewSigner(testSecrets, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		role    identity.Role
		signed  bool
		upgrade string
		want    int
	}{
		{"no identity", "", false, lease.Protocol, 401},
		{"an anonymous caller", identity.Anonymous, true, lease.Protocol, 403},
		{"a broker", identity.Broker, true, lease.Protocol, 403},
		{"a service without the protocol", identity.Service, true, "", 400},
		{"a service with another protocol", identity.Service, true, "websocket", 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+lease.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Upgrade", c.upgrade)
		r.Header.Set("Connection", "Upgrade")
		if c.signed {
			text, err := signer.Sign(identity.Identity{Broker: "x", Role: c.role})
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set(identity.Header, text)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d", c.name, resp.StatusCode, c.want)
		}
	}
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := lease.Ask(t.Context(), conn, "a", signer)
	if err != nil {
		t.Fatalf("a gateway: got %v, want a connection", err)
	}
	holder := lease.NewHolder(noMemory{})
	ctx, stop := context.WithCancel(t.Context())
	followed := make(chan error)
	go func() { followed <- holder.Follow(ctx, conn, r) }()
	for end := time.Now().Add(20 * time.Second); !holder.Valid(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("got no lease within 20 s, want one")
		}
	}
	stop()
	<-followed
}

// TestAMarkerSaysThatLeasesMayBeHeld looks at the file beside the assets.
func TestAMarkerSaysThatLeasesMayBeHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assets.db")
	exists := func() bool {
		_, err := os.Stat(path + ".leases")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, c := range []struct {
		name         string
		left, leases bool // the marker of a killed service; Config.Leases
		want         bool // a marker while the service runs
	}{
		{"without leases", false, false, false},
		{"with leases", false, true, true},
		{"after a kill, without leases", true, false, true},
	} {
		if c.left {
			if err := os.WriteFile(path+".leases", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := startOnFile(t, path, c.leases)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := exists(); got != c.want || (s.leases != nil) != c.want {
			t.Errorf("%s: got marker %t and leases %t, want %t", c.name, got, s.leases != nil, c.want)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", c.name, err)
		}
		if exists() {
			t.Errorf("%s: got a marker after the end, want none", c.name)
		}
	}
	running, err := startOnFile(t, path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	if s, err := startOnFile(t, path, true); err == nil {
		t.Errorf("got a second service on one file, want an error: %v", s.Close())
	}
	if !exists() {
		t.Error("a second service that could not start has removed the marker of the first")
	}
}
