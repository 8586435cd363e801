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
)

func open(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(url, noop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := redistest.Start(t)
	var before string // the test that opened it last
	storetest.Run(t, func(t *testing.T, _ string) storetest.Store {
		s := open(t, server.URL())
		if t.Name() != before {
			before = t.Name()
			server.Flush(t)
		}
		return s
	})
}

// A Redis of an earlier version holds transfers without an end, and a service of
// that version may claim one that has an end.
func TestTransfersOfAnEarlierVersionGetTheirEnd(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	made := token.Transfer{Broker: "b", Date: 1}
	for id, fields := range map[string][]any{"unclaimed": nil, "claimed": {claimField, "2 asset"}, "claimed-with-end": {claimField, "2 asset"}} {
		text, err := made.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.client.HSet(t.Context(), transferKey(id), append(fields, transferField, text)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.client.Expire(t.Context(), transferKey("claimed-with-end"), time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	sweepAll := func(end time.Time) {
		t.Helper()
		for cursor, steps := "", 0; steps == 0 || cursor != ""; steps++ {
			var err error
			if cursor, err = s.SweepTransfers(t.Context(), cursor, time.Now(), end); err != nil {
				t.Fatal(err)
			}
		}
	}
	end := time.Now().Add(time.Hour)
	sweepAll(end)
	sweepAll(end.Add(time.Hour)) // an end that is set stays
	for id, want := range map[string]int64{"unclaimed": end.UnixMilli(), "claimed": -1, "claimed-with-end": -1} {
		if got := s.client.Do(t.Context(), "PEXPIRETIME", transferKey(id)).Val(); got != want {
			t.Errorf("%s: got an end at %v, want %d", id, got, want)
		}
	}
}

func TestAKeyThatNoListWouldShowIsNone(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	k := apikey.Key{ID: "key-planted", Settings: apikey.Settings{Name: "n", Role: apikey.Operator}, Secrets: []apikey.Secret{{Number: 1, Hash: authapi.Hash("mine")}}}
	text, err := k.Encode()
	if err != nil {
		t.Fatal(err)
	}
	planted := []error{s.client.HSet(t.Context(), keysKey, k.ID, text).Err(), s.client.HSet(t.Context(), hashesKey, authapi.Hash("mine"), k.ID).Err()}
	if err := errors.Join(planted...); err != nil {
		t.Fatal(err)
	}
	find := func() error {
		_, _, err := s.FindSecret(t.Context(), authapi.Hash("mine"))
		return err
	}
	if err := find(); !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("without a place in the index: %v", err)
	}
	for score, found := range map[float64]bool{-1: false, 1: false, 0: true} { // lists are in order only where all have the same
		if err := s.client.ZAdd(t.Context(), idsKey, redis.Z{Score: score, Member: k.ID}).Err(); err != nil {
			t.Fatal(err)
		}
		if err := find(); (err == nil) != found {
			t.Errorf("at %v: %v", score, err)
		}
	}
}

func TestAKeyIsRevokedWhenRedisIsFull(t *testing.T) {
	s := open(t, redistest.Start(t, "--maxmemory", "4mb").URL())
	sealer, err := audit.NewSealer(keyring.Ring{[]byte(strings.Repeat("s", 32))})
	if err != nil {
		t.Fatal(err)
	}
	service := admin.NewService(s, sealer, slog.New(slog.DiscardHandler), time.Now)
	by := admin.OfCommand("test")
	k, secret, err := service.CreateKey(t.Context(), by, adminapi.NewKey{KeySettings: adminapi.KeySettings{Name: "n", Role: "operator"}})
	if err != nil {
		t.Fatal(err)
	}
	for size := 100_000; size > 0; size /= 10 { // to the last byte: what a command is itself counts, too
		for n, err := 0, error(nil); err == nil; n++ {
			if err = s.client.Set(t.Context(), fmt.Sprint("filler", size, n), strings.Repeat("x", size), 0).Err(); err != nil && !strings.Contains(err.Error(), "OOM") {
				t.Fatal(err)
			}
		}
	}
	if _, err := service.RevokeKey(t.Context(), by, k.ID); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.FindSecret(t.Context(), authapi.Hash(secret)); err != nil || got.Revoked.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAFailoverBySentinelsHealsByItself(t *testing.T) {
	const password = "p@ss"
	primary := redistest.Start(t, "--requirepass", password, "--masterauth", password)
	replica := primary.Replicate(t)
	sentinel := primary.Watch(t, "registry", password)
	// The first sentinel of the list is away.
	s := open(t, "redis+sentinel://:p%40ss@127.0.0.1:1,"+sentinel+"/registry/0")
	_, sealer := newService(t, s)
	first, _ := record(t, sealer, "broker", 1)
	if _, err := s.Save(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if got, err := s.client.Wait(t.Context(), 1, 5*time.Second).Result(); err != nil || got != 1 {
		t.Fatalf("the replica has no copy: got %d, %v", got, err)
	}
	primary.Kill(t)
	second, _ := record(t, sealer, "broker", 2)
	var err error
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err = s.Save(t.Context(), second); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a failover: got %v, want the record saved", err)
		}
	}
	if got, err := s.Load(t.Context(), asset); err != nil || got != second {
		t.Errorf("got %+v, %v; want %+v", got, err, second)
	}
	direct := open(t, "redis://:p%40ss@"+replica.Addr)
	if got, err := direct.Load(t.Context(), asset); err != nil || got != second {
		t.Errorf("the former replica: got %+v, %v; want %+v", got, err, second)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("ready: got %v", err)
	}
}

func TestOpenRefusesWithoutTellingThePassword(t *testing.T) {
	for _, url := range []string{"redis+sentinel://:hunter2@host", "redis+sentinel://:hunter2@host/name/db", "redis+sentinel://:hunter2@host/name?x=1", "redis://:hunter2@host:port", "redis://user:hunter2@host/db", "http://:hunter2@host"} {
		if _, err := Open(url, noop.NewMeterProvider().Meter("")); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func TestWarningsTellHowRecordsMayBeLost(t *testing.T) {
	if got := open(t, redistest.Start(t).URL()).Warnings(t.Context()); len(got) != 0 {
		t.Errorf("a durable server: %v", got)
	}
	forgetful := redistest.Start(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	if got := strings.Join(open(t, forgetful.URL()).Warnings(t.Context()), "; "); !strings.Contains(got, "appendonly no") || !strings.Contains(got, "allkeys-lru") {
		t.Errorf("a forgetful server: %v", got)
	}
}

// The rest is of what becomes of owners when Redis fails.

const asset = "00112233445566778899aabbccddeeff"

func newService(t *testing.T, s *Store) (*token.Service, *token.Sealer) {
	t.Helper()
	sealer, err := token.NewSealer(keyring.Ring{[]byte(strings.Repeat("s", 32))})
	if err != nil {
		t.Fatal(err)
	}
	return token.NewService(s, sealer, time.Hour), sealer
}

func verify(t *testing.T, s *token.Service, who, sealed string) bool {
	t.Helper()
	got, err := s.Verify(t.Context(), authapi.VerifyTokenRequest{AssetID: asset, Broker: who, TokenHash: authapi.Hash("token of " + who), Sealed: sealed})
	if err != nil {
		t.Fatal(err)
	}
	return got.Valid
}

func record(t *testing.T, sealer *token.Sealer, owner string, generation int64) (token.Record, string) {
	t.Helper()
	r := token.Record{AssetID: asset, Broker: owner, OwnerHash: authapi.Hash("token of " + owner), Generation: generation}
	sealed, err := sealer.Seal(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, sealed
}

func TestAFlushLosesNoOwner(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	service, sealer := newService(t, s)
	r, sealed := record(t, sealer, "broker", 1)
	for range 3 {
		if !verify(t, service, "broker", sealed) || verify(t, service, "other", sealed) {
			t.Error("after a flush the owner is another")
		}
		if got, err := s.Load(t.Context(), asset); err != nil || got != r {
			t.Errorf("the record is not back: %+v, %v", got, err)
		}
		if err := s.client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnOldSnapshotBringsNoOldOwnerBack(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	service, sealer := newService(t, s)
	old, _ := record(t, sealer, "old", 1)
	recent, sealed := record(t, sealer, "new", 2)
	if _, err := s.Save(t.Context(), old); err != nil { // as the snapshot has it
		t.Fatal(err)
	}
	if verify(t, service, "old", sealed) || !verify(t, service, "new", sealed) {
		t.Error("the old owner is back")
	}
	if got, err := s.Load(t.Context(), asset); err != nil || got != recent {
		t.Errorf("the snapshot's record still stands: %+v, %v", got, err)
	}
}

func TestAKilledServerKeepsWhatItHasAnswered(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	_, sealer := newService(t, s)
	r, _ := record(t, sealer, "broker", 1)
	if _, err := s.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.Load(ctx, asset); err == nil || ctx.Err() != nil {
		t.Errorf("a server that is down: %v, after %v", err, ctx.Err())
	}
	if err := s.Ready(ctx); err == nil {
		t.Error("a server that is down is ready")
	}
	server.Restart(t)
	if got, err := s.Load(t.Context(), asset); err != nil || got != r {
		t.Errorf("after a crash: %+v, %v", got, err)
	}
}

// TestARedisThatIsAwayIsUnavailable: its callers are told so, and no defect is
// logged.
func TestARedisThatIsAwayIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL())
	if _, err := s.Load(t.Context(), "none"); !errors.Is(err, token.ErrNotFound) {
		t.Fatalf("while it is there: got %v, want %v", err, token.ErrNotFound)
	}
	if err := s.client.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTransfer(t.Context(), token.Transfer{ID: "id"}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a Redis that takes no writes: got %v, want a fault of kind Unavailable", err)
	}
	server.Kill(t)
	if _, err := s.Load(t.Context(), "none"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a Redis that is away: got %v, want a fault of kind Unavailable", err)
	}
	if err := s.Ready(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("its readiness: got %v, want a fault of kind Unavailable", err)
	}
}
