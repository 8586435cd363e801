package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/storetest"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/keyring"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

func open(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(url, noop.NewMeterProvider().Meter(""))
	expect.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := redistest.Start(t)
	var before string // name of the test that opened the store last
	storetest.Run(t, func(t *testing.T, _ string) storetest.Store {
		s := open(t, server.URL())
		if t.Name() != before {
			before = t.Name()
			server.Flush(t)
		}
		return s
	})
}

func TestAKeyThatNoListWouldShowIsNone(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	k := apikey.Key{
		ID: "key-planted", Settings: apikey.Settings{Name: "n", Role: apikey.Operator},
		Secrets: []apikey.Secret{{Number: 1, Hash: authapi.Hash("mine")}},
	}
	text, err := k.Encode()
	expect.OK(t, err)
	planted := []error{
		s.Ready(t.Context()),
		s.client.HSet(t.Context(), keysKey, k.ID, text).Err(),
		s.client.HSet(t.Context(), hashesKey, authapi.Hash("mine"), k.ID).Err(),
	}
	expect.OK(t, errors.Join(planted...))
	find := func() error {
		_, err := s.FindSecret(t.Context(), authapi.Hash("mine"))
		return err
	}
	expect.Err(t, find(), apikey.ErrNotFound, "a key that is not in the index")
	// Redis orders members by name only if all have the same score. The index uses the score 0, so a key with
	// another score is not found.
	for score, found := range map[float64]bool{-1: false, 1: false, 0: true} {
		expect.OK(t, s.client.ZAdd(t.Context(), idsKey, redis.Z{Score: score, Member: k.ID}).Err())
		if err := find(); (err == nil) != found {
			t.Errorf("a key with score %v: got %v, want found: %t", score, err, found)
		}
	}
}

func TestAKeyIsRevokedWhenRedisIsFull(t *testing.T) {
	s := open(t, redistest.Start(t, "--maxmemory", "4mb").URL())
	sealer, err := audit.NewSealer(keyring.Ring{[]byte(strings.Repeat("s", 32))})
	expect.OK(t, err)
	service := admin.NewService(s, sealer, slog.New(slog.DiscardHandler), time.Now)
	by := admin.OfCommand("test")
	n := adminapi.NewKey{KeySettings: adminapi.KeySettings{Name: "n", Role: "operator"}}
	k, secret, err := service.CreateKey(t.Context(), by, n)
	expect.OK(t, err)
	for size := 100_000; size > 0; size /= 10 { // small values fill the rest, because a command itself needs memory too
		for n, err := 0, error(nil); err == nil; n++ {
			err = s.client.Set(t.Context(), fmt.Sprint("filler", size, n), strings.Repeat("x", size), 0).Err()
			if err != nil && !strings.Contains(err.Error(), "OOM") {
				t.Fatal(err)
			}
		}
	}
	expect.Get(service.RevokeKey(t.Context(), by, k.ID))(t)
	if got, err := s.FindSecret(t.Context(), authapi.Hash(secret)); err != nil || got.Key.Revoked.IsZero() {
		t.Errorf("got %+v, %v; want a revoked key", got, err)
	}
}

