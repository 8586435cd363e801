package httpserver

import (
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestOwnURL(t *testing.T) {
	secure := Certificate{Cert: "x"}
	for _, c := range []struct{ scheme, addr, want string }{
		{Certificate{}.Scheme(), "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{secure.Scheme(), "10.0.0.1:8443", "https://10.0.0.1:8443"},
		{"http", "0.0.0.0:80", "http://127.0.0.1:80"},
		{"http", "[::]:80", "http://127.0.0.1:80"},
		{"http", ":80", "http://127.0.0.1:80"},
		{"http", "[::1]:80", "http://[::1]:80"},
		{"http", "localhost:80", "http://localhost:80"},
		{"http", "[fe80::1%eth0]:80", ""},
		{"http", "/run/socket", ""},
	} {
		expect.Equal(t, OwnURL(c.scheme, c.addr), c.want, "%s at %s", c.scheme, c.addr)
	}
}
