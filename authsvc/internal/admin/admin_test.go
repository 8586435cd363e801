package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/boltstore"
	"asset-registry/authsvc/internal/storetest"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// world is a service on a store. A test can change the store's answers, and count its calls.
type world struct {
	storetest.Store
	service   *admin.Service
	checker   *audit.Checker
	verifier  *apikey.Verifier
	operators *admin.Authenticator
	log       bytes.Buffer
	metrics   *sdkmetric.ManualReader
	now       time.Time
	found     int // calls of FindSecret
	stale     int // number of the next commits that fail with ErrStale

	entries func([]adminapi.Entry) []adminapi.Entry
	keys    func([]apikey.Key) []apikey.Key
	uses    error
	head    func(adminapi.Head) adminapi.Head
}

func (w *world) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	all, err := w.Store.Entries(ctx, 0, 1000)
	if err != nil || w.entries == nil {
		return w.Store.Entries(ctx, after, limit)
	}
	all = w.entries(all)
	return all[min(int(after), len(all)):], nil
}

func (w *world) Keys(ctx context.Context, after string, limit int) ([]apikey.Key, error) {
	keys, err := w.Store.Keys(ctx, after, limit)
	if err == nil && w.keys != nil {
		keys = w.keys(keys)
	}
	return keys, err
}

func (w *world) Uses(ctx context.Context, ids []string) (map[string]map[int][]adminapi.Use, error) {
	if w.uses != nil {
		return nil, w.uses
	}
	return w.Store.Uses(ctx, ids)
}

func (w *world) Head(ctx context.Context) (adminapi.Head, error) {
	head, err := w.Store.Head(ctx)
	if err == nil && w.head != nil {
		head = w.head(head)
	}
	return head, err
}

func (w *world) FindSecret(ctx context.Context, hash string) (apikey.Found, error) {
	w.found++
	return w.Store.FindSecret(ctx, hash)
}

func (w *world) Commit(ctx context.Context, head adminapi.Head, c admin.Change) error {
	if w.stale > 0 {
		w.stale--
		return admin.ErrStale
	}
	return w.Store.Commit(ctx, head, c)
}

func openBolt(t *testing.T) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(filepath.Join(t.TempDir(), "tokens.db"), boltstore.Options{})
	expect.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// secrets are the registry's secrets.
var secrets = keyring.Ring{bytes.Repeat([]byte("s"), 32)}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := onStore(t, openBolt(t))
	w.metrics = sdkmetric.NewManualReader()
	w.checker.Measure(sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.metrics)).Meter("test"))
	return w
}

