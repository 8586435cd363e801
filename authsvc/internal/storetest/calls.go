package storetest

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

// Call is a call of one method of a store. It succeeds if the store has the data of Fill.
type Call struct {
	Name string
	Do   func(ctx context.Context, s Store) error
}

const countedDay = "2026-11-21"

// claimed returns a transfer that is already claimed.
func claimed() token.Transfer {
	t := transfer("claimed")
	t.Claim = token.Claim{AssetID: "asset", Generation: 2, Date: t.Date, Expires: t.Date * 2}
	return t
}

// Fill stores a record, transfers, a broker, keys, an entry, and the use of a key.
func Fill(t *testing.T, s Store) {
	t.Helper()
	k, b, ctx := newKey("k1", "b"), apikey.Broker{Name: "b", Created: made, Modified: made}, t.Context()
	c := admin.Change{Key: &k, NewHash: k.Secrets[0].Hash, Entry: entry(adminapi.Head{}, "key k1")}
	_, saved := s.Save(ctx, record(1))
	use := authapi.Use{KeyID: "k1", Secret: 1, Addr: netip.MustParseAddr("192.0.2.1"), Micros: made.UnixMicro()}
	count := authapi.Count{KeyID: "k1", Day: countedDay, Class: "read", Requests: 3}
	err := errors.Join(saved, s.CreateTransfer(ctx, transfer("one")), s.CreateTransfer(ctx, transfer("claimed")),
		s.Restore(ctx, admin.Change{Broker: &b}, nil), s.Commit(ctx, adminapi.Head{}, c),
		s.Tell(ctx, adminapi.Head{}), s.AddUsage(ctx, []authapi.Use{use}, []authapi.Count{count}))
	_, claiming := s.ClaimTransfer(ctx, "claimed", claimed().Claim)
	if err := errors.Join(err, claiming); err != nil {
		t.Fatal(err)
	}
}

// Calls returns a call of each method that uses the server or the file, except SweepTransfers, which does
// nothing in Redis.
func Calls() []Call {
	first := entry(adminapi.Head{}, "key k1")
	added := newKey("k2", "b")
	next := admin.Change{Key: &added, NewHash: added.Secrets[0].Hash, Entry: entry(headOf(first), "key k2")}
	resealed := first
	resealed.Seal = "another"
	return []Call{
		{"Load", func(ctx context.Context, s Store) error { return second(s.Load(ctx, record(1).AssetID)) }},
		{"Save", func(ctx context.Context, s Store) error { return second(s.Save(ctx, record(2))) }},
		{"CreateTransfer", func(ctx context.Context, s Store) error { return s.CreateTransfer(ctx, transfer("two")) }},
		{"LoadTransfer", func(ctx context.Context, s Store) error { return second(s.LoadTransfer(ctx, "one")) }},
		{"ClaimTransfer", func(ctx context.Context, s Store) error {
			return second(s.ClaimTransfer(ctx, "one", claimed().Claim))
		}},
		{"SettleTransfer", func(ctx context.Context, s Store) error {
			return second(s.SettleTransfer(ctx, "claimed", claimed().Claim, true))
		}},
		{"FindSecret", func(ctx context.Context, s Store) error {
			return second(s.FindSecret(ctx, authapi.Hash("k1")))
		}},
		{"AddUsage", func(ctx context.Context, s Store) error {
			use := authapi.Use{KeyID: "k1", Secret: 1, Addr: netip.MustParseAddr("192.0.2.2"), Micros: made.UnixMicro()}
			count := authapi.Count{KeyID: "k1", Day: countedDay, Class: "read", Requests: 1}
			return s.AddUsage(ctx, []authapi.Use{use}, []authapi.Count{count})
		}},
		{"EndSession", func(ctx context.Context, s Store) error { return s.EndSession(ctx, "session", time.Hour) }},
		{"SessionEnded", func(ctx context.Context, s Store) error { return second(s.SessionEnded(ctx, "session")) }},
		{"KeepSession", func(ctx context.Context, s Store) error {
			return second(s.KeepSession(ctx, "kept", "", "text", time.Hour))
		}},
		{"KeptSession", func(ctx context.Context, s Store) error { return second(s.KeptSession(ctx, "kept")) }},
		{"Broker", func(ctx context.Context, s Store) error { return second(s.Broker(ctx, "b")) }},
		{"Brokers", func(ctx context.Context, s Store) error { return second(s.Brokers(ctx, "", 10)) }},
		{"Key", func(ctx context.Context, s Store) error { return second(s.Key(ctx, "k1")) }},
		{"Keys", func(ctx context.Context, s Store) error { return second(s.Keys(ctx, "", 10)) }},
		{"KeysBack", func(ctx context.Context, s Store) error { return second(s.KeysBack(ctx, "", 10)) }},
		{"Head", func(ctx context.Context, s Store) error { return second(s.Head(ctx)) }},
		{"Told", func(ctx context.Context, s Store) error {
			_, _, err := s.Told(ctx)
			return err
		}},
		{"Tell", func(ctx context.Context, s Store) error { return s.Tell(ctx, headOf(first)) }},
		{"Entries", func(ctx context.Context, s Store) error { return second(s.Entries(ctx, 0, 10)) }},
		{"Uses", func(ctx context.Context, s Store) error { return second(s.Uses(ctx, []string{"k1"})) }},
		{"Counts", func(ctx context.Context, s Store) error { return second(s.Counts(ctx, "k1", []string{countedDay})) }},
		{"Reseal", func(ctx context.Context, s Store) error { return s.Reseal(ctx, []adminapi.Entry{resealed}) }},
		{"Restore", func(ctx context.Context, s Store) error { return s.Restore(ctx, admin.Change{Key: &added}, nil) }},
		{"Commit", func(ctx context.Context, s Store) error { return s.Commit(ctx, headOf(first), next) }},
	}
}

