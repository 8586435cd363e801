package redisclient

import (
	"errors"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/redistest"
)

func TestEachSchemeIsAnAddress(t *testing.T) {
	for _, scheme := range Schemes() {
		address := scheme + "127.0.0.1:1/0"
		for name, check := range map[string]func(string) error{"Check": Check, "CheckServer": CheckServer} {
			if err := check(address); err != nil {
				t.Errorf("%s(%s): got %v, want no error", name, address, err)
			}
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
	if err := CheckServer("redis://:hunter2@a?addr=b:1"); !errors.Is(err, ErrMalformed) {
		t.Errorf("a cluster where one server is wanted: got %v, want %v", err, ErrMalformed)
	}
}

func TestAClientReachesItsServer(t *testing.T) {
	server := redistest.Start(t)
	client, err := Open(server.URL(), Timeouts{Dial: 5 * time.Second, Call: 5 * time.Second, Pool: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping: got %v, want no error", err)
	}
}
