package boltstore

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/boltfile"
)

// call is a use of one method on the store of twoAssets.
type call struct {
	name    string
	damages string // the bucket whose damage it must find; "": it reads no value that can be damaged
	do      func(ctx context.Context, s *Store, a registry.Record) error
}

func errorOf[T any](_ T, err error) error { return err }

// calls are the methods that take a context. a is the listed asset.
func calls() []call {
	const assets, changes, webhooks, state = "assets", "changes", "webhooks", "state"
	return []call{
		{"Get", assets, func(ctx context.Context, s *Store, a registry.Record) error {
			return errorOf(s.Get(ctx, a.ID, registry.AnySize))
		}},
		{"Page", assets, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Page(ctx, registry.Query{Limit: 10, Bodies: registry.AnySize}))
		}},
		{"Range", assets, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Range(ctx, registry.RangeQuery{Limit: 10, Bytes: registry.AnySize}))
		}},
		{"Scan", assets, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Scan(ctx, "", 10))
		}},
		{"Reseal", assets, func(ctx context.Context, s *Store, a registry.Record) error {
			return s.Reseal(ctx, registry.Sealed{ID: a.ID, Sealed: a.Sealed}, registry.Sealed{ID: a.ID, Sealed: "anew"})
		}},
		{"Replace", "", func(ctx context.Context, s *Store, a registry.Record) error { return errorOf(s.Replace(ctx, a)) }},
		{"Changes", changes, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Changes(ctx, registry.ChangesQuery{Limit: 10, Bytes: registry.AnySize}))
		}},
		{"Log", changes, func(ctx context.Context, s *Store, a registry.Record) error {
			return errorOf(s.Log(ctx, a.ID, registry.LogQuery{Limit: 10}))
		}},
		{"Rewrite", changes, func(ctx context.Context, s *Store, a registry.Record) error {
			old := registry.Revision{ID: a.ID, Position: a.Position, Change: []byte("c")}
			return errorOf(s.Rewrite(ctx, old, []byte("d"), nil))
		}},
		{"Endpoints", webhooks, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Endpoints(ctx, "", "", 10))
		}},
		{"Endpoints of a broker", webhooks, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Endpoints(ctx, "b1", "", 10))
		}},
		{"Endpoint", webhooks, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Endpoint(ctx, "a1"))
		}},
		{"LogHead", "", func(ctx context.Context, s *Store, _ registry.Record) error { return errorOf(s.LogHead(ctx)) }},
		{"ExtendLog", "", func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.ExtendLog(ctx, publiclog.Head{}, nil))
		}},
		{"ClaimReference", "", func(ctx context.Context, s *Store, a registry.Record) error {
			return errorOf(s.ClaimReference(ctx, "key", "", a.ID))
		}},
		{"Put", "", func(ctx context.Context, s *Store, _ registry.Record) error {
			return s.Put(ctx, webhook.Endpoint{ID: "a2", Broker: "b1"})
		}},
		{"Remove", "", func(ctx context.Context, s *Store, _ registry.Record) error { return s.Remove(ctx, "a1") }},
		{"Lead", "", func(ctx context.Context, s *Store, _ registry.Record) error {
			_, _, err := s.Lead(ctx, "me", time.Now(), time.Now().Add(time.Hour))
			return err
		}},
	}
}

// TestAFailureIsNoAnswer makes each call for a caller who has left, on a store with damaged values and on a closed one.
// No call may answer then, because an empty answer looks like a registry without assets, changes or webhooks.
func TestAFailureIsNoAnswer(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range calls() {
		s, _, id, _ := twoAssets(t)
		a, err := s.Get(t.Context(), id, registry.AnySize)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(gone, s, a); c.name != "ClaimReference" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s for a caller who has left: got %v, want the context's error", c.name, err)
		}
		if c.damages != "" {
			if err := s.file.Update(func(tx *bbolt.Tx) error { return halve(tx.Bucket([]byte(c.damages))) }); err != nil {
				t.Fatal(err)
			}
			if err := c.do(t.Context(), s, a); !errors.Is(err, boltfile.ErrDamaged) {
				t.Errorf("%s of damaged %s: got %v, want %v", c.name, c.damages, err, boltfile.ErrDamaged)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.do(t.Context(), s, a); err == nil {
			t.Errorf("%s of a closed store: got no error, want one", c.name)
		}
	}
}

// halve cuts each value of a bucket.
func halve(b *bbolt.Bucket) (err error) {
	values := map[string][]byte{}
	_ = b.ForEach(func(key, value []byte) error {
		values[string(key)] = bytes.Clone(value[:len(value)/2])
		return nil
	})
	for key, value := range values {
		err = errors.Join(err, b.Put([]byte(key), value))
	}
	return err
}

// TestReadsAreBounded asks for one of two assets, of two token records and of two changes.
func TestReadsAreBounded(t *testing.T) {
	s, _, _, _ := twoAssets(t)
	records, err := s.Scan(t.Context(), "", 1)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %d records, %v; want 1", len(records), err)
	}
	sealed, err := s.SealedAfter(t.Context(), records[0].ID, 10)
	if err != nil || len(sealed) != 1 || sealed[0].ID <= records[0].ID {
		t.Errorf("got %v, %v; want the record after %s", sealed, err, records[0].ID)
	}
	for _, q := range []registry.ChangesQuery{{Limit: 1, Bytes: registry.AnySize}, {Limit: 10, Bytes: 1}} {
		for _, more := range []bool{true, false} {
			page, err := s.Changes(t.Context(), q)
			if err != nil || len(page.Changes) != 1 || page.More != more || page.Upto != page.Changes[0].Position {
				t.Fatalf("%+v: got %+v, %v; want one change, more: %t", q, page, err, more)
			}
			q.After = page.Upto
		}
	}
}

// TestALateClaimReplacesNoReference applies two claims of callers that have both found the reference free.
func TestALateClaimReplacesNoReference(t *testing.T) {
	s, _, id, _ := twoAssets(t)
	for _, to := range []string{id, "00112233445566778899aabbccddeeff"} {
		w := &write{Record: registry.Record{ID: to}, claim: &claim{"key", "", to}, done: make(chan outcome, 1)}
		if _, err := s.submit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.ClaimReference(t.Context(), "key", "", "another"); err != nil || got != id {
		t.Errorf("got %s, %v; want the first claim, for %s", got, err, id)
	}
}

// TestTimesOfWebhooksAreKeptInMilliseconds stores finer times, as the clock gives them. Both stores keep the same.
func TestTimesOfWebhooksAreKeptInMilliseconds(t *testing.T) {
	s, _, _, _ := twoAssets(t)
	fine := time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.FixedZone("x", 3600))
	want := fine.UTC().Truncate(time.Millisecond)
	p := webhook.Progress{FailedAt: fine, Next: fine, Succeeded: fine}
	if err := s.Put(t.Context(), webhook.Endpoint{ID: "fine", ByAdmin: true, Created: fine, OldUntil: fine, Progress: p}); err != nil {
		t.Fatal(err)
	}
	e, err := s.Endpoint(t.Context(), "fine")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]time.Time{
		"created": e.Created, "the end of the old seal": e.OldUntil, "failed": e.FailedAt, "next": e.Next, "succeeded": e.Succeeded,
	} {
		if got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
