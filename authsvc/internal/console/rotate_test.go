package console

import (
	"bytes"
	"testing"
	"time"

	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

func TestASessionOutlivesItsSecret(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	with := func(secrets ...[]byte) *sealer {
		t.Helper()
		s, err := newSealer(keyring.Ring(secrets))
		expect.OK(t, err)
		return s
	}
	want := session{Hash: "hash", Begun: time.Unix(1, 0).UTC(), Used: time.Unix(2, 0).UTC()}
	text, err := with(a).close(want, sessionPurpose)
	expect.OK(t, err)
	for name, s := range map[string]*sealer{"secrets a, b": with(a, b), "secrets b, a": with(b, a)} {
		if got, ok := open[session](s, text, sessionPurpose); !ok || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, ok, want)
		}
	}
	if got, ok := open[session](with(b), text, sessionPurpose); ok {
		t.Errorf("secret b alone: got %+v, want no session", got)
	}
	if got, ok := open[session](with(a), text, ticketPurpose); ok {
		t.Errorf("another purpose: got %+v, want no session", got)
	}
}