func second[T any](_ T, err error) error { return err }

// contents has the data of Fill, read back from a store.
type contents struct {
	Record         token.Record
	One, Claimed   token.Transfer
	Keys           []apikey.Key
	Brokers        []apikey.Broker
	Entries        []adminapi.Entry
	Head           adminapi.Head
	Counts         []adminapi.Day
	Uses           map[string]map[int][]adminapi.Use
	HasAnotherKey  bool
	HasNewTransfer bool
}

func contentsOf(t *testing.T, s Store) (c contents) {
	t.Helper()
	var errs [9]error
	ctx := t.Context()
	c.Record, errs[0] = s.Load(ctx, record(1).AssetID)
	c.One, errs[1] = s.LoadTransfer(ctx, "one")
	c.Claimed, errs[2] = s.LoadTransfer(ctx, "claimed")
	c.Keys, errs[3] = s.Keys(ctx, "", 10)
	c.Brokers, errs[4] = s.Brokers(ctx, "", 10)
	c.Entries, errs[5] = s.Entries(ctx, 0, 10)
	c.Head, errs[6] = s.Head(ctx)
	c.Counts, errs[7] = s.Counts(ctx, "k1", []string{countedDay})
	c.Uses, errs[8] = s.Uses(ctx, []string{"k1"})
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	_, err := s.FindSecret(ctx, authapi.Hash("k2"))
	c.HasAnotherKey = err == nil
	_, err = s.LoadTransfer(ctx, "two")
	c.HasNewTransfer = err == nil
	return c
}

// testCancelled makes each call for a caller who has left. All of them must fail and change nothing. Then it makes
// each call for a caller who waits. All of them must succeed.
func testCancelled(t *testing.T, open Opener) {
	s := open(t, "a")
	Fill(t, s)
	before := contentsOf(t, s)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range Calls() {
		if err := c.Do(gone, s); !errors.Is(err, context.Canceled) {
			t.Errorf("%s for a caller who has left: got %v, want the context's error", c.Name, err)
		}
	}
	equal(t, contentsOf(t, s), nil, before)
	for _, c := range Calls() {
		if err := c.Do(t.Context(), s); err != nil {
			t.Errorf("%s: got %v, want no error", c.Name, err)
		}
	}
}

// testClosed makes each call after the store was closed. All calls must fail and change nothing.
func testClosed(t *testing.T, open Opener) {
	s := open(t, "a")
	Fill(t, s)
	before := contentsOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range Calls() {
		if err := c.Do(t.Context(), s); err == nil {
			t.Errorf("%s of a closed store: got no error, want one", c.Name)
		}
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("Ready of a closed store: got no error, want one")
	}
	equal(t, contentsOf(t, open(t, "a")), nil, before)
}