func onStore(t *testing.T, store storetest.Store) *world {
	t.Helper()
	w := &world{Store: store, now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	sealer, err := audit.NewSealer(secrets)
	expect.OK(t, err)
	log := slog.New(slog.NewJSONHandler(&w.log, nil))
	clock := func() time.Time { return w.now }
	w.service = admin.NewService(w, sealer, log, clock)
	w.checker = audit.NewChecker(w, admin.Records(w), sealer, clock)
	w.verifier = apikey.NewVerifier(apikey.Sandbox(), w, clock)
	w.operators = admin.NewAuthenticator(w.verifier, w, log, clock)
	return w
}

var local = netip.MustParseAddr("192.0.2.1")

var operator = admin.Actor{Name: "key-1 Ольга", Role: apikey.Operator, From: "192.0.2.1", RequestID: "r"}

func (w *world) broker(t *testing.T, name string) {
	t.Helper()
	expect.Get(w.service.CreateBroker(t.Context(), operator, adminapi.NewBroker{Name: name}))(t)
}

func (w *world) key(t *testing.T, broker string, change func(*adminapi.NewKey)) (id, secret string) {
	t.Helper()
	n := adminapi.NewKey{Broker: broker, KeySettings: adminapi.KeySettings{Name: "<ключ>", Role: "broker", Levels: "13"}}
	if change != nil {
		change(&n)
	}
	k, secret, err := w.service.CreateKey(t.Context(), operator, n)
	expect.OK(t, err)
	return k.ID, secret
}

// Promises: audit-chain
func TestTheCheckFindsWhatWasTamperedWith(t *testing.T) {
	drop := func(at int) func([]adminapi.Entry) []adminapi.Entry {
		return func(all []adminapi.Entry) []adminapi.Entry { return slices.Delete(slices.Clone(all), at, at+1) }
	}
	change := func(at int, work func(*adminapi.Entry)) func([]adminapi.Entry) []adminapi.Entry {
		return func(all []adminapi.Entry) []adminapi.Entry {
			all = slices.Clone(all)
			work(&all[at])
			return all
		}
	}
	// remade changes the author of all entries, and computes their hashes again. So the chain of hashes is valid, but
	// it was made without the registry's secret.
	remade := func(all []adminapi.Entry) []adminapi.Entry {
		all = slices.Clone(all)
		prev := ""
		for i := range all {
			all[i].Who, all[i].Prev = "nobody", prev
			prev, _ = all[i].Sum()
			all[i].Hash = prev
		}
		return all
	}
	// otherBranch replaces an entry by a different entry with the same number. The registry has sealed the new entry,
	// as if somebody had restored a backup and a different change had followed.
	otherBranch := func(all []adminapi.Entry) []adminapi.Entry {
		sealer, err := audit.NewSealer(secrets)
		expect.OK(t, err)
		all = slices.Clone(all)
		other := all[1]
		other.Who = "nobody"
		all[1], err = sealer.Append(adminapi.Head{Seq: all[0].Seq, Hash: all[0].Hash}, other)
		expect.OK(t, err)
		return all
	}
	for name, c := range map[string]struct {
		tamper func(*world)
		says   []string // texts that the reported problems must contain; nil: no problem
	}{
		"an untouched log": {func(*world) {}, nil},
		"an entry has another author": {func(w *world) {
			w.entries = change(1, func(e *adminapi.Entry) { e.Who = "nobody" })
		}, []string{"entry 2 is not as it was written"}},
		"an entry has another record": {func(w *world) {
			w.entries = change(2, func(e *adminapi.Entry) { e.After = []byte(`{}`) })
		}, []string{"entry 3 is not as it was written"}},
		"an entry has no seal": {func(w *world) {
			w.entries = change(0, func(e *adminapi.Entry) { e.Seal = "" })
		}, []string{"entry 1 is sealed with a secret that this registry does not have"}},
		"the first entry is missing":     {func(w *world) { w.entries = drop(0) }, []string{"entry 2 follows entry 0"}},
		"an entry in between is missing": {func(w *world) { w.entries = drop(2) }, []string{"entry 4 follows entry 2"}},
		"an entry of another branch": {func(w *world) {
			w.entries = otherBranch
		}, []string{"entry 3 does not have the hash of the entry before it"}},
		"two entries are swapped": {func(w *world) {
			w.entries = func(all []adminapi.Entry) []adminapi.Entry { all[1], all[2] = all[2], all[1]; return all }
		}, []string{"entry 3 follows entry 1"}},
		"the whole log is rebuilt": {func(w *world) {
			w.entries = remade
		}, []string{"entry 1 was not written", "entry 4 was not written", "the log ends"}},
		"the last entry is missing": {func(w *world) {
			w.entries = drop(3)
		}, []string{"the log ends with entry 3, and should with 4"}},
		"the last entry is missing and the head is set back": {cutOff, []string{"does not match entry 3"}},
		"a revoked key is valid again": {func(w *world) {
			w.keys = onKeys(func(k *apikey.Key) { k.Revoked = time.Time{} })
		}, []string{"does not match entry 4"}},
		"a key has another secret": {func(w *world) {
			w.keys = onKeys(func(k *apikey.Key) { k.Secrets[0].Hash = authapi.Hash("mine") })
		}, []string{"does not match entry 4"}},
		"a key without an entry is added": {func(w *world) {
			w.keys = func(all []apikey.Key) []apikey.Key { return append(all, apikey.Key{ID: "key-z"}) }
		}, []string{"no entry describes key key-z"}},
		"a key is removed": {func(w *world) {
			w.keys = func([]apikey.Key) []apikey.Key { return nil }
		}, []string{"described by entry 4, is gone"}},
		"a key has another broker": {func(w *world) {
			w.keys = onKeys(func(k *apikey.Key) { k.Broker = "rich" })
		}, []string{"does not match entry 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.broker(t, "брокер")
			id, _ := w.key(t, "брокер", nil)
			if _, _, err := w.service.RotateKey(t.Context(), operator, id, time.Hour); err != nil {
				t.Fatal(err)
			}
			expect.Get(w.service.RevokeKey(t.Context(), operator, id))(t)
			c.tamper(w)
			got, err := w.checker.Check(t.Context())
			expect.OK(t, err)
			if (len(got.Problems) == 0) != (len(c.says) == 0) {
				t.Errorf("got problems %q, want %q", got.Problems, c.says)
			}
			for _, says := range c.says {
				if !strings.Contains(strings.Join(got.Problems, "; "), says) {
					t.Errorf("got problems %q, want %q", got.Problems, says)
				}
			}
			want := fmt.Sprintf("registry.audit.checked.timestamp=%d registry.audit.problems=%d", w.now.Unix(), len(got.Problems))
			expect.Equal(t, w.told(t), want, "metrics")
		})
	}
}

// told returns the gauges with their values, sorted.
func (w *world) told(t *testing.T) string {
	t.Helper()
	var all metricdata.ResourceMetrics
	expect.OK(t, w.metrics.Collect(t.Context(), &all))
	var told []string
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Gauge[int64]:
			told = append(told, fmt.Sprintf("%s=%d", m.Name, data.DataPoints[0].Value))
		case metricdata.Gauge[float64]:
			told = append(told, fmt.Sprintf("%s=%.0f", m.Name, data.DataPoints[0].Value))
		}
	}
	slices.Sort(told)
	return strings.Join(told, " ")
}

