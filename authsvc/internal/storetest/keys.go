package storetest

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

var made = time.Date(2026, 11, 21, 10, 0, 0, 123_456_000, time.UTC)

// newKey returns a key of a broker. The hash of its first secret is authapi.Hash(id).
func newKey(id, broker string) apikey.Key {
	return apikey.Key{
		ID: id, Broker: broker, Created: made, Modified: made.Add(time.Second),
		Settings: apikey.Settings{
			Name: "ключ <" + id + ">", Role: identity.Broker, Levels: "13", Test: true, Expires: made.AddDate(1, 0, 0),
			Limits: authapi.Limits{"write": {"1s": 5}},
			Allow:  []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		},
		Secrets: []apikey.Secret{{Number: 1, Hash: authapi.Hash(id), Created: made}},
	}
}

// entry returns the entry of the audit log that follows the given head. The argument `about` is the subject of the
// entry.
func entry(head adminapi.Head, about string) adminapi.Entry {
	return adminapi.Entry{
		Seq: head.Seq + 1, Time: made, Who: "хтось", Action: "x", Subject: about, After: []byte(`{"name":"я"}`),
		Prev: head.Hash, Hash: authapi.Hash(fmt.Sprint(head.Seq, about)),
	}
}

func headOf(e adminapi.Entry) adminapi.Head { return adminapi.Head{Seq: e.Seq, Hash: e.Hash} }

// commitChange commits a change with a new entry after the current head. It returns the change with the entry.
func commitChange(t *testing.T, s Store, c admin.Change) admin.Change {
	t.Helper()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	about := "broker"
	if c.Key != nil {
		about = "key " + c.Key.ID
	}
	c.Entry = entry(head, about)
	if err := s.Commit(t.Context(), head, c); err != nil {
		t.Fatal(err)
	}
	checkHead(t, s, headOf(c.Entry))
	return c
}

func checkHead(t *testing.T, s Store, want adminapi.Head) {
	t.Helper()
	if got, err := s.Head(t.Context()); err != nil || got != want {
		t.Errorf("head: got %v, %v; want %v", got, err, want)
	}
}