func TestWarningsTellHowRecordsMayBeLost(t *testing.T) {
	if got := open(t, redistest.Start(t).URL()).Warnings(t.Context()); len(got) != 0 {
		t.Errorf("a durable server: got warnings %v, want none", got)
	}
	forgetful := redistest.Start(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	got := strings.Join(open(t, forgetful.URL()).Warnings(t.Context()), "; ")
	if !strings.Contains(got, "appendonly no") || !strings.Contains(got, "allkeys-lru") {
		t.Errorf("a server that evicts and does not persist: got warnings %q, want one for each", got)
	}
	silent := open(t, redistest.Start(t, "--rename-command", "CONFIG", `""`).URL()).Warnings(t.Context())
	if len(silent) != 1 || !strings.Contains(silent[0], "does not show its settings") {
		t.Errorf("a server that shows no settings: got warnings %q, want one that says so", silent)
	}
}

// The tests below check the owner of an asset after a failure of Redis.
const asset = "00112233445566778899aabbccddeeff"

func newService(t *testing.T, s *Store) (*token.Service, *token.Sealer) {
	t.Helper()
	sealer, err := token.NewSealer(keyring.Ring{[]byte(strings.Repeat("s", 32))})
	expect.OK(t, err)
	return token.NewService(s, sealer, time.Hour), sealer
}

func verify(t *testing.T, s *token.Service, who, sealed string) bool {
	t.Helper()
	got, err := s.Verify(t.Context(), authapi.VerifyTokenRequest{
		AssetID: asset, Broker: who, TokenHash: authapi.Hash("token of " + who), Sealed: sealed,
	})
	expect.OK(t, err)
	return got.Valid
}

func record(t *testing.T, sealer *token.Sealer, owner string, generation int64) (token.Record, string) {
	t.Helper()
	r := token.Record{AssetID: asset, Broker: owner, OwnerHash: authapi.Hash("token of " + owner), Generation: generation}
	sealed, err := sealer.Seal(r)
	expect.OK(t, err)
	return r, sealed
}

func TestAFlushLosesNoOwner(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	service, sealer := newService(t, s)
	r, sealed := record(t, sealer, "broker", 1)
	for range 3 {
		if !verify(t, service, "broker", sealed) || verify(t, service, "other", sealed) {
			t.Error("got another owner, want the broker of the sealed record")
		}
		expect.Value(t, r, "load")(s.Load(t.Context(), asset))
		expect.OK(t, s.client.FlushAll(t.Context()).Err())
	}
}

func TestAnOldSnapshotBringsNoOldOwnerBack(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	service, sealer := newService(t, s)
	old, _ := record(t, sealer, "old", 1)
	recent, sealed := record(t, sealer, "new", 2)
	if _, err := s.Save(t.Context(), old); err != nil { // old is the record from an old snapshot
		t.Fatal(err)
	}
	if verify(t, service, "old", sealed) || !verify(t, service, "new", sealed) {
		t.Error("got the old owner, want the new one")
	}
	expect.Value(t, recent, "load")(s.Load(t.Context(), asset))
}

func TestAKilledServerKeepsWhatItHasAnswered(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	_, sealer := newService(t, s)
	r, _ := record(t, sealer, "broker", 1)
	expect.Get(s.Save(t.Context(), r))(t)
	server.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.Load(ctx, asset); err == nil || ctx.Err() != nil {
		t.Errorf("load while Redis is down: got %v, context %v; want an error before the timeout", err, ctx.Err())
	}
	expect.Fails(t, s.Ready(ctx), "ready while Redis is down")
	server.Restart(t)
	expect.Value(t, r, "load after the restart")(s.Load(t.Context(), asset))
}

// TestARedisThatIsAwayIsUnavailable checks the fault while Redis is down. It must be of kind Unavailable, because a
// fault of this kind is not logged as a defect.
func TestARedisThatIsAwayIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	if _, err := s.Load(t.Context(), "none"); !errors.Is(err, token.ErrNotFound) {
		t.Fatalf("load while Redis is up: got %v, want %v", err, token.ErrNotFound)
	}
	ready := s.Ready(t.Context())
	expect.OK(t, errors.Join(ready, s.client.Set(t.Context(), recordKey("other"), "no hash", 0).Err()))
	if _, err := s.Load(t.Context(), "other"); err == nil || fault.KindOf(err) == fault.Unavailable {
		t.Errorf("load a value of another type: got %v, want an error that is a defect", err)
	}
	expect.OK(t, s.client.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	expect.Fault(t, s.CreateTransfer(t.Context(), token.Transfer{ID: "id"}), fault.Unavailable,
		"write while Redis refuses writes")
	server.Kill(t)
	expect.FaultOf(t, fault.Unavailable, "load while Redis is down")(s.Load(t.Context(), "none"))
	expect.Fault(t, s.Ready(t.Context()), fault.Unavailable, "ready while Redis is down")
}

// TestAConfirmationBelongsToARunOfTheServer stores a confirmation and starts the server again. Told must then report
// that it was not stored here, because the server may have other data now. So it must on a replica, which has the data.
func TestAConfirmationBelongsToARunOfTheServer(t *testing.T) {
	server := redistest.Start(t)
	replica := server.Replicate(t)
	s, told := open(t, server.URL()), adminapi.Head{Seq: 3, Hash: authapi.Hash("x")}
	expect.OK(t, s.Tell(t.Context(), told))
	if n, err := s.watcher.Wait(t.Context(), 1, 5*time.Second).Result(); err != nil {
		t.Fatalf("got %d replicas, %v; want one", n, err)
	}
	check := func(s *Store, want bool) {
		t.Helper()
		if got, here, err := s.Told(t.Context()); err != nil || got != told || here != want {
			t.Errorf("got %v, here: %t, %v; want %v, here: %t", got, here, err, told, want)
		}
	}
	check(s, true)
	ofReplica := open(t, replica.URL())
	for began := time.Now(); ; {
		if got, _, err := ofReplica.Told(t.Context()); err == nil && got == told || time.Since(began) > 10*time.Second {
			break
		}
	}
	check(ofReplica, false)
	server.Kill(t)
	server.Restart(t)
	check(open(t, server.URL()), false)
}

// TestTheEndOfARightWaitsForAReplica commits changes to servers without a replica, with one, and with one that hangs.
// The change must be done in each case. Only the end of a right may be reported as unconfirmed.
func TestTheEndOfARightWaitsForAReplica(t *testing.T) {
	alone, server := redistest.Start(t), redistest.Start(t)
	replica := server.Replicate(t)
	hang := func() { replica.Hang(t) }
	for _, c := range []struct {
		name   string
		at     *redistest.Server
		before func()
		ends   bool
		want   error
	}{
		{"no replica", alone, func() {}, true, nil},
		{"a replica", server, func() {}, true, nil},
		{"a replica that hangs, and another change", server, hang, false, nil},
		{"a replica that hangs", server, func() {}, true, admin.ErrAlone},
		{"a replica that is gone", server, func() { replica.Kill(t) }, true, admin.ErrAlone},
	} {
		c.before()
		s := open(t, c.at.URL())
		before, err := s.Head(t.Context())
		expect.OK(t, err)
		change := admin.Change{Ends: c.ends, Entry: adminapi.Entry{Seq: before.Seq + 1, Hash: authapi.Hash(c.name)}}
		expect.Err(t, s.Commit(t.Context(), before, change), c.want, "%s", c.name)
		if now, err := s.Head(t.Context()); err != nil || now.Seq != before.Seq+1 {
			t.Errorf("%s: got the head %v, %v; want the change done", c.name, now, err)
		}
	}
}