// cutOff removes the last entry and sets the head back to the entry before it.
func cutOff(w *world) {
	w.entries = func(all []adminapi.Entry) []adminapi.Entry { return all[:3] }
	w.head = func(adminapi.Head) adminapi.Head {
		entries, _ := w.Store.Entries(context.Background(), 2, 1)
		return adminapi.Head{Seq: 3, Hash: entries[0].Hash}
	}
}

func onKeys(work func(*apikey.Key)) func([]apikey.Key) []apikey.Key {
	return func(all []apikey.Key) []apikey.Key {
		for i := range all {
			work(&all[i])
		}
		return all
	}
}

func TestAHeadKnownFromBeforeFindsWhatTheServerCannot(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.broker(t, name)
	}
	entries, err := w.Entries(t.Context(), 0, 10)
	expect.OK(t, err)
	head := func(e adminapi.Entry) adminapi.Head { return adminapi.Head{Seq: e.Seq, Hash: e.Hash} }
	for name, c := range map[string]struct {
		known  adminapi.Head
		length int // number of entries that the log has now
		fine   bool
	}{
		"no head is known":                {adminapi.Head{}, 3, true},
		"an earlier head is known":        {head(entries[1]), 3, true},
		"the current head is known":       {head(entries[2]), 3, true},
		"the last entry is missing":       {head(entries[2]), 2, false},
		"the log is empty":                {head(entries[0]), 0, false},
		"the known head has another hash": {adminapi.Head{Seq: 2, Hash: authapi.Hash("x")}, 3, false},
	} {
		chain := adminapi.Follow(c.known)
		for _, e := range entries[:c.length] {
			chain.Add(e)
		}
		if problems := chain.End(); (len(problems) == 0) != c.fine {
			t.Errorf("%s: got problems %q, want problems: %t", name, problems, !c.fine)
		}
	}
}

func TestAChangeThatOthersWereFasterThanIsMadeAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.stale = 3
	w.broker(t, "a")
	w.stale = 1000
	n := adminapi.NewBroker{Name: "b"}
	expect.FaultOf(t, fault.Conflict, "every commit stale")(w.service.CreateBroker(t.Context(), operator, n))
	auditor := admin.Actor{Role: apikey.Auditor}
	expect.FaultOf(t, fault.Forbidden, "an auditor")(w.service.CreateBroker(t.Context(), auditor, n))
}

