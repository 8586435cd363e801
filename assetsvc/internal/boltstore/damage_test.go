package boltstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/boltfile"
	"asset-registry/shared/testing/expect"
)

// call is a call of one method of the store that twoAssets returns.
type call struct {
	name    string
	damages string // bucket whose damage the call must notice, or "writes" (see below); "": no damage
	do      func(ctx context.Context, s *Store, a registry.Record) error
}

// writes is a value of call.damages that names no bucket. With this value, the test first lets the store find a
// damaged asset. The store then refuses all writes, so the call must return an error.
const writes = "writes"

func errorOf[T any](_ T, err error) error { return err }

// calls returns a call of each method that takes a context. Each call gets the listed asset as an argument.
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
		{"SealedAfter", "", func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.SealedAfter(ctx, "", 10))
		}},
		{"Reseal of a token record that there is not", assets, func(ctx context.Context, s *Store, a registry.Record) error {
			return s.Reseal(ctx, registry.Sealed{ID: a.ID}, registry.Sealed{ID: a.ID, Sealed: "anew"})
		}},
		{"Replace", writes, func(ctx context.Context, s *Store, a registry.Record) error { return errorOf(s.Replace(ctx, a)) }},
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
		{"ExtendLog", writes, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.ExtendLog(ctx, publiclog.Head{}, nil))
		}},
		{"ClaimReference", writes, func(ctx context.Context, s *Store, a registry.Record) error {
			return errorOf(s.ClaimReference(ctx, "key", "", a.ID))
		}},
		{"Put", writes, func(ctx context.Context, s *Store, _ registry.Record) error {
			return s.Put(ctx, webhook.Endpoint{ID: "a2", Broker: "b1"})
		}},
		{"Remove", writes, func(ctx context.Context, s *Store, _ registry.Record) error { return s.Remove(ctx, "a1") }},
		{"Lead", writes, func(ctx context.Context, s *Store, _ registry.Record) error {
			_, _, err := s.Lead(ctx, "me", time.Now(), time.Now().Add(time.Hour))
			return err
		}},
		{"Release", "", func(ctx context.Context, s *Store, _ registry.Record) error { return s.Release(ctx, 1) }},
		{"Save", webhooks, func(ctx context.Context, s *Store, _ registry.Record) error {
			return errorOf(s.Save(ctx, 1, []webhook.Step{{ID: "a1", Generation: 1}}))
		}},
	}
}

// TestAFailureIsNoAnswer makes each call with a context that has ended, on a store with damaged values, and on a
// closed store. Each call must return an error, because an empty answer looks like a registry without assets,
// changes or webhooks.
func TestAFailureIsNoAnswer(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range calls() {
		s, _, id, _ := twoAssets(t)
		a := expect.Get(s.Get(t.Context(), id, registry.AnySize))(t)
		expect.Err(t, c.do(gone, s, a), context.Canceled, "%s for a caller who has left", c.name)
		if c.damages != "" {
			expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error {
				if c.damages == writes {
					key, _ := registry.ParseID(id)
					return flipBit(tx, key)
				}
				return halve(tx.Bucket([]byte(c.damages)))
			}))
			if c.damages == writes {
				if _, err := s.Get(t.Context(), id, registry.AnySize); !errors.Is(err, boltfile.ErrDamaged) {
					t.Fatalf("got %v, want %v", err, boltfile.ErrDamaged)
				}
			}
			expect.Err(t, c.do(t.Context(), s, a), boltfile.ErrDamaged, "%s of damaged %s", c.name, c.damages)
		}
		expect.OK(t, s.Close())
		expect.Fails(t, c.do(t.Context(), s, a), "%s of a closed store", c.name)
	}
}

// halve cuts each value of a bucket in half.
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

