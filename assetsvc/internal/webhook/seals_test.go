package webhook

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

func sealsOf(t *testing.T, secrets ...string) Seals {
	t.Helper()
	var ring keyring.Ring
	for _, s := range secrets {
		ring = append(ring, bytes.Repeat([]byte(s), keyring.MinLength))
	}
	return expect.Get(NewSeals(ring))(t)
}

func newSeal(t *testing.T, s Seals) string {
	t.Helper()
	return expect.Get(s.New())(t)
}

func TestSealsAreRenewedAndKeepTheirSecrets(t *testing.T) {
	before, both, after := sealsOf(t, "a"), sealsOf(t, "b", "a"), sealsOf(t, "b")
	seal := newSeal(t, before)
	secret, public, err := before.Secret(seal)
	if err != nil || !strings.HasPrefix(secret, "whsec_") || !strings.HasPrefix(public, "whpk_") {
		t.Fatalf("got %q, %q and %v, want two keys with their prefixes", secret, public, err)
	}
	renewed, anew, err := both.Renew(seal)
	if err != nil || !anew || renewed == seal {
		t.Fatalf("renew: got %q, %v, %v, want another seal", renewed, anew, err)
	}
	if s, p, err := after.Secret(renewed); s != secret || p != public || err != nil {
		t.Errorf("after the rotation: got %q, %q, %v, want the same keys", s, p, err)
	}
	if again, anew, err := after.Renew(renewed); again != renewed || anew || err != nil {
		t.Errorf("renew again: got %q, %v, %v, want the same seal", again, anew, err)
	}
	if none, anew, err := after.Renew(""); none != "" || anew || err != nil {
		t.Errorf("renew nothing: got %q, %v, %v, want nothing", none, anew, err)
	}
	if other := newSeal(t, before); other == seal {
		t.Error("got the same seal twice, want two")
	}
}

func TestASealOfAnotherRegistryIsRefused(t *testing.T) {
	s := sealsOf(t, "a")
	seal := newSeal(t, s)
	name, text, _ := strings.Cut(seal, ".")
	data := expect.Get(base64.RawURLEncoding.DecodeString(text))(t)
	data[20] ^= 1
	changed := name + "." + base64.RawURLEncoding.EncodeToString(data)
	for _, c := range []struct{ name, seal string }{
		{"of another secret", newSeal(t, sealsOf(t, "b"))}, {"changed", changed}, {"empty", ""}, {"no text", name + "."},
		{"not base64", name + ".!"}, {"the name alone", name},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := s.Secret(c.seal); !errors.Is(err, ErrSealed) {
				t.Errorf("got %v, want ErrSealed", err)
			}
			if _, _, err := s.Renew(c.seal); c.seal != "" && !errors.Is(err, ErrSealed) {
				t.Errorf("renew: got %v, want ErrSealed", err)
			}
		})
	}
}

// TestBothSecretsSignDuringARotation signs a message with two secrets. The signatures of both must be valid. The
// test verifies them with the standard library only. The tests in deploy/test/apart/webhooks use the library of
// Standard Webhooks.
// Promises: hook-signed
func TestBothSecretsSignDuringARotation(t *testing.T) {
	s := sealsOf(t, "a")
	var both signer
	var seals []string
	for range 2 {
		seals = append(seals, newSeal(t, s))
		k := expect.Get(s.keysOf(seals[len(seals)-1]))(t)
		both = append(both, k)
	}
	h := http.Header{}
	both.sign(h, "msg_1", time.Unix(1700000000, 999), []byte("body"))
	if id, at := h.Get("webhook-id"), h.Get("webhook-timestamp"); id != "msg_1" || at != "1700000000" {
		t.Errorf("got the id %q and the time %q, want msg_1 and 1700000000", id, at)
	}
	signed := []byte("msg_1.1700000000.body")
	got := strings.Fields(h.Get("webhook-signature"))
	expect.FatalIf(t, len(got) != 4, "got %d signatures, want 4: %q", len(got), got)
	for i, seal := range seals {
		secret, public, err := s.Secret(seal)
		expect.OK(t, err)
		key, err1 := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		pub, err2 := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
		expect.OK(t, errors.Join(err1, err2))
		mac := hmac.New(sha256.New, key)
		mac.Write(signed)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); !slices.Contains(got, want) {
			t.Errorf("secret %d: got %q, want %q in it", i, got, want)
		}
		signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(got[2*i+1], "v1a,"))
		if err != nil || !ed25519.Verify(pub, signed, signature) {
			t.Errorf("key %d: got %q, %v, want a valid v1a signature", i, got[2*i+1], err)
		}
	}
}
