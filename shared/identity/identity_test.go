package identity

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newSigner(t *testing.T, secret byte, now time.Time) *Signer {
	t.Helper()
	signer, err := NewSigner(keyring.Ring{bytes.Repeat([]byte{secret}, MinSecret)}, func() time.Time { return now })
	expect.OK(t, err)
	return signer
}

func TestSignedIdentityArrivesAsItWasSent(t *testing.T) {
	for _, c := range []struct {
		name string
		want Identity
	}{
		{"an anonymous caller", Identity{}},
		{"a broker", Identity{Broker: "брокер", KeyID: "k1", Role: Broker, Levels: "1234t"}},
		{"a service", Identity{Broker: "assetsvc", Role: Service}},
	} {
		t.Run(c.name, func(t *testing.T) {
			signed, err := newSigner(t, 'a', start).Sign(c.want)
			expect.OK(t, err)
			// The clocks are two minutes apart, the token is used again, and the request takes half a minute.
			got, err := newSigner(t, 'a', start.Add(2*time.Minute+reuse+29*time.Second)).Verify(signed)
			expect.OK(t, err)
			expect.NoDiff(t, cmp.Diff(c.want, got), "the identity")
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	signed, err := newSigner(t, 'a', start).Sign(Identity{Broker: "broker", Role: Broker})
	expect.OK(t, err)
	parts := strings.Split(signed, ".")
	for _, c := range []struct {
		name, signed string
		secret       byte
		now          time.Time
	}{
		{"an empty token", "", 'a', start},
		{"a malformed token", "x.y.z", 'a', start},
		{"another secret", signed, 'b', start},
		{"an expired identity", signed, 'a', start.Add(time.Hour)},
		{"no signature", parts[0] + "." + parts[1] + ".", 'a', start},
		{"the algorithm none", "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + ".", 'a', start},
		{"a truncated signature", signed[:len(signed)-4], 'a', start},
		{"a line break in the signature", signed[:len(signed)-4] + "\n" + signed[len(signed)-4:], 'a', start},
		{"a replaced payload", parts[0] + ".eyJzdWIiOiJvdGhlciJ9." + parts[2], 'a', start},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := newSigner(t, c.secret, c.now).Verify(c.signed)
			if !errors.Is(err, ErrUnsigned) || got != (Identity{}) {
				t.Errorf("got %+v, %v; want no identity, %v", got, err, ErrUnsigned)
			}
		})
	}
}

func TestWhatIsRememberedRunsOut(t *testing.T) {
	now := start
	signer, err := NewSigner(keyring.Ring{bytes.Repeat([]byte{'a'}, MinSecret)}, func() time.Time { return now })
	expect.OK(t, err)
	sign := func() string {
		signed, err := signer.Sign(Identity{Broker: "broker", Role: Broker})
		expect.OK(t, err)
		return signed
	}
	first := sign()
	for _, c := range []struct {
		elapsed time.Duration
		want    error
	}{
		{0, nil},
		{lifetime - time.Second, nil},
		{lifetime + time.Second, ErrUnsigned},
	} {
		now = start.Add(c.elapsed)
		expect.ErrOf(t, c.want, "after %v", c.elapsed)(signer.Verify(first))
	}
	now = start.Add(reuse - time.Second)
	expect.ErrorIf(t, sign() != first, "before the end of reuse: got a new token, want the same")
	now = start.Add(reuse + time.Second)
	expect.ErrorIf(t, sign() == first, "after the end of reuse: got the same token, want a new one")
}

// TestAFullCacheStaysBounded signs for more callers than a signer remembers.
func TestAFullCacheStaysBounded(t *testing.T) {
	var c cache[int, string]
	for i := range 3*maxEntries + 7 {
		c.put(i, "token", start.Add(time.Hour))
		if got, known := c.get(i, start); got != "token" || !known || len(c.entries) > maxEntries {
			t.Fatalf("value %d: got %q, %t among %d values, want it among at most %d", i, got, known, len(c.entries), maxEntries)
		}
	}
}

func TestTokensOfSeveralCallersAreKept(t *testing.T) {
	signer := newSigner(t, 'a', start)
	now := start
	signer.now = func() time.Time { return now }
	var first [3]string
	for round := range 2 {
		for i := range first {
			signed, err := signer.Sign(Identity{Broker: "b", KeyID: string(rune('a' + i)), Role: Broker})
			expect.OK(t, err)
			if round == 0 {
				first[i] = signed
			} else if signed != first[i] {
				t.Errorf("caller %d: got a new token within its time, want the same", i)
			}
		}
		now = now.Add(time.Second) // so that a token that is made anew is different
	}
}

func TestWhatIsTestOnlyOrAnonymous(t *testing.T) {
	for _, c := range []struct {
		of              Identity
		test, anonymous bool
	}{
		{Identity{}, false, true},
		{Identity{Broker: "b", Role: Broker, Levels: "3"}, false, false},
		{Identity{Broker: "b", Role: Broker, Levels: "3t"}, true, false},
		{Identity{Role: Service}, false, false},
	} {
		if c.of.TestOnly() != c.test || c.of.IsAnonymous() != c.anonymous {
			t.Errorf("%+v: got test only %t and anonymous %t, want %t and %t", c.of, c.of.TestOnly(), c.of.IsAnonymous(), c.test,
				c.anonymous)
		}
	}
}

func TestNewSignerRefusesAShortSecret(t *testing.T) {
	expect.FailsOf(t, "")(NewSigner(keyring.Ring{make([]byte, MinSecret-1)}, time.Now))
}

// Promises: levels
func TestPermits(t *testing.T) {
	for _, c := range []struct {
		levels string
		want   bool
	}{
		{"1234", true}, {"3", true}, {"0", true}, {"3t", true}, {"12", false}, {"", false}, {"t", false},
	} {
		expect.Equal(t, (Identity{Levels: c.levels}).Permits('3'), c.want, "levels %q permit 3", c.levels)
	}
}

func TestIdentitiesHoldThroughARotation(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), MinSecret), bytes.Repeat([]byte("b"), MinSecret)
	with := func(secrets ...[]byte) *Signer {
		t.Helper()
		signer, err := NewSigner(secrets, time.Now)
		expect.OK(t, err)
		return signer
	}
	who := Identity{Broker: "b", KeyID: "k", Role: Broker}
	// Each step has the signers of an old and a new service during one of the three rolling restarts.
	steps := [][]*Signer{{with(a), with(a, b)}, {with(a, b), with(b, a)}, {with(b, a), with(b)}}
	for i, step := range steps {
		for from := range step {
			signed, err := step[from].Sign(who)
			expect.OK(t, err)
			for to := range step {
				expect.Value(t, who, "restart %d, from %d to %d", i+1, from, to)(step[to].Verify(signed))
			}
		}
	}
	signed, err := with(a, b).Sign(who)
	expect.OK(t, err)
	if got, err := with(b).Verify(signed); err == nil {
		t.Errorf("signed with a removed secret: got %+v, want %v", got, ErrUnsigned)
	}
}