func TestNoSecretOrHashIsToldByLogAndAudit(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	id, first := w.key(t, "b", nil)
	_, second, err := w.service.RotateKey(t.Context(), operator, id, 0)
	expect.OK(t, err)
	entries, err := w.Entries(t.Context(), 0, 10)
	expect.OK(t, err)
	told := w.log.String()
	for _, e := range entries {
		told += fmt.Sprintf("%+v %s %s", e, e.Before, e.After)
		if e.Who != operator.Name || e.From != operator.From || e.RequestID != "r" {
			t.Errorf("got entry %+v, want one by %+v", e, operator)
		}
		if !strings.Contains(w.log.String(), e.Hash) {
			t.Errorf("got log %s, want the hash %s of entry %d in it", w.log.String(), e.Hash, e.Seq)
		}
	}
	for _, secret := range []string{first, second, authapi.Hash(first), authapi.Hash(second)} {
		expect.ErrorIf(t, strings.Contains(told, secret), "got the secret or hash %s in %s, want none", secret, told)
	}
}

func TestEveryBadKeyCostsAndReadsTheSame(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	w.broker(t, "blocked")
	soon := w.now.Add(time.Minute)
	_, good := w.key(t, "b", nil)
	_, expired := w.key(t, "b", func(n *adminapi.NewKey) { n.Expires = &soon })
	revokedID, revoked := w.key(t, "b", nil)
	rotatedID, rotated := w.key(t, "b", nil)
	_, blocked := w.key(t, "blocked", nil)
	_, operators := w.key(t, "", func(n *adminapi.NewKey) { n.Role, n.Levels = "operator", "" })
	_, err := w.service.RevokeKey(t.Context(), operator, revokedID)
	_, _, err2 := w.service.RotateKey(t.Context(), operator, rotatedID, time.Minute)
	block := func(s *adminapi.BrokerSettings) error { s.Blocked = true; return nil }
	_, err3 := w.service.ChangeBroker(t.Context(), operator, "blocked", block)
	expect.OK(t, errors.Join(err, err2, err3))
	w.now = soon
	want := ""
	for name, secret := range map[string]string{
		"an unknown key": apikey.New(), "a mistyped key": "ark_x", "an expired key": expired, "a revoked key": revoked,
		"a rotated secret": rotated, "a blocked broker's key": blocked, "an operator's key": operators,
	} {
		w.found = 0
		_, err := w.verifier.Verify(t.Context(), authapi.Hash(secret))
		if fault.KindOf(err) != fault.Unauthorized || w.found != 1 {
			t.Errorf("%s: got %v after %d lookups, want a fault of kind Unauthorized after 1", name, err, w.found)
			continue
		}
		if want == "" {
			want = err.Error()
		}
		expect.ErrorIf(t, err.Error() != want, "%s: got %v, want %s", name, err, want)
	}
	got, err := w.verifier.Verify(t.Context(), authapi.Hash(good))
	if err != nil || got.Broker != "b" || got.Levels != "13" {
		t.Errorf("a valid key: got %+v, %v; want broker b with levels 13", got, err)
	}
	from := netip.MustParseAddr("192.0.2.1")
	for name, secret := range map[string]string{
		"a broker's key": good, "a sandbox key": "administrator", "an unknown key": "x",
	} {
		if _, err := w.operators.Operator(t.Context(), authapi.Hash(secret), from); err == nil || err.Error() != want {
			t.Errorf("%s in the admin API: got %v, want %s", name, err, want)
		}
	}
	by, err := w.operators.Operator(t.Context(), authapi.Hash(operators), from)
	if err != nil || by.Role != apikey.Operator {
		t.Errorf("an operator's key: got %+v, %v; want the role %v", by, err, apikey.Operator)
	}
}

func TestASecretIsNotLostWithWhatIsShownBesideIt(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	w.uses = errors.New("down")
	n := adminapi.NewKey{Broker: "b", KeySettings: adminapi.KeySettings{Name: "n", Role: "broker"}}
	k, first, err := w.service.CreateKey(t.Context(), operator, n)
	expect.FatalIf(t, err != nil || k.ID == "", "create: got %+v, %v; want a key with an id", k, err)
	rotated, second, err := w.service.RotateKey(t.Context(), operator, k.ID, time.Hour)
	if err != nil || len(rotated.Secrets) != 2 {
		t.Fatalf("rotate: got %+v, %v; want a key with 2 secrets", rotated, err)
	}
	for _, secret := range []string{first, second} {
		if got, err := w.verifier.Verify(t.Context(), authapi.Hash(secret)); err != nil || got.KeyID != k.ID {
			t.Errorf("verify: got %+v, %v; want key %s", got, err, k.ID)
		}
	}
	if revoked, err := w.service.RevokeKey(t.Context(), operator, k.ID); err != nil || revoked.Revoked == nil {
		t.Errorf("revoke: got %+v, %v; want a revoked key", revoked, err)
	}
}

