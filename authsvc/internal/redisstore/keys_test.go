package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/redistest"
)

// roundTrips is a hook that counts the round trips to Redis.
type roundTrips struct{ count int }

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.count++
		return next(ctx, cmd)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.count++
		return next(ctx, cmds)
	}
}

// addCommandKey adds an unaudited key whose secret equals its id.
func addCommandKey(t *testing.T, s *Store, id string, change func(*apikey.Key)) {
	t.Helper()
	holder := identity.Identity{KeyID: id, Broker: "b", Role: identity.Broker, Levels: "13"}
	k := apikey.NewUnaudited(authapi.Hash(id), holder, time.Now())
	if change != nil {
		change(&k)
	}
	if err := s.AddKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
}

func TestAVerificationCostsOneRoundTrip(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	addCommandKey(t, s, "good", nil)
	addCommandKey(t, s, "revoked", func(k *apikey.Key) { k.Revoked = time.Now() })
	addCommandKey(t, s, "expired", func(k *apikey.Key) { k.Settings.Expires = time.Now().Add(-time.Hour) })
	addCommandKey(t, s, "operator", func(k *apikey.Key) {
		k.Broker, k.Settings.Role, k.Unaudited = "", apikey.Operator, false
	})
	verifier := apikey.NewVerifier(apikey.Sandbox(), s, time.Now)
	if _, err := verifier.Verify(t.Context(), authapi.Hash("good")); err != nil { // Redis caches the script
		t.Fatal(err)
	}
	trips := &roundTrips{}
	s.client.AddHook(trips)
	for _, c := range []struct {
		name   string
		secret string
		valid  bool
		want   int // round trips
	}{
		{"a stored key", "good", true, 1},
		{"an unknown key", "unknown", false, 1},
		{"a revoked key", "revoked", false, 1},
		{"an expired key", "expired", false, 1},
		{"a key of the admin API", "operator", false, 1},
		{"a sandbox key", "broker", true, 0},
	} {
		trips.count = 0
		_, err := verifier.Verify(t.Context(), authapi.Hash(c.secret))
		if c.valid && err != nil || !c.valid && fault.KindOf(err) != fault.Unauthorized {
			t.Errorf("%s: got %v, want valid: %v", c.name, err, c.valid)
		}
		if trips.count != c.want {
			t.Errorf("%s: got %d round trips, want %d", c.name, trips.count, c.want)
		}
	}
}

// addVersion1 adds an unaudited key in the format of version 1.
func addVersion1(t *testing.T, s *Store, id, secret, text string) {
	t.Helper()
	named := s.client.Set(t.Context(), firstKeyID(id), authapi.Hash(secret), 0).Err()
	stored := s.client.Set(t.Context(), firstKey(authapi.Hash(secret)), text, 0).Err()
	if err := errors.Join(named, stored); err != nil {
		t.Fatal(err)
	}
}

func TestKeysOfVersion1AreUpgraded(t *testing.T) {
	const many = 50 // each is several writes to the disk
	server := redistest.Start(t)
	s := open(t, server.URL())
	for n := range many {
		addVersion1(t, s, fmt.Sprint("many-", n), fmt.Sprint("many ", n), `{"id":"many","broker":"b","role":"broker"}`)
	}
	addVersion1(t, s, "acme-1", "one", `{"id":"acme-1","broker":"Акме","role":"broker","levels":"13t"}`)
	administered := apikey.Key{ID: "key-1", Secrets: []apikey.Secret{{Number: 1, Hash: authapi.Hash("three")}}}
	if answer, err := addKey(t.Context(), s.client, administered); err != nil || answer != added {
		t.Fatalf("got %d, %v; want the key added", answer, err)
	}
	addVersion1(t, s, "key-1", "two", `{"id":"key-1","broker":"b","role":"concierge"}`)
	if err := s.client.Set(t.Context(), firstKeyID("half-removed"), authapi.Hash("none"), 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			s = open(t, server.URL())
		}
		for _, c := range []struct {
			secret string
			want   apikey.Key
		}{
			{"one", apikey.Key{
				ID: "acme-1", Broker: "Акме", Unaudited: true,
				Settings: apikey.Settings{Name: "acme-1", Role: "broker", Levels: "13", Test: true},
			}},
			{"two", apikey.Key{
				ID: "key-1" + apikey.RenameSuffix, Broker: "b", Unaudited: true,
				Settings: apikey.Settings{Name: "key-1", Role: "concierge"},
			}},
			{"three", apikey.Key{ID: "key-1"}},
		} {
			got, _, err := s.FindSecret(t.Context(), authapi.Hash(c.secret))
			if err != nil || len(got.Secrets) != 1 || got.Secrets[0].Hash != authapi.Hash(c.secret) {
				t.Errorf("%s: got %+v, %v; want the key with its secret", c.secret, got, err)
			}
			got.Created, got.Modified, got.Secrets = time.Time{}, time.Time{}, nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: got the lines with +, want those with -:\n%s", c.secret, diff)
			}
		}
	}
	for n := range many {
		if _, _, err := s.FindSecret(t.Context(), authapi.Hash(fmt.Sprint("many ", n))); err != nil {
			t.Errorf("key %d: got %v, want no error", n, err)
		}
	}
	left, err := s.client.Keys(t.Context(), "registry:key*").Result()
	if err != nil || len(left) > 0 {
		t.Errorf("got version 1 records %v, %v; want none", left, err)
	}
}

func TestAnUpgradeContinuesAfterATimeout(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	addVersion1(t, s, "acme-1", "one", `{"id":"acme-1","broker":"b","role":"broker"}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.FindSecret(ctx, authapi.Hash("one")); err == nil || errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("a canceled upgrade: got %v, want an error other than ErrNotFound", err)
	}
	if _, _, err := s.FindSecret(t.Context(), authapi.Hash("one")); err != nil {
		t.Errorf("after the upgrade: got %v, want no error", err)
	}
}

func TestARedisOfANewerVersionIsRefused(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	if err := s.client.Set(t.Context(), formatKey, "3", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.FindSecret(t.Context(), authapi.Hash("one")); err == nil || errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("got %v, want an error about the format", err)
	}
}
