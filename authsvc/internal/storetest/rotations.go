package storetest

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/keyring"
)

// rotating creates keys, and rotates each key with a different sequence of grace periods.
type rotating struct {
	service  *admin.Service
	verifier *apikey.Verifier
	by       admin.Actor
	now      time.Time
}

// promised is a secret, and the moment at which it must end.
type promised struct {
	secret string
	end    time.Time // zero: it does not end, because it is the newest
}

// testRotations rotates each key apikey.MaxSecrets times. It tries every sequence of rotations with and without grace.
// After each rotation, it verifies every secret of the key.
// Promises: rotation
func testRotations(t *testing.T, open Opener) {
	s := open(t, "a")
	r := &rotating{by: admin.Actor{Name: "o", Role: apikey.Operator, From: "192.0.2.1"}, now: made}
	clock := func() time.Time { return r.now }
	sealer, err := audit.NewSealer(keyring.Ring{[]byte(strings.Repeat("s", 32))})
	if err != nil {
		t.Fatal(err)
	}
	r.service = admin.NewService(s, sealer, slog.New(slog.DiscardHandler), clock)
	r.verifier = apikey.NewVerifier(nil, s, clock)
	if _, err := r.service.CreateBroker(t.Context(), r.by, adminapi.NewBroker{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	const rotations = apikey.MaxSecrets
	for order := range 1 << rotations {
		graces := make([]time.Duration, rotations)
		for i := range graces {
			if order>>i&1 == 1 {
				graces[i] = apikey.MaxGrace
			}
		}
		t.Run(fmt.Sprint(graces), func(t *testing.T) { r.rotate(t, graces) })
	}
}

// rotate creates a key, and rotates it once with each grace period of the list in turn. One minute passes before each
// rotation.
func (r *rotating) rotate(t *testing.T, graces []time.Duration) {
	n := adminapi.NewKey{Broker: "b", KeySettings: adminapi.KeySettings{Name: "n", Role: "broker"}}
	k, secret, err := r.service.CreateKey(t.Context(), r.by, n)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []promised{{secret: secret}}
	for i, grace := range graces {
		r.now = r.now.Add(time.Minute)
		valid := 0
		for _, p := range secrets {
			if grace > 0 && (p.end.IsZero() || p.end.After(r.now)) {
				valid++
			}
		}
		_, secret, err := r.service.RotateKey(t.Context(), r.by, k.ID, grace)
		if valid == apikey.MaxSecrets {
			if fault.KindOf(err) != fault.Conflict {
				t.Errorf("rotation %d of a key with %d valid secrets: got %v, want a fault of kind Conflict", i+1, valid, err)
			}
		} else if err != nil {
			t.Fatalf("rotation %d of a key that keeps %d valid secrets: got %v, want no error", i+1, valid, err)
		} else {
			for j := range secrets {
				if end := r.now.Add(grace); secrets[j].end.IsZero() || secrets[j].end.After(end) {
					secrets[j].end = end
				}
			}
			secrets = append(secrets, promised{secret: secret})
		}
		r.try(t, i+1, secrets)
	}
}

// try verifies every secret, and checks for how long it is still valid.
func (r *rotating) try(t *testing.T, rotation int, secrets []promised) {
	t.Helper()
	for i, p := range secrets {
		got, err := r.verifier.Verify(t.Context(), authapi.Hash(p.secret))
		switch {
		case !p.end.IsZero() && !p.end.After(r.now):
			if fault.KindOf(err) != fault.Unauthorized {
				t.Errorf("secret %d after rotation %d: got %+v, %v; want a fault of kind Unauthorized", i+1, rotation, got, err)
			}
		case err != nil:
			t.Errorf("secret %d after rotation %d: got %v, want no error", i+1, rotation, err)
		case !p.end.IsZero() && got.GoodFor != p.end.Sub(r.now), p.end.IsZero() && got.GoodFor != 0:
			t.Errorf("secret %d after rotation %d: got valid for %v, want until %v at %v",
				i+1, rotation, got.GoodFor, p.end, r.now)
		}
	}
}
