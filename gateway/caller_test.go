package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/httpserver"
)

// TestServicesLearnWhoseWorkItIs sends requests of several callers, through gateways in one process with the service
// and apart from it. The service must get the same name for the same caller, whoever claims another one, and no name
// may have an address.
// Promises: fair-callers
func TestServicesLearnWhoseWorkItIs(t *testing.T) {
	var name string
	service := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			name = strings.Join(r.Header[httpserver.CallerHeader], ",")
		}
		assets(w, r)
	}
	gateways := []*Server{
		start(t, func(c *Config) { c.Assets = http.HandlerFunc(service) }),
		startOnWire(t, http.HandlerFunc(service), http.HandlerFunc(known), nil),
	}
	callers := []struct {
		peer, key string
		as        string // requests with the same text have the same name, and others have other names
	}{
		{"192.0.2.1:1000", "", "192.0.2.1"},
		{"192.0.2.1:2000", "", "192.0.2.1"},
		{"192.0.2.2:1000", "", "192.0.2.2"},
		{"[2001:db8:1:2::3]:1000", "", "the /64"},
		{"[2001:db8:1:2:ffff::4]:1000", "", "the /64"},
		{"[2001:db8:1:3::3]:1000", "", "another /64"},
		{"192.0.2.1:1000", "key", "the key"},
		{"192.0.2.2:1000", "key", "the key"},
		{"192.0.2.1:1000", "wrong", "192.0.2.1"},
		{"", "", "a service of this process"},
	}
	names, owners := map[string]string{}, map[string]string{}
	for _, s := range gateways {
		for _, c := range callers {
			for _, path := range []string{"/api/2.5/assets", "/api/2.5/assets/there/documents", "/log/checkpoint"} {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.RemoteAddr = c.peer
				r.Header.Set(httpserver.CallerHeader, "claimed")
				if c.key != "" {
					r.SetBasicAuth(c.key, "")
				}
				name = "none"
				s.Handler().ServeHTTP(httptest.NewRecorder(), r)
				if (name == "claimed") != (c.peer == "") || name == "" || name == "none" || strings.Contains(name, "192.0.2") {
					t.Errorf("%s of %+v: got the name %q, want a name that the gateway gives", path, c, name)
				}
				if known := names[c.as]; known != "" && known != name || owners[name] != "" && owners[name] != c.as {
					t.Errorf("%s of %+v: got the name %q of %q, want %q", path, c, name, owners[name], known)
				}
				names[c.as], owners[name] = name, c.as
			}
		}
	}
}
