package identity

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/keyring"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newSigner(t *testing.T, secret byte, now time.Time) *Signer {
	t.Helper()
	signer, err := NewSigner(keyring.Ring{bytes.Repeat([]byte{secret}, MinSecret)}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestSignedIdentityArrivesAsItWasSent(t *testing.T) {
	for name, want := range map[string]Identity{
		"the public": {},
		"a broker":   {Broker: "брокер", KeyID: "k1", Role: Broker, Levels: "1234t"},
		"a service":  {Broker: "assetsvc", Role: Service},
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := newSigner(t, 'a', start).Sign(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := newSigner(t, 'a', start.Add(time.Minute)).Verify(signed)
			if err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	signed, err := newSigner(t, 'a', start).Sign(Identity{Broker: "broker", Role: Broker})
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(signed, ".")
	for _, c := range []struct {
		name   string
		signed string
		secret byte
		now    time.Time
	}{
		{"nothing", "", 'a', start},
		{"rubbish", "x.y.z", 'a', start},
		{"another secret", signed, 'b', start},
		{"an old identity", signed, 'a', start.Add(time.Hour)},
		{"no signature", parts[0] + "." + parts[1] + ".", 'a', start},
		{"the algorithm none", "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + ".", 'a', start},
		{"a cut signature", signed[:len(signed)-4], 'a', start},
		{"exchanged contents", parts[0] + ".eyJzdWIiOiJvdGhlciJ9." + parts[2], 'a', start},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := newSigner(t, c.secret, c.now).Verify(c.signed)
			if !errors.Is(err, ErrUnsigned) || got != (Identity{}) {
				t.Errorf("got %+v, %v; want ErrUnsigned", got, err)
			}
		})
	}
}

func TestWhatIsRememberedRunsOut(t *testing.T) {
	now := start
	signer, err := NewSigner(keyring.Ring{bytes.Repeat([]byte{'a'}, MinSecret)}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	sign := func() string {
		signed, err := signer.Sign(Identity{Broker: "broker", Role: Broker})
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	first := sign()
	for elapsed, good := range map[time.Duration]bool{0: true, lifetime - time.Second: true, lifetime + time.Second: false} {
		now = start.Add(elapsed)
		if _, err := signer.Verify(first); (err == nil) != good {
			t.Errorf("after %v: %v", elapsed, err)
		}
	}
	now = start.Add(reuse - time.Second)
	if sign() != first {
		t.Error("a fresh signature is not used again")
	}
	now = start.Add(reuse + time.Second)
	if sign() == first {
		t.Error("an old signature is used again")
	}
}

func TestNewSignerRefusesAShortSecret(t *testing.T) {
	if _, err := NewSigner(keyring.Ring{make([]byte, MinSecret-1)}, time.Now); err == nil {
		t.Error("a secret that is too short was taken")
	}
}

func TestPermits(t *testing.T) {
	for levels, want := range map[string]bool{"1234": true, "3": true, "0": true, "3t": true, "12": false, "": false, "t": false} {
		if got := (Identity{Levels: levels}).Permits('3'); got != want {
			t.Errorf("levels %q permit 3: got %v, want %v", levels, got, want)
		}
	}
}

func TestIdentitiesHoldThroughARotation(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), MinSecret), bytes.Repeat([]byte("b"), MinSecret)
	with := func(secrets ...[]byte) *Signer {
		t.Helper()
		signer, err := NewSigner(secrets, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return signer
	}
	who := Identity{Broker: "b", KeyID: "k", Role: Broker}
	steps := [][]*Signer{{with(a), with(a, b)}, {with(a, b), with(b, a)}, {with(b, a), with(b)}} // the services amid each rolling restart
	for i, step := range steps {
		for from := range step {
			signed, err := step[from].Sign(who)
			if err != nil {
				t.Fatal(err)
			}
			for to := range step {
				if got, err := step[to].Verify(signed); err != nil || got != who {
					t.Errorf("restart %d, from %d to %d: got %+v, %v; want %+v", i+1, from, to, got, err, who)
				}
			}
		}
	}
	signed, err := with(a, b).Sign(who)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := with(b).Verify(signed); err == nil {
		t.Errorf("signed with a secret that is gone: got %+v, want ErrUnsigned", got)
	}
}
