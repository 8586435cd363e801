package redisclient

import (
	"strings"
	"testing"
	"time"

	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

func TestEachSchemeIsAnAddress(t *testing.T) {
	for _, scheme := range Schemes() {
		address := scheme + "127.0.0.1:1/0"
		for name, check := range map[string]func(string) error{"Check": Check, "CheckServer": CheckServer} {
			expect.Err(t, check(address), nil, "%s(%s)", name, address)
		}
	}
}

func TestAMalformedAddressIsNotQuoted(t *testing.T) {
	for _, address := range []string{
		"redis://:hunter2@a:x", "redis://:hunter2@a/b", "hunter2", "redis:hunter2",
		"rediss:hunter2", "redis://:hunter2@a?addr=b:1&pool_size=x",
		"redis+sentinel://:hunter2@a", "rediss+sentinel://:hunter2@a/m?db=x",
	} {
		if err := Check(address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the password", address, err)
		}
	}
	expect.Err(t, CheckServer("redis://:hunter2@a?addr=b:1"), ErrMalformed, "a cluster where one server is wanted")
}

func TestAClientReachesItsServer(t *testing.T) {
	server := redistest.Start(t)
	client, err := Open(server.URL(), Timeouts{Dial: 5 * time.Second, Call: 5 * time.Second, Pool: 5 * time.Second})
	expect.OK(t, err)
	defer client.Close()
	expect.Err(t, client.Ping(t.Context()).Err(), nil, "ping")
}
