package main

import (
	"net"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestAnAddressMayBeANetwork(t *testing.T) {
	l, err := listen("127.0.0.0/8:0")
	expect.OK(t, err)
	defer l.Close()
	host, _, err := net.SplitHostPort(l.Addr().String())
	expect.ErrorIf(t, err != nil || host != "127.0.0.1", "got host %q, %v; want 127.0.0.1", host, err)
}

func TestAnAddressMayBeAHost(t *testing.T) {
	l, err := listen("127.0.0.1:0")
	expect.OK(t, err)
	l.Close()
}

func TestANetworkWithoutThisMachineIsAnError(t *testing.T) {
	l, err := listen("203.0.113.0/24:0") // a network reserved for documentation
	if err == nil {
		l.Close()
		t.Fatal("got a listener in a network without this machine, want an error")
	}
	if want := "no address in 203.0.113.0/24"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want %q in it", err, want)
	}
}
