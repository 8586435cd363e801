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
	"sync/atomic"
	"testing"
	"testing/synctest"
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
)

// world is a service on a store whose answers a test may falsify, and count.
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
	stale     int // commits that are to fail

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

func (w *world) FindSecret(ctx context.Context, hash string) (apikey.Key, apikey.Broker, error) {
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := onStore(t, openBolt(t))
	w.metrics = sdkmetric.NewManualReader()
	if err := w.checker.Measure(sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.metrics)).Meter("test")); err != nil {
		t.Fatal(err)
	}
	return w
}

// onStore returns a world on a store.
func onStore(t *testing.T, store storetest.Store) *world {
	t.Helper()
	w := &world{Store: store, now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	sealer, err := audit.NewSealer(keyring.Ring{bytes.Repeat([]byte("s"), 32)})
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := w.service.CreateBroker(t.Context(), operator, adminapi.NewBroker{Name: name}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) key(t *testing.T, broker string, change func(*adminapi.NewKey)) (id, secret string) {
	t.Helper()
	n := adminapi.NewKey{Broker: broker, KeySettings: adminapi.KeySettings{Name: "<ключ>", Role: "broker", Levels: "13"}}
	if change != nil {
		change(&n)
	}
	k, secret, err := w.service.CreateKey(t.Context(), operator, n)
	if err != nil {
		t.Fatal(err)
	}
	return k.ID, secret
}

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
	// remade is a chain that holds, made by who has not the registry's secret.
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
	for name, c := range map[string]struct {
		tamper func(*world)
		says   []string // none: all is well
	}{
		"nothing":                    {func(*world) {}, nil},
		"an entry is changed":        {func(w *world) { w.entries = change(1, func(e *adminapi.Entry) { e.Who = "nobody" }) }, []string{"entry 2 is not as it was written"}},
		"what it tells is changed":   {func(w *world) { w.entries = change(2, func(e *adminapi.Entry) { e.After = []byte(`{}`) }) }, []string{"entry 3 is not as it was written"}},
		"an entry is sealed by none": {func(w *world) { w.entries = change(0, func(e *adminapi.Entry) { e.Seal = "" }) }, []string{"entry 1 was not written by this registry"}},
		"the first is gone":          {func(w *world) { w.entries = drop(0) }, []string{"entry 2 follows entry 0"}},
		"one in the middle is gone":  {func(w *world) { w.entries = drop(2) }, []string{"entry 4 follows entry 2"}},
		"two are swapped": {func(w *world) {
			w.entries = func(all []adminapi.Entry) []adminapi.Entry { all[1], all[2] = all[2], all[1]; return all }
		}, []string{"entry 3 follows entry 1"}},
		"the whole is made anew":     {func(w *world) { w.entries = remade }, []string{"entry 1 was not written", "entry 4 was not written", "the log ends"}},
		"the tail is cut off":        {func(w *world) { w.entries = drop(3) }, []string{"the log ends with entry 3, and should with 4"}},
		"and the head put back":      {cutOff, []string{"does not match entry 3"}},
		"a key is no longer revoked": {func(w *world) { w.keys = onKeys(func(k *apikey.Key) { k.Revoked = time.Time{} }) }, []string{"does not match entry 4"}},
		"a key has another secret":   {func(w *world) { w.keys = onKeys(func(k *apikey.Key) { k.Secrets[0].Hash = authapi.Hash("mine") }) }, []string{"does not match entry 4"}},
		"a key was put in": {func(w *world) {
			w.keys = func(all []apikey.Key) []apikey.Key { return append(all, apikey.Key{ID: "key-z"}) }
		}, []string{"no entry describes key key-z"}},
		"a key was taken out":         {func(w *world) { w.keys = func([]apikey.Key) []apikey.Key { return nil } }, []string{"described by entry 4, is gone"}},
		"a key is of another broker ": {func(w *world) { w.keys = onKeys(func(k *apikey.Key) { k.Broker = "rich" }) }, []string{"does not match entry 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.broker(t, "брокер")
			id, _ := w.key(t, "брокер", nil)
			if _, _, err := w.service.RotateKey(t.Context(), operator, id, time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := w.service.RevokeKey(t.Context(), operator, id); err != nil {
				t.Fatal(err)
			}
			c.tamper(w)
			got, err := w.checker.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if (len(got.Problems) == 0) != (len(c.says) == 0) {
				t.Errorf("got %q", got.Problems)
			}
			for _, says := range c.says {
				if !strings.Contains(strings.Join(got.Problems, "; "), says) {
					t.Errorf("got %q, want %q", got.Problems, says)
				}
			}
			if told, want := w.told(t), fmt.Sprintf("registry.audit.checked=%d registry.audit.problems=%d", w.now.Unix(), len(got.Problems)); told != want {
				t.Errorf("metrics tell %s, want %s", told, want)
			}
		})
	}
}

// told returns the metrics.
func (w *world) told(t *testing.T) string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.metrics.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
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

// cutOff takes the last entry away as if it had never been.
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
	if err != nil {
		t.Fatal(err)
	}
	head := func(e adminapi.Entry) adminapi.Head { return adminapi.Head{Seq: e.Seq, Hash: e.Hash} }
	for name, c := range map[string]struct {
		known  adminapi.Head
		length int // of the log that is there now
		fine   bool
	}{
		"nothing is known":          {adminapi.Head{}, 3, true},
		"an earlier head":           {head(entries[1]), 3, true},
		"the same head":             {head(entries[2]), 3, true},
		"the tail is cut off":       {head(entries[2]), 2, false},
		"all of it is gone":         {head(entries[0]), 0, false},
		"another log of the length": {adminapi.Head{Seq: 2, Hash: authapi.Hash("x")}, 3, false},
	} {
		chain := adminapi.Follow(c.known)
		for _, e := range entries[:c.length] {
			chain.Add(e)
		}
		if problems := chain.End(); (len(problems) == 0) != c.fine {
			t.Errorf("%s: %q", name, problems)
		}
	}
}

func TestAChangeThatOthersWereFasterThanIsMadeAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.stale = 3
	w.broker(t, "a")
	w.stale = 1000
	if _, err := w.service.CreateBroker(t.Context(), operator, adminapi.NewBroker{Name: "b"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
	if _, err := w.service.CreateBroker(t.Context(), admin.Actor{Role: apikey.Auditor}, adminapi.NewBroker{Name: "b"}); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("an auditor: %v", err)
	}
}

func TestNoSecretOrHashIsToldByLogAndAudit(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	id, first := w.key(t, "b", nil)
	_, second, err := w.service.RotateKey(t.Context(), operator, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := w.Entries(t.Context(), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	told := w.log.String()
	for _, e := range entries {
		told += fmt.Sprintf("%+v %s %s", e, e.Before, e.After)
		if e.Who != operator.Name || e.From != operator.From || e.RequestID != "r" || !strings.Contains(w.log.String(), e.Hash) {
			t.Errorf("entry %+v", e)
		}
	}
	for _, secret := range []string{first, second, authapi.Hash(first), authapi.Hash(second)} {
		if strings.Contains(told, secret) {
			t.Errorf("%s is told", secret)
		}
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
	_, err3 := w.service.ChangeBroker(t.Context(), operator, "blocked", func(s *adminapi.BrokerSettings) error { s.Blocked = true; return nil })
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	w.now = soon
	want := ""
	for name, secret := range map[string]string{"unknown": apikey.New(), "mistyped": "ark_x", "expired": expired, "revoked": revoked, "rotated": rotated, "blocked": blocked, "an operator's": operators} {
		w.found = 0
		_, err := w.verifier.Verify(t.Context(), authapi.Hash(secret))
		if fault.KindOf(err) != fault.Unauthorized || w.found != 1 {
			t.Errorf("%s: %v, after %d looks", name, err, w.found)
			continue
		}
		if want == "" {
			want = err.Error()
		}
		if err.Error() != want {
			t.Errorf("%s: %v, others %s", name, err, want)
		}
	}
	if got, err := w.verifier.Verify(t.Context(), authapi.Hash(good)); err != nil || got.Broker != "b" || got.Levels != "13" {
		t.Errorf("a good key: %+v, %v", got, err)
	}
	from := netip.MustParseAddr("192.0.2.1")
	for name, secret := range map[string]string{"a broker's": good, "the sandbox's": "administrator", "unknown": "x"} {
		if _, err := w.operators.Operator(t.Context(), authapi.Hash(secret), from); err == nil || err.Error() != want {
			t.Errorf("as an operator %s: %v", name, err)
		}
	}
	if by, err := w.operators.Operator(t.Context(), authapi.Hash(operators), from); err != nil || by.Role != apikey.Operator {
		t.Errorf("an operator: %+v, %v", by, err)
	}
}

func TestWatchTellsWhatHasChanged(t *testing.T) {
	w := newWorld(t)
	watch := apikey.NewWatch(w)
	await := func(since string) authapi.WatchKeysResponse {
		t.Helper()
		got, err := watch.Await(t.Context(), since, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	start := await("")
	if !start.All {
		t.Errorf("the first answer is %+v", start)
	}
	if got := await(start.At); got.All || got.At != start.At {
		t.Errorf("nothing has changed, and the answer is %+v", got)
	}
	w.broker(t, "б")
	id, _ := w.key(t, "б", nil)
	got := await(start.At)
	if !slices.Equal(got.Keys, []string{id}) || !slices.Equal(got.Brokers, []string{"б"}) || got.All {
		t.Errorf("got %+v", got)
	}
	for name, since := range map[string]string{"another history": "1:" + authapi.Hash("x"), "one that is longer": "9:" + authapi.Hash("x"), "none": "x"} {
		if got := await(since); !got.All {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	changed := make(chan authapi.WatchKeysResponse)
	go func() {
		later, _ := watch.Await(t.Context(), got.At, 10*time.Second)
		changed <- later
	}()
	if _, err := w.service.RevokeKey(t.Context(), operator, id); err != nil {
		t.Fatal(err)
	}
	if later := <-changed; !slices.Equal(later.Keys, []string{id}) {
		t.Errorf("got %+v", later)
	}
}

func TestWatchTellsManyLongNamesAsAll(t *testing.T) {
	w := newWorld(t)
	watch := apikey.NewWatch(w)
	await := func(since string) authapi.WatchKeysResponse {
		t.Helper()
		got, err := watch.Await(t.Context(), since, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	start := await("")
	for n := range 10 {
		w.broker(t, fmt.Sprint(strings.Repeat("<", 198), n)) // six bytes each in JSON
	}
	some := await(start.At)
	if some.All || len(some.Brokers) != 10 {
		t.Errorf("got %+v", some)
	}
	for n := range 30 {
		w.broker(t, fmt.Sprint(strings.Repeat("<", 197), 10+n))
	}
	many := await(some.At)
	if !many.All || len(many.Brokers) > 0 {
		t.Errorf("%d brokers are told", len(many.Brokers))
	}
	if got := await(many.At); got.All || got.At != many.At {
		t.Errorf("it does not move on: %+v", got)
	}
}

func TestASecretIsNotLostWithWhatIsShownBesideIt(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	w.uses = errors.New("down")
	k, first, err := w.service.CreateKey(t.Context(), operator, adminapi.NewKey{Broker: "b", KeySettings: adminapi.KeySettings{Name: "n", Role: "broker"}})
	if err != nil || k.ID == "" {
		t.Fatalf("got %+v, %v", k, err)
	}
	rotated, second, err := w.service.RotateKey(t.Context(), operator, k.ID, time.Hour)
	if err != nil || len(rotated.Secrets) != 2 {
		t.Fatalf("got %+v, %v", rotated, err)
	}
	for _, secret := range []string{first, second} {
		if got, err := w.verifier.Verify(t.Context(), authapi.Hash(secret)); err != nil || got.KeyID != k.ID {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if revoked, err := w.service.RevokeKey(t.Context(), operator, k.ID); err != nil || revoked.Revoked == nil {
		t.Errorf("got %+v, %v", revoked, err)
	}
}

func TestTheLogIsCheckedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.broker(t, "b")
		var begun atomic.Int64
		release := make(chan struct{})
		w.entries = func(all []adminapi.Entry) []adminapi.Entry {
			begun.Add(1)
			<-release
			return all
		}
		done := make(chan error, 3)
		impatient, leave := context.WithCancel(t.Context())
		go func() { _, err := w.checker.Check(t.Context()); done <- err }()
		synctest.Wait()
		for _, ctx := range []context.Context{impatient, t.Context()} {
			go func() { _, err := w.checker.Check(ctx); done <- err }()
		}
		synctest.Wait()
		if got := begun.Load(); got != 1 {
			t.Errorf("%d checks read the log", got)
		}
		leave()
		synctest.Wait()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("who does not wait gets %v", err)
		}
		close(release)
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTheLogHoldsWhateverAnActorIsCalled(t *testing.T) {
	w := newWorld(t)
	by := admin.Actor{Name: "a\xffb", Role: apikey.Operator, From: "\xc3", RequestID: "я"[:1]}
	if _, err := w.service.CreateBroker(t.Context(), by, adminapi.NewBroker{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if found, err := w.checker.Check(t.Context()); err != nil || found.Entries != 1 || len(found.Problems) > 0 {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestATimeThatIsNoneIsNoEndOfAKey(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	id, _ := w.key(t, "b", nil)
	for _, text := range []string{"0001-01-01T00:00:00Z", "0001-01-01T02:00:00+02:00", "0001-01-01T00:00:00.0000001Z"} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		n := adminapi.NewKey{Broker: "b", KeySettings: adminapi.KeySettings{Name: "n", Role: "broker", Expires: &at}}
		_, _, creating := w.service.CreateKey(t.Context(), operator, n)
		_, changing := w.service.ChangeKey(t.Context(), operator, id, func(s *adminapi.KeySettings) error { s.Expires = &at; return nil })
		for _, err := range []error{creating, changing} {
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "body/expires") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestMeterRefusesWhatIsNoReport(t *testing.T) {
	meter := apikey.NewMeter(openBolt(t))
	use := authapi.Use{KeyID: "k", Addr: netip.MustParseAddr("192.0.2.1")}
	count := authapi.Count{KeyID: "k", Day: "2026-11-21", Class: "read", Requests: 1}
	if err := meter.Report(t.Context(), authapi.ReportUsageRequest{Uses: []authapi.Use{use}, Counts: []authapi.Count{count}}); err != nil {
		t.Error(err)
	}
	for name, r := range map[string]authapi.ReportUsageRequest{
		"an address of none": {Uses: []authapi.Use{{KeyID: "k"}}},
		"a key of no name":   {Uses: []authapi.Use{{Addr: use.Addr}}},
		"a key with a tag":   {Counts: []authapi.Count{{KeyID: "{x}", Day: count.Day, Class: "read"}}},
		"a day of none":      {Counts: []authapi.Count{{KeyID: "k", Day: "today", Class: "read"}}},
		"a class of none":    {Counts: []authapi.Count{{KeyID: "k", Day: count.Day, Class: "dance"}}},
		"less than nothing":  {Counts: []authapi.Count{{KeyID: "k", Day: count.Day, Class: "read", Requests: -1}}},
		"too much":           {Uses: slices.Repeat([]authapi.Use{use}, authapi.MaxReport+1)},
	} {
		if err := meter.Report(t.Context(), r); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestKeysAreCopiedWithAllThatIsKnownOfThem(t *testing.T) {
	w := newWorld(t)
	w.broker(t, "b")
	id, secret := w.key(t, "b", nil)
	use := authapi.Use{KeyID: id, Secret: 1, Addr: netip.MustParseAddr("192.0.2.1"), Micros: w.now.UnixMicro()}
	if err := w.AddUsage(t.Context(), []authapi.Use{use}, []authapi.Count{{KeyID: id, Day: "2026-11-21", Class: "read", Requests: 7}}); err != nil {
		t.Fatal(err)
	}
	to := openBolt(t)
	for range 2 { // it may be repeated
		if err := admin.Copy(t.Context(), w.Store, to, w.now); err != nil {
			t.Fatal(err)
		}
	}
	there := onStore(t, to)
	if found, err := there.checker.Check(t.Context()); err != nil || found.Entries != 2 || len(found.Problems) > 0 {
		t.Errorf("got %+v, %v", found, err)
	}
	if got, err := there.verifier.Verify(t.Context(), authapi.Hash(secret)); err != nil || got.Role != identity.Broker {
		t.Errorf("got %+v, %v", got, err)
	}
	shown, err := there.service.Key(t.Context(), id)
	if err != nil || len(shown.Secrets[0].Uses) != 1 {
		t.Errorf("got %+v, %v", shown, err)
	}
	if days, err := there.service.Usage(t.Context(), id, 1); err != nil || len(days) != 1 || days[0].Counts["read"] != 7 {
		t.Errorf("got %+v, %v", days, err)
	}
	there.broker(t, "changed since")
	if err := admin.Copy(t.Context(), w.Store, to, w.now); !errors.Is(err, admin.ErrOtherKeys) {
		t.Errorf("over one that has changed: %v", err)
	}
}