func missing(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, apikey.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func testEmpty(t *testing.T, open Opener) {
	s := open(t, "a")
	checkHead(t, s, adminapi.Head{})
	_, err := s.Key(t.Context(), "none")
	missing(t, err)
	_, err = s.Broker(t.Context(), "none")
	missing(t, err)
	_, err = s.FindSecret(t.Context(), authapi.Hash("none"))
	missing(t, err)
	keys, err := s.Keys(t.Context(), "", 10)
	equal(t, len(keys), err, 0)
	keys, err = s.KeysBack(t.Context(), "", 10)
	equal(t, len(keys), err, 0)
	brokers, err := s.Brokers(t.Context(), "", 10)
	equal(t, len(brokers), err, 0)
	entries, err := s.Entries(t.Context(), 0, 10)
	equal(t, len(entries), err, 0)
	days, err := s.Counts(t.Context(), "none", []string{"2026-11-21"})
	equal(t, days, err, []adminapi.Day{})
	uses, err := s.Uses(t.Context(), []string{"none"})
	equal(t, len(uses["none"]), err, 0)
}

func testCommit(t *testing.T, open Opener) {
	s := open(t, "a")
	k := newKey("k1", "b")
	first := commitChange(t, s, admin.Change{Key: &k, NewHash: k.Secrets[0].Hash})
	for _, head := range []adminapi.Head{{}, {Seq: 1, Hash: authapi.Hash("another")}, {Seq: 2, Hash: first.Entry.Hash}} {
		late := newKey("k2", "b")
		c := admin.Change{Key: &late, NewHash: late.Secrets[0].Hash, Entry: entry(head, "late")}
		if err := s.Commit(t.Context(), head, c); !errors.Is(err, admin.ErrStale) {
			t.Errorf("commit at head %v: got %v, want ErrStale", head, err)
		}
		_, err := s.Key(t.Context(), "k2")
		missing(t, err)
		_, err = s.FindSecret(t.Context(), late.Secrets[0].Hash)
		missing(t, err)
	}
	checkHead(t, s, headOf(first.Entry))
	b := apikey.Broker{
		Name: "брокер", Title: "t", Contact: "c", Blocked: true, Raise: 5, RaisedUntil: made, Created: made, Modified: made,
	}
	second := commitChange(t, s, admin.Change{Broker: &b})
	got, err := s.Broker(t.Context(), b.Name)
	equal(t, got, err, b)
	entries, err := s.Entries(t.Context(), 0, 10)
	equal(t, entries, err, []adminapi.Entry{first.Entry, second.Entry})
	entries, err = s.Entries(t.Context(), 0, 1)
	equal(t, entries, err, []adminapi.Entry{first.Entry})
	third := commitChange(t, s, admin.Change{}) // an entry about a thing of another service
	entries, err = s.Entries(t.Context(), 1, 10)
	equal(t, entries, err, []adminapi.Entry{second.Entry, third.Entry})
	keys, err := s.Keys(t.Context(), "", 10)
	equal(t, len(keys), err, 1)
	brokers, err := s.Brokers(t.Context(), "", 10)
	equal(t, len(brokers), err, 1)
}

// testRemoval removes a broker, and then tries it again.
func testRemoval(t *testing.T, open Opener) {
	s := open(t, "a")
	b, kept := apikey.Broker{Name: "b", Created: made, Modified: made}, apikey.Broker{Name: "c", Created: made}
	commitChange(t, s, admin.Change{Broker: &b})
	last := headOf(commitChange(t, s, admin.Change{Broker: &kept}).Entry)
	for _, want := range []error{nil, admin.ErrStale} {
		gone := entry(last, "gone")
		gone.Before = []byte(`{}`)
		if err := s.Commit(t.Context(), last, admin.Change{Broker: &b, Remove: true, Entry: gone}); !errors.Is(err, want) {
			t.Errorf("remove a broker: got %v, want %v", err, want)
		}
		if want == nil {
			last = headOf(gone)
		}
	}
	_, err := s.Broker(t.Context(), "b")
	missing(t, err)
	brokers, err := s.Brokers(t.Context(), "", 10)
	equal(t, brokers, err, []apikey.Broker{kept})
	checkHead(t, s, last)
}

func testRecords(t *testing.T, open Opener) {
	s := open(t, "a")
	var want []apikey.Key
	for i := range 7 {
		k := newKey(fmt.Sprint("key-", i), "b")
		commitChange(t, s, admin.Change{Key: &k, NewHash: k.Secrets[0].Hash})
		b := apikey.Broker{Name: fmt.Sprint("b", i, " І"), Created: made, Modified: made}
		commitChange(t, s, admin.Change{Broker: &b})
		want = append(want, k)
	}
	var keys []apikey.Key
	for after := ""; ; {
		page, err := s.Keys(t.Context(), after, 3)
		if err != nil || len(page) > 3 {
			t.Fatalf("got %d keys, %v; want at most 3", len(page), err)
		}
		if len(page) == 0 {
			break
		}
		keys, after = append(keys, page...), page[len(page)-1].ID
	}
	equal(t, keys, nil, want)
	keys = nil
	for before := ""; ; {
		page, err := s.KeysBack(t.Context(), before, 3)
		if err != nil || len(page) > 3 {
			t.Fatalf("backwards: got %d keys, %v; want at most 3", len(page), err)
		}
		if len(page) == 0 {
			break
		}
		keys, before = append(keys, page...), page[len(page)-1].ID
	}
	slices.Reverse(keys)
	equal(t, keys, nil, want)
	for before, last := range map[string]int{"key-6": 5, "key-55": 5, "key-0": -1, "a": -1, "zzz": 6, "ї": 6} {
		keys, err := s.KeysBack(t.Context(), before, 1)
		if last < 0 {
			equal(t, len(keys), err, 0)
		} else {
			equal(t, keys, err, want[last:last+1])
		}
	}
	brokers, err := s.Brokers(t.Context(), "b4 І", 10)
	equal(t, len(brokers), err, 2)
	want[3].Settings.Name, want[3].Revoked = "another", made
	commitChange(t, s, admin.Change{Key: &want[3]})
	got, err := s.Key(t.Context(), want[3].ID)
	equal(t, got, err, want[3])
	keys, err = s.Keys(t.Context(), "", 10)
	equal(t, keys, err, want)
}

func testFindKey(t *testing.T, open Opener) {
	s := open(t, "a")
	b := apikey.Broker{Name: "b", Blocked: true, Created: made, Modified: made}
	commitChange(t, s, admin.Change{Broker: &b})
	k, operator := newKey("k1", "b"), newKey("k2", "")
	commitChange(t, s, admin.Change{Key: &k, NewHash: k.Secrets[0].Hash})
	commitChange(t, s, admin.Change{Key: &operator, NewHash: operator.Secrets[0].Hash})
	second := apikey.Secret{Number: 2, Hash: authapi.Hash("second"), Created: made}
	k.Secrets = append([]apikey.Secret{second}, k.Secrets...)
	commitChange(t, s, admin.Change{Key: &k, NewHash: second.Hash})
	for _, hash := range []string{authapi.Hash("k1"), second.Hash} {
		got, err := s.FindSecret(t.Context(), hash)
		head, _ := s.Head(t.Context())
		equal(t, got, err, apikey.Found{Key: k, Broker: b, Head: head})
	}
	got, err := s.FindSecret(t.Context(), authapi.Hash("k2"))
	equal(t, got.Key, err, operator)
	equal(t, got.Broker, err, apikey.Broker{})
}

func testManyCommits(t *testing.T, open Opener) {
	s := open(t, "a")
	const writers, each = 6, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for done := 0; done < each; {
				head, err := s.Head(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				k := newKey(fmt.Sprint("k", w, "-", done), "b")
				c := admin.Change{Key: &k, NewHash: k.Secrets[0].Hash, Entry: entry(head, k.ID)}
				err = s.Commit(t.Context(), head, c)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, admin.ErrStale):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	entries, err := s.Entries(t.Context(), 0, 1000)
	equal(t, len(entries), err, writers*each)
	prev := adminapi.Head{}
	for _, e := range entries {
		if e.Seq != prev.Seq+1 || e.Prev != prev.Hash {
			t.Errorf("got entry %d after hash %q, want the entry that follows %v", e.Seq, e.Prev, prev)
		}
		prev = headOf(e)
	}
	keys, err := s.Keys(t.Context(), "", 1000)
	equal(t, len(keys), err, writers*each)
}

func testKeysReopen(t *testing.T, open Opener) {
	s := open(t, "a")
	k := newKey("k1", "b")
	c := commitChange(t, s, admin.Change{Key: &k, NewHash: k.Secrets[0].Hash})
	count := authapi.Count{KeyID: "k1", Day: "2026-11-21", Class: "read", Requests: 1}
	if err := s.AddUsage(t.Context(), nil, []authapi.Count{count}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, "a")
	checkHead(t, s, headOf(c.Entry))
	got, err := s.FindSecret(t.Context(), k.Secrets[0].Hash)
	equal(t, got.Key, err, k)
	days, err := s.Counts(t.Context(), "k1", []string{"2026-11-21"})
	equal(t, len(days), err, 1)
}

func testRestore(t *testing.T, open Opener) {
	s := open(t, "a")
	k := newKey("k1", "b")
	k.Secrets = append(k.Secrets, apikey.Secret{Number: 2, Hash: authapi.Hash("2"), Created: made})
	b := apikey.Broker{Name: "b", Created: made, Modified: made}
	first := entry(adminapi.Head{}, "x")
	for range 2 {
		for _, c := range []admin.Change{{Broker: &b}, {Key: &k}, {Entry: first}} {
			if err := s.Restore(t.Context(), c, []string{k.Secrets[0].Hash, k.Secrets[1].Hash}); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkHead(t, s, headOf(first))
	got, err := s.FindSecret(t.Context(), authapi.Hash("2"))
	equal(t, got, err, apikey.Found{Key: k, Broker: b, Head: headOf(first)})
	entries, err := s.Entries(t.Context(), 0, 10)
	equal(t, entries, err, []adminapi.Entry{first})
	if strings.Contains(fmt.Sprint(entries), authapi.Hash("2")) {
		t.Errorf("got entries %v, want no hash of a secret in them", entries)
	}
}

func testReseal(t *testing.T, open Opener) {
	s := open(t, "a")
	for i := range 3 {
		b := apikey.Broker{Name: fmt.Sprint("b", i), Created: made, Modified: made}
		commitChange(t, s, admin.Change{Broker: &b})
	}
	before, err := s.Entries(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before[0].Seal, before[1].Seal = "another", "one more"
	for _, entries := range [][]adminapi.Entry{nil, before[:2]} {
		if err := s.Reseal(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Entries(t.Context(), 0, 10)
	equal(t, after, err, before)
	if now, err := s.Head(t.Context()); err != nil || now != head {
		t.Errorf("got head %v, %v; want %v as before", now, err, head)
	}
}

func testCommitMissing(t *testing.T, open Opener) {
	s := open(t, "a")
	k, b := newKey("k1", "b"), apikey.Broker{Name: "b", Created: made, Modified: made}
	for _, c := range []admin.Change{{Key: &k}, {Broker: &b}} {
		c.Entry = entry(adminapi.Head{}, "x")
		c.Entry.Before = []byte(`{}`)
		if err := s.Commit(t.Context(), adminapi.Head{}, c); !errors.Is(err, admin.ErrStale) {
			t.Errorf("commit: got %v, want ErrStale", err)
		}
	}
	checkHead(t, s, adminapi.Head{})
	_, err := s.Key(t.Context(), k.ID)
	missing(t, err)
}