// TestReadsAreBounded reads from a store with two assets, two token records and two changes. Each read has a
// limit, or starts after the first record or change. So it must return only one of the two.
func TestReadsAreBounded(t *testing.T) {
	s, _, _, _ := twoAssets(t)
	records, err := s.Scan(t.Context(), "", 1)
	expect.FatalIf(t, err != nil || len(records) != 1, "got %d records, %v; want 1", len(records), err)
	sealed, err := s.SealedAfter(t.Context(), records[0].ID, 10)
	if err != nil || len(sealed) != 1 || sealed[0].ID <= records[0].ID {
		t.Errorf("got %v, %v; want the record after %s", sealed, err, records[0].ID)
	}
	all, err := s.Changes(t.Context(), registry.ChangesQuery{Limit: 10, Bytes: registry.AnySize})
	if err != nil || len(all.Changes) != 2 {
		t.Fatalf("got %d changes, %v; want 2", len(all.Changes), err)
	}
	size := 0
	for _, r := range all.Changes {
		size += len(encodeChange(make([]byte, idSize), r))
	}
	for bytes, want := range map[int]int{size: 2, size - 1: 1} {
		page, err := s.Changes(t.Context(), registry.ChangesQuery{Limit: 10, Bytes: bytes})
		if err != nil || len(page.Changes) != want {
			t.Errorf("got %d changes in %d bytes, %v; want %d", len(page.Changes), bytes, err, want)
		}
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

// TestALateClaimReplacesNoReference applies the claims of two callers who have both seen that the reference is
// free. The reference must stay with the asset of the first caller.
func TestALateClaimReplacesNoReference(t *testing.T) {
	s, _, id, _ := twoAssets(t)
	for _, to := range []string{id, "00112233445566778899aabbccddeeff"} {
		w := &write{Record: registry.Record{ID: to}, claim: &claim{"key", "", to}}
		expect.Get(s.submit(t.Context(), w))(t)
	}
	expect.Value(t, id, "")(s.ClaimReference(t.Context(), "key", "", "another"))
}

// TestTimesOfWebhooksAreKeptInMilliseconds stores times that are more precise than milliseconds, as clocks give
// them. This store and the MongoDB store must keep the same times.
func TestTimesOfWebhooksAreKeptInMilliseconds(t *testing.T) {
	s, _, _, _ := twoAssets(t)
	fine := time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.FixedZone("x", 3600))
	want := fine.UTC().Truncate(time.Millisecond)
	p := webhook.Progress{FailedAt: fine, Next: fine, Succeeded: fine}
	expect.OK(t, s.Put(t.Context(), webhook.Endpoint{ID: "fine", ByAdmin: true, Created: fine, OldUntil: fine,
		Progress: p}))
	e := expect.Get(s.Endpoint(t.Context(), "fine"))(t)
	for name, got := range map[string]time.Time{
		"created": e.Created, "the end of the old seal": e.OldUntil, "failed": e.FailedAt, "next": e.Next, "succeeded": e.Succeeded,
	} {
		expect.Equal(t, got, want, "%s", name)
	}
}

// TestATokenRecordThatIsCutIsDamage cuts off an asset within its header, and within its token record. A read of
// the token record must return ErrDamaged.
func TestATokenRecordThatIsCutIsDamage(t *testing.T) {
	for _, size := range []int{headerSize - 1, headerSize + 3} {
		s, _, id, _ := twoAssets(t)
		expect.OK(t, s.file.Update(func(tx *bbolt.Tx) error {
			key, _ := registry.ParseID(id)
			return tx.Bucket(assetBucket).Put(key, bytes.Clone(tx.Bucket(assetBucket).Get(key)[:size]))
		}))
		expect.ErrOf(t, boltfile.ErrDamaged, "%d bytes", size)(s.SealedAfter(t.Context(), "", 10))
	}
}

// TestATermOfAClosedStoreIsNotRenewed closes the store of a process that has the term. The process must not be
// able to renew the term after that.
func TestATermOfAClosedStoreIsNotRenewed(t *testing.T) {
	s, _, _, _ := twoAssets(t)
	lead := func() (bool, error) {
		_, held, err := s.Lead(t.Context(), "me", time.Now(), time.Now().Add(time.Hour))
		return held, err
	}
	if held, err := lead(); !held || err != nil {
		t.Fatalf("got %t, %v; want the term", held, err)
	}
	expect.OK(t, s.Close())
	if held, err := lead(); held || err == nil {
		t.Errorf("got %t, %v; want no term and an error", held, err)
	}
}

// TestAStoreIsCountedAndCopied counts the contents of a store and of a copy of it. Both must have the same
// contents.
func TestAStoreIsCountedAndCopied(t *testing.T) {
	s, _, id, _ := twoAssets(t)
	a, err := s.Get(t.Context(), id, registry.AnySize)
	expect.OK(t, err)
	a.Position, err = s.Replace(t.Context(), a)
	expect.OK(t, err)
	var file bytes.Buffer
	expect.OK(t, s.Snapshot(func(int64) (io.Writer, error) { return &file, nil }))
	path := filepath.Join(t.TempDir(), "copy.db")
	expect.OK(t, os.WriteFile(path, file.Bytes(), 0o600))
	copied := expect.Get(Open(path, Options{Now: time.Now}))(t)
	defer copied.Close()
	want := Contents{Assets: 2, Changes: 3, Last: a.Position, Numbers: map[string]int{"2026-11-20": 2}}
	for name, of := range map[string]*Store{"the store": s, "the copy": copied} {
		got, err := of.Contents()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: got error %v; the contents differ (-want +got):\n%s", name, err, diff)
		}
	}
	expect.OK(t, s.Close())
	expect.FailsOf(t, "a closed store")(s.Contents())
	expect.Fails(t, s.Snapshot(func(int64) (io.Writer, error) { return io.Discard, nil }), "a copy of a closed store")
}
