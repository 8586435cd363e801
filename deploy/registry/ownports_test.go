package registry

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

type listenerAt struct {
	net.Listener
	addr string
}

func (l listenerAt) Addr() net.Addr { at, _ := net.ResolveTCPAddr("tcp", l.addr); return at }

// TestASandboxOnThisMachineHasOwnPorts: only a sandbox that no other machine reaches may send webhooks to its machine.
func TestASandboxOnThisMachineHasOwnPorts(t *testing.T) {
	const public = "127.0.0.1:8080"
	for _, c := range []struct {
		name, public, admin, metrics, base string
		sandbox                            bool
		want                               []uint16
	}{
		{"one listener", public, "", "", "", true, []uint16{8080}},
		{"three listeners", "[::1]:8080", "127.0.0.1:8079", "127.0.0.2:9464", "", true, []uint16{8080, 8079, 9464}},
		{"no sandbox", public, "", "", "", false, nil},
		{"behind a proxy", public, "", "", "https://registry.example", true, nil},
		{"all addresses", "0.0.0.0:8080", "", "", "", true, nil},
		{"another machine reaches it", "192.0.2.1:8080", "", "", "", true, nil},
		{"another machine reaches the console", public, "0.0.0.0:8079", "", "", true, nil},
		{"another machine reaches the metrics", public, "", ":9464", "", true, nil},
		{"a port that is not known", public, "", "127.0.0.1:0", "", true, nil},
	} {
		config := Config{Sandbox: c.sandbox, BaseURL: c.base}
		config.MetricsAddr = c.metrics
		on := listeners{public: listenerAt{addr: c.public}}
		if c.admin != "" {
			on.admin = listenerAt{addr: c.admin}
		}
		expect.NoDiff(t, cmp.Diff(c.want, config.ownPorts(on)), "%s", c.name)
	}
}