func TestTheLogHoldsWhateverAnActorIsCalled(t *testing.T) {
	w := newWorld(t)
	by := admin.Actor{Name: "a\xffb", Role: apikey.Operator, From: "\xc3", RequestID: "я"[:1]}
	expect.Get(w.service.CreateBroker(t.Context(), by, adminapi.NewBroker{Name: "b"}))(t)
	if found, err := w.checker.Check(t.Context()); err != nil || found.Entries != 1 || len(found.Problems) > 0 {
		t.Errorf("got %+v, %v; want 1 entry and no problem", found, err)
	}
}

func TestATimeThatIsNoneIsNoEndOfAKey(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	id, _ := w.key(t, "b", nil)
	for _, text := range []string{"0001-01-01T00:00:00Z", "0001-01-01T02:00:00+02:00", "0001-01-01T00:00:00.0000001Z"} {
		at, err := time.Parse(time.RFC3339, text)
		expect.OK(t, err)
		n := adminapi.NewKey{Broker: "b", KeySettings: adminapi.KeySettings{Name: "n", Role: "broker", Expires: &at}}
		_, _, creating := w.service.CreateKey(t.Context(), operator, n)
		expire := func(s *adminapi.KeySettings) error { s.Expires = &at; return nil }
		_, changing := w.service.ChangeKey(t.Context(), operator, id, expire)
		for _, err := range []error{creating, changing} {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "body/expires") {
				t.Errorf("%s: got %v, want a fault of kind Invalid about body/expires", text, err)
			}
		}
	}
}

func TestKeysAreCopiedWithAllThatIsKnownOfThem(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	id, secret := w.key(t, "b", nil)
	use := authapi.Use{KeyID: id, Secret: 1, Addr: netip.MustParseAddr("192.0.2.1"), Micros: w.now.UnixMicro()}
	count := authapi.Count{KeyID: id, Day: "2026-11-21", Class: "read", Requests: 7}
	expect.OK(t, w.AddUsage(t.Context(), []authapi.Use{use}, []authapi.Count{count}))
	to := openBolt(t)
	for range 2 { // a copy may be repeated
		expect.OK(t, admin.Copy(t.Context(), w.Store, to, w.now))
	}
	there := onStore(t, to)
	if found, err := there.checker.Check(t.Context()); err != nil || found.Entries != 2 || len(found.Problems) > 0 {
		t.Errorf("check of the copy: got %+v, %v; want 2 entries and no problem", found, err)
	}
	got, err := there.verifier.Verify(t.Context(), authapi.Hash(secret))
	if err != nil || got.Role != identity.Broker {
		t.Errorf("verify in the copy: got %+v, %v; want the role %v", got, err, identity.Broker)
	}
	shown, err := there.service.Key(t.Context(), id)
	if err != nil || len(shown.Secrets[0].Uses) != 1 {
		t.Errorf("key in the copy: got %+v, %v; want 1 use", shown, err)
	}
	days, err := there.service.Usage(t.Context(), id, 1)
	if err != nil || len(days) != 1 || days[0].Counts["read"] != 7 {
		t.Errorf("usage in the copy: got %+v, %v; want 1 day with 7 reads", days, err)
	}
	there.broker(t, "changed since")
	expect.Err(t, admin.Copy(t.Context(), w.Store, to, w.now), admin.ErrOtherKeys, "copy over a changed store")
}

// TestKeysAreNotCopiedIntoAnotherRegistry copies keys into a store with a shorter log of another registry.
func TestKeysAreNotCopiedIntoAnotherRegistry(t *testing.T) {
	w, there := newWorld(t), onStore(t, openBolt(t))
	w.broker(t, "b")
	id, _ := w.key(t, "b", nil)
	there.broker(t, "another")
	expect.Err(t, admin.Copy(t.Context(), w.Store, there.Store, w.now), admin.ErrOtherKeys, "")
	expect.FaultOf(t, fault.NotFound, "the key in the other registry")(there.service.Key(t.Context(), id))
}
