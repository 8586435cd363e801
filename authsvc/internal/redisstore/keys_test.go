package redisstore

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
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
	k := apikey.Key{
		ID: id, Broker: "b", Created: time.Now(), Unaudited: true,
		Settings: apikey.Settings{Name: id, Role: identity.Broker, Levels: "13"},
		Secrets:  []apikey.Secret{{Number: 1, Hash: authapi.Hash(id), Created: time.Now()}},
	}
	if change != nil {
		change(&k)
	}
	expect.OK(t, s.Restore(t.Context(), admin.Change{Key: &k}, []string{authapi.Hash(id)}))
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
	// The first call also loads the script, which Redis then caches.
	expect.Get(verifier.Verify(t.Context(), authapi.Hash("good")))(t)
	trips := &roundTrips{}
	s.client.AddHook(trips)
	for _, c := range []struct {
		name   string
		secret string
		valid  bool
		want   int // number of round trips
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
		expect.Equal(t, trips.count, c.want, "%s: round trips", c.name)
	}
}

// TestTheCountsOfADayExpire adds to the counts of a day. Redis must keep them until two days after
// the last moment at which a list of keys can show that day.
func TestTheCountsOfADayExpire(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	count := authapi.Count{KeyID: "k", Day: "2026-11-21", Class: "read", Requests: 1}
	expect.OK(t, s.AddUsage(t.Context(), nil, []authapi.Count{count}))
	left, err := s.client.PTTL(t.Context(), countsKey("k", count.Day)).Result()
	if most := (apikey.UsageDays + 2) * 24 * time.Hour; err != nil || left > most || left < most-time.Hour {
		t.Errorf("got %v until the end, %v; want %v", left, err, most)
	}
}
