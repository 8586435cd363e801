package registry

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"asset-registry/deploy/registry/certificate"
	"asset-registry/shared/closing"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/testing/expect"
)

// TestPlainHTTPWithACertificateOfOnesOwn listens for plain HTTP only where the operator names an address. A port that is
// taken is no reason to stop.
func TestPlainHTTPWithACertificateOfOnesOwn(t *testing.T) {
	taken := expect.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	for _, c := range []struct {
		addr           string
		listens, warns bool
	}{
		{"", false, false}, {"127.0.0.1:0", true, false}, {taken.Addr().String(), false, true},
	} {
		config := Config{Addr: "127.0.0.1:0", BaseURL: "https://registry.example", PlainAddr: c.addr}
		config.Authority.Addr = taken.Addr().String() // the address of ACME is not used
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logged, nil))
		on, err := config.listen(log)
		if err != nil || (on.plain != nil) != c.listens || strings.Contains(logged.String(), "WARN") != c.warns {
			t.Fatalf("%q: got %v, a listener: %t, log %q; want a listener: %t", c.addr, err, on.plain != nil, &logged, c.listens)
		}
		defer on.close()
		if !c.listens {
			continue
		}
		var opened closing.List
		config.servePlain(t.Context(), on.plain, new(certificate.Manager), log, &opened)
		ask := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+on.plain.Addr().String()+"/a?b", nil))(t)
		resp := expect.Get(http.DefaultTransport.RoundTrip(ask))(t)
		resp.Body.Close()
		if got := resp.Header.Get("Location"); resp.StatusCode != 301 || got != "https://registry.example/a?b" {
			t.Errorf("got %d to %q, want 301 to the base URL", resp.StatusCode, got)
		}
		expect.Try(t, opened.Close())
	}
	for _, c := range []struct {
		config Config
		fault  bool
	}{
		{Config{PlainAddr: ":80", BaseURL: "https://registry.example"}, true},
		{Config{PlainAddr: ":80", TLS: httpserver.Certificate{Cert: "a", Key: "b"}}, true},
		{Config{PlainAddr: ":80", TLS: httpserver.Certificate{Cert: "a", Key: "b"}, BaseURL: "http://registry.example"}, true},
		{Config{PlainAddr: ":80", TLS: httpserver.Certificate{Cert: "a", Key: "b"}, BaseURL: "https://registry.example"}, false},
		{Config{PlainAddr: ":80", ACME: true, BaseURL: "https://registry.example"}, true},
	} {
		err := c.config.validate(slog.New(slog.DiscardHandler))
		if got := strings.Contains(err.Error(), "plain-addr"); got != c.fault {
			t.Errorf("%+v: got %v, want a fault of --plain-addr: %t", c.config.TLS, err, c.fault)
		}
	}
}
