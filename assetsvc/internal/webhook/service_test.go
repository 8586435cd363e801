package webhook_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// feed has changes of real assets at the listed positions.
type feed []int64

func (f feed) Horizon(context.Context) (int64, error) { return f[len(f)-1], nil }

func (f feed) Next(_ context.Context, mode string, after int64) (int64, error) {
	at := slices.IndexFunc(f, func(p int64) bool { return p > after })
	if mode == "test" || at < 0 {
		return 0, nil
	}
	return f[at], nil
}

// start is the time at which the tests run, and the position of the newest change.
var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var (
	b1         = identity.Identity{Broker: "b1", KeyID: "k1", Role: identity.Broker, Levels: "0"}
	b2         = identity.Identity{Broker: "b2", KeyID: "k2", Role: identity.Broker, Levels: "0"}
	b1t        = identity.Identity{Broker: "b1", KeyID: "k3", Role: identity.Broker, Levels: "1t"}
	admin      = identity.Identity{Broker: "b1", KeyID: "k4", Role: identity.Administrator}
	service    = identity.Identity{Broker: "authsvc", Role: identity.Service}
	concierge  = identity.Identity{Broker: "c", KeyID: "k5", Role: identity.Concierge}
	everywhere = []identity.Identity{b1, b2, b1t, admin, service, concierge, {}}
)

// bench is a service with a store in a file. Its clock stands still.
type bench struct {
	*webhook.Service
	store webhook.Store
	now   time.Time
}

// crowded is a store whose Put returns ErrFull while the field `full` is set.
type crowded struct {
	webhook.Store
	full bool
}

func (c *crowded) Put(ctx context.Context, e webhook.Endpoint) error {
	if c.full {
		return webhook.ErrFull
	}
	return c.Store.Put(ctx, e)
}

// count returns the number of all endpoints.
func (b *bench) count(t *testing.T) int {
	t.Helper()
	return len(expect.Get(b.store.Endpoints(t.Context(), "", "", webhook.MaxEndpoints))(t))
}

func newBench(t *testing.T) *bench {
	b := &bench{store: &crowded{Store: newStore(t)}, now: start}
	b.Service = webhook.NewService(webhook.ServiceConfig{
		Store: b.store,
		Feed:  feed{1, start.Add(-time.Minute).UnixMicro(), start.UnixMicro()},
		Seals: newSeals(t, firstSecret),
		CheckURL: func(url string) error {
			if !strings.HasPrefix(url, "https://") {
				return errors.New("the address is bad")
			}
			return nil
		},
		Now: func() time.Time { return b.now },
	})
	return b
}

func object(pairs ...string) record.Object {
	var o record.Object
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, record.Member{Name: pairs[i], Value: pairs[i+1]})
	}
	return o
}

const address = "https://example.org/hook"

func (b *bench) mustCreate(t *testing.T, by identity.Identity, pairs ...string) webhook.Shown {
	t.Helper()
	sent := object(append([]string{"url", address}, pairs...)...)
	created, _, err := b.Create(t.Context(), by, webhook.Creation{Fields: sent, Version: "2.5"})
	expect.OK(t, err)
	return created
}

// mustProgress saves progress of an endpoint, like the sender does.
func (b *bench) mustProgress(t *testing.T, id string, p webhook.Progress) {
	t.Helper()
	e, err1 := b.store.Endpoint(t.Context(), id)
	term, _, err2 := b.store.Lead(t.Context(), "test", b.now, b.now.Add(time.Hour))
	stale, err3 := b.store.Save(t.Context(), term.Number,
		[]webhook.Step{{ID: id, Generation: e.Generation, Progress: p}})
	if err := errors.Join(err1, err2, err3); err != nil || len(stale) > 0 {
		t.Fatalf("got %v and stale %v, want the progress saved", err, stale)
	}
}

func kindOf(err error) fault.Kind {
	if err == nil {
		return -1 // stands for no fault
	}
	return fault.KindOf(err)
}

const fine = fault.Kind(-1)

func TestCreate(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name string
		by   identity.Identity
		sent record.Object
		want fault.Kind
		at   []string // names of the fields with faults
	}{
		{"the least", b1, object("url", address), fine, nil},
		{"everything", b1, object("url", address, "mode", "_all_", "opt_fields", "*", "offset", "2026-11-20T11:00:00Z"),
			fine, nil},
		{"what the answer has shown", b1, object("url", address, "id", "x", "behind", "7"), fine, nil},
		{"an administrator", admin, object("url", address), fine, nil},
		{"a test-only key, in test mode", b1t, object("url", address, "mode", "test"), fine, nil},
		{"a test-only key, else", b1t, object("url", address), fault.Forbidden, []string{"mode"}},
		{"a concierge", concierge, object("url", address), fault.Forbidden, []string{"permission"}},
		{"a service", service, object("url", address), fault.Forbidden, []string{"permission"}},
		{"nobody", identity.Identity{}, object("url", address), fault.Forbidden, []string{"permission"}},
		{"no address", b1, object("mode", "test"), fault.Invalid, []string{"url"}},
		{"an empty state", b1, object("url", address, "state", ""), fault.Invalid, []string{"state"}},
		{"a state that is no text", b1, record.Object{{Name: "url", Value: address}, {Name: "state", Value: true}},
			fault.Invalid, []string{"state"}},
		{"no state", b1, record.Object{{Name: "url", Value: address}, {Name: "state"}}, fine, nil},
		{"filters", b1, record.Object{{Name: "url", Value: address}, {Name: "filters", Value: record.Object{
			{Name: "region", Value: record.List{"Одеська", "Київ"}}, {Name: "owner", Value: "b2"}, {Name: "type"},
		}}}, fine, nil},
		{"faulty filters", b1, record.Object{{Name: "url", Value: address}, {Name: "filters", Value: record.Object{
			{Name: "regoin", Value: record.List{"Одеська"}}, {Name: "owner", Value: record.List{true}},
			{Name: "status", Value: record.List{"sold"}}, {Name: "region", Value: record.Object{}},
		}}}, fault.Invalid, []string{"filters.regoin", "filters.owner", "filters.status", "filters.region"}},
		{"filters that are no object", b1, object("url", address, "filters", "region=Одеська"), fault.Invalid,
			[]string{"filters"}},
		{"long filters", b1, record.Object{{Name: "url", Value: address}, {Name: "filters", Value: long()}}, fault.Invalid,
			[]string{"filters"}},
		{"all faults at once", b1, object("url", "ftp://x", "mode", "x", "opt_fields", "title", "offset", "now", "z", "",
			"state", "gone"), fault.Invalid, []string{"z", "url", "offset", "state", "mode", "opt_fields"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := b.count(t)
			created, secret, err := b.Create(t.Context(), c.by, webhook.Creation{Fields: c.sent, Version: "2.4"})
			if got := kindOf(err); got != c.want {
				t.Fatalf("got %v (kind %d), want kind %d", err, got, c.want)
			}
			after := b.count(t)
			if err != nil {
				f, _ := errors.AsType[*fault.Error](err)
				var at []string
				for _, d := range f.Details {
					at = append(at, d.Name)
				}
				if diff := cmp.Diff(c.at, at); diff != "" || after != before {
					t.Errorf("%d endpoints are new, want 0; the faults differ (-want +got):\n%s", after-before, diff)
				}
				return
			}
			if after != before+1 || !strings.HasPrefix(secret, "whsec_") || !strings.HasPrefix(created.PublicKey, "whpk_") {
				t.Errorf("got %d new endpoints, secret %.6q and key %.5q; want 1, whsec_ and whpk_", after-before, secret,
					created.PublicKey)
			}
			if created.State != webhook.Unverified || created.Version != "2.4" || created.ID == "" {
				t.Errorf("got %+v, want an unverified endpoint of version 2.4", created)
			}
		})
	}
}

// long returns filters that are each short enough, but whose total length is above the limit.
func long() record.Object {
	var o record.Object
	for i, name := range []string{"region", "locality"} {
		var values record.List
		for n := range assetfilter.MaxValues {
			values = append(values, strings.Repeat(string(rune('а'+n)), assetfilter.MaxValue-i))
		}
		o = append(o, record.Member{Name: name, Value: values})
	}
	return o
}

func TestAnEndpointBeginsAtItsOffset(t *testing.T) {
	b := newBench(t)
	earlier := start.Add(-time.Hour)
	for _, c := range []struct {
		name, offset string
		want         int64
		behind       time.Duration
	}{
		{"without an offset at the newest change", "", start.UnixMicro(), 0},
		{"at an earlier one", earlier.Format(time.RFC3339), earlier.UnixMicro(), time.Minute},
		{"at the newest change for a later one", "2027-01-01", start.UnixMicro(), 0},
	} {
		created := b.mustCreate(t, b1, "offset", c.offset)
		got, err := b.Get(t.Context(), b1, created.ID)
		if err != nil || got.Position != c.want || got.Behind != c.behind {
			t.Errorf("%s: got position %d, %v behind, %v; want %d, %v", c.name, got.Position, got.Behind, err, c.want, c.behind)
		}
	}
	if e := b.mustCreate(t, b1, "mode", "test", "offset", earlier.Format(time.RFC3339)); e.Behind != 0 {
		t.Errorf("an endpoint of mode test: got %v behind, want 0: no test asset has changed", e.Behind)
	}
}

// TestWhoMayDoWhat calls every use case with every kind of caller, for an endpoint of a broker and for one of an
// administrator. The table has the fault that each caller must get.
func TestWhoMayDoWhat(t *testing.T) {
	type call = func(b *bench, by identity.Identity, id string) error
	change := func(pairs ...string) call {
		return func(b *bench, by identity.Identity, id string) error {
			_, err := b.Change(context.Background(), by, id, object(pairs...))
			return err
		}
	}
	calls := []struct {
		name string
		do   call
	}{
		{"get", func(b *bench, by identity.Identity, id string) error {
			_, err := b.Get(context.Background(), by, id)
			return err
		}},
		{"pause", change("state", "disabled")},
		{"move", change("url", address+"2")},
		{"replay", func(b *bench, by identity.Identity, id string) error {
			_, err := b.Replay(context.Background(), by, id, nil)
			return err
		}},
		{"rotate", func(b *bench, by identity.Identity, id string) error {
			_, _, err := b.Rotate(context.Background(), by, id, nil)
			return err
		}},
		{"remove", func(b *bench, by identity.Identity, id string) error {
			return b.Remove(context.Background(), by, id)
		}},
	}
	const no, none = fault.Forbidden, fault.NotFound
	for _, c := range []struct {
		of   identity.Identity
		want map[string][]fault.Kind // faults for the callers of the list everywhere; the keys are names of calls
	}{
		{b1, map[string][]fault.Kind{
			"get":    {fine, none, fine, fine, fine, no, no},
			"pause":  {fine, none, no, fine, fine, no, no},
			"move":   {fine, none, no, no, no, no, no},
			"replay": {fine, none, no, fine, fine, no, no},
			"rotate": {fine, none, no, no, no, no, no},
			"remove": {fine, none, no, fine, fine, no, no},
		}},
		{admin, map[string][]fault.Kind{
			"get":    {none, none, none, fine, fine, no, no},
			"pause":  {none, none, none, fine, fine, no, no},
			"move":   {none, none, none, fine, no, no, no},
			"replay": {none, none, none, fine, fine, no, no},
			"rotate": {none, none, none, fine, no, no, no},
			"remove": {none, none, none, fine, fine, no, no},
		}},
	} {
		b := newBench(t)
		for _, call := range calls {
			for i, by := range everywhere {
				before := b.mustCreate(t, c.of)
				err := call.do(b, by, before.ID)
				if got := kindOf(err); got != c.want[call.name][i] {
					t.Errorf("%s of an endpoint of %s %s by %s %q: got %v (kind %d), want kind %d", call.name, c.of.Role,
						c.of.Broker, by.Role, by.Broker, err, got, c.want[call.name][i])
				}
				after, gone := b.store.Endpoint(t.Context(), before.ID)
				if err != nil && (gone != nil || after.Generation != 1) {
					t.Errorf("%s by %s %q was refused: got generation %d, %v; want no change", call.name, by.Role, by.Broker,
						after.Generation, gone)
				}
				if err == nil && (gone == nil) == (call.name == "remove") {
					t.Errorf("%s by %s %q: got %v of the stored endpoint, want it gone after a removal only", call.name, by.Role,
						by.Broker, gone)
				}
				if gone == nil {
					expect.OK(t, b.store.Remove(t.Context(), before.ID))
				}
			}
		}
	}
}

// Promises: hook-list
func TestList(t *testing.T) {
	b := newBench(t)
	ids := map[string][]string{}
	for i := range 12 {
		by := []identity.Identity{b1, b2, admin}[i%3]
		e := b.mustCreate(t, by)
		ids["all"] = append(ids["all"], e.ID)
		ids[string(by.Role)+by.Broker] = append(ids[string(by.Role)+by.Broker], e.ID)
	}
	for _, c := range []struct {
		name         string
		by           identity.Identity
		broker, want string
	}{
		{"a broker", b1, "", "brokerb1"},
		{"a broker that asks for another", b1, "b2", "brokerb1"},
		{"an administrator", admin, "", "all"},
		{"an administrator that asks for a broker", admin, "b2", "brokerb2"},
		{"a service", service, "", "all"},
	} {
		want := slices.Sorted(slices.Values(ids[c.want]))
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			page, err := b.List(t.Context(), c.by, c.broker, after, 3)
			if err != nil || len(page) > 3 {
				t.Fatalf("%s: got %d endpoints and %v, want at most 3", c.name, len(page), err)
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				got = append(got, e.ID)
			}
		}
		expect.NoDiff(t, cmp.Diff(want, got), "%s: the endpoints differ", c.name)
	}
	if _, err := b.List(t.Context(), concierge, "", "", 3); kindOf(err) != fault.Forbidden {
		t.Errorf("a concierge: got %v, want a refusal", err)
	}
	for range 101 {
		b.mustCreate(t, admin)
	}
	if page, err := b.List(t.Context(), admin, "", "", 1000); err != nil || len(page) != 100 {
		t.Errorf("more than a page holds: got %d endpoints and %v, want 100", len(page), err)
	}
}

// TestChangesOfState changes endpoints in each state in which the sender may leave them. Each change must lead to
// the state of its case.
func TestChangesOfState(t *testing.T) {
	later := start.Add(time.Minute)
	active := webhook.Progress{Position: 7, State: webhook.Active, Verified: true}
	failing := active
	failing.Failures, failing.FailedAt, failing.LastError, failing.Next = 9, start, "it answered 500", later
	gone := failing
	gone.State, gone.Reason = webhook.Disabled, webhook.Gone
	fresh := webhook.Progress{Position: 7, State: webhook.Unverified, Failures: 1, FailedAt: start, LastError: "x", Next: later}
	unanswered := fresh
	unanswered.State, unanswered.Reason = webhook.Disabled, webhook.Unanswerable
	paused, pausedFresh := failing, fresh
	paused.State, paused.Reason = webhook.Disabled, webhook.Paused
	pausedFresh.State, pausedFresh.Reason = webhook.Disabled, webhook.Paused
	waiting := webhook.Progress{Position: 7, State: webhook.Unverified, Next: later}
	moved := webhook.Progress{Position: 7, State: webhook.Unverified}
	for _, c := range []struct {
		name string
		from webhook.Progress
		sent record.Object
		want webhook.Progress
	}{
		{"pause", failing, object("state", "disabled"), paused},
		{"pause what waits for an answer", fresh, object("state", "disabled"), pausedFresh},
		{"pause what is disabled", gone, object("state", "disabled"), gone},
		{"resume", paused, object("state", "active"), active},
		{"resume what is gone", gone, object("state", "active"), active},
		{"resume what has never answered: the challenge is sent at once", unanswered, object("state", "active"), moved},
		{"resume what is active", failing, object("state", "active"), failing},
		{"the same address", failing, object("url", address), failing},
		{"another address", gone, object("url", address+"2"), moved},
		{"another address of one that has never answered", fresh, object("url", address+"2"), waiting},
		{"what the answer has shown", fresh, object("url", address, "state", "unverified"), fresh},
	} {
		b := newBench(t)
		e := b.mustCreate(t, b1)
		b.mustProgress(t, e.ID, c.from)
		got, err := b.Change(t.Context(), b1, e.ID, c.sent)
		if diff := cmp.Diff(c.want, got.Progress); err != nil || diff != "" {
			t.Errorf("%s: got error %v; the progress differs (-want +got):\n%s", c.name, err, diff)
		}
		stored, err := b.store.Endpoint(t.Context(), e.ID)
		if diff := cmp.Diff(c.want, stored.Progress); err != nil || diff != "" {
			t.Errorf("%s: got error %v; the stored progress differs (-want +got):\n%s", c.name, err, diff)
		}
		b.mustProgress(t, e.ID, failing)
		active := active
		active.Position = 1
		got, err = b.Replay(t.Context(), b1, e.ID, object("offset", "1970-01-01"))
		if diff := cmp.Diff(active, got.Progress); err != nil || diff != "" {
			t.Errorf("replay: got error %v; the progress differs (-want +got):\n%s", err, diff)
		}
	}
}

// TestOnlyAnAdministratorResumesWhatOneHasStopped lets the owner of a stopped webhook pause, move, resume and
// replay it. Only the last two are refused.
func TestOnlyAnAdministratorResumesWhatOneHasStopped(t *testing.T) {
	b := newBench(t)
	e := b.mustCreate(t, b1)
	is := func(what string, got webhook.Shown, err error, state webhook.State, reason webhook.Reason) {
		t.Helper()
		if err != nil || got.State != state || got.Reason != reason {
			t.Fatalf("%s: got %s, %q, %v; want %s, %q", what, got.State, got.Reason, err, state, reason)
		}
	}
	off, on := object("state", "disabled"), object("state", "active")
	got, err := b.Change(t.Context(), b1, e.ID, off)
	is("paused", got, err, webhook.Disabled, webhook.Paused)
	got, err = b.Change(t.Context(), admin, e.ID, off)
	is("stopped", got, err, webhook.Disabled, webhook.Stopped)
	got, err = b.Change(t.Context(), b1, e.ID, off)
	is("paused again", got, err, webhook.Disabled, webhook.Stopped)
	got, err = b.Change(t.Context(), b1, e.ID, object("url", address+"2"))
	is("moved", got, err, webhook.Disabled, webhook.Stopped)
	for what, do := range map[string]func() (webhook.Shown, error){
		"resume": func() (webhook.Shown, error) { return b.Change(t.Context(), b1, e.ID, on) },
		"replay": func() (webhook.Shown, error) { return b.Replay(t.Context(), b1, e.ID, object()) },
	} {
		expect.FaultOf(t, fault.Forbidden, "%s by the owner", what)(do())
	}
	got, err = b.Get(t.Context(), b1, e.ID)
	is("after the refusals", got, err, webhook.Disabled, webhook.Stopped)
	got, err = b.Change(t.Context(), admin, e.ID, on)
	is("resumed", got, err, webhook.Unverified, "")
}

// TestTheTimeOfCreationIsOneValue uses a clock with more precision than stores keep. The answer to the creation
// must have the same time as a later read.
// Promises: hook-created
func TestTheTimeOfCreationIsOneValue(t *testing.T) {
	b := newBench(t)
	b.now = start.Add(123456789)
	created := b.mustCreate(t, b1)
	got, err := b.Get(t.Context(), b1, created.ID)
	if err != nil || !got.Created.Equal(created.Created) {
		t.Errorf("got %v, %v; want %v, as the creation has answered", got.Created, err, created.Created)
	}
}

func TestRotateKeepsTheFormerSecretForADay(t *testing.T) {
	b, seals := newBench(t), newSeals(t, firstSecret)
	created, first, err := b.Create(t.Context(), b1, webhook.Creation{Fields: object("url", address), Version: "2.5"})
	expect.OK(t, err)
	rotated, second, err := b.Rotate(t.Context(), b1, created.ID, object())
	if err != nil || second == first || rotated.PublicKey == created.PublicKey {
		t.Fatalf("got %v and the same secret: %t, want another secret and key", err, second == first)
	}
	if sealed, _, err := seals.Secret(rotated.Seal); err != nil || sealed != second {
		t.Errorf("got another secret than the new seal holds, %v; want the same", err)
	}
	former, _, err := seals.Secret(rotated.OldSeal)
	if err != nil || former != first || !rotated.OldUntil.Equal(start.Add(24*time.Hour)) {
		t.Errorf("got another former secret, until %v, %v; want the first until %v", rotated.OldUntil, err,
			start.Add(24*time.Hour))
	}
}

func TestACreationWithAnIdempotencyKeyIsRepeated(t *testing.T) {
	b := newBench(t)
	seed, older := []byte("seed of the newest secret"), []byte("seed of the secret before")
	in := webhook.Creation{Fields: object("url", address), Version: "2.5", Seeds: [][]byte{seed}}
	create := func(in webhook.Creation) (id, secret string, kind fault.Kind) {
		t.Helper()
		created, secret, err := b.Create(t.Context(), b1, in)
		return created.ID, secret, kindOf(err)
	}
	id, secret, _ := create(in)
	if again, told, kind := create(in); again != id || told != secret || kind != fine {
		t.Errorf("a repeat: got webhook %s, the same secret %t, kind %d; want %s and true", again, told == secret, kind, id)
	}
	other := in
	other.Fields = append(record.Object{{Name: "mode"}}, in.Fields...)
	if again, _, kind := create(other); again != id || kind != fine {
		t.Errorf("a repeat in other words: got webhook %s, kind %d; want %s", again, kind, id)
	}
	other.Fields = object("url", address+"2")
	if _, _, kind := create(other); kind != fault.Invalid {
		t.Errorf("another request under the same key: got kind %d, want %d", kind, fault.Invalid)
	}
	other = in
	other.Version = "2.4"
	if _, _, kind := create(other); kind != fault.Invalid {
		t.Errorf("another version under the same key: got kind %d, want %d", kind, fault.Invalid)
	}
	rotated := in
	rotated.Seeds = [][]byte{older, seed}
	if again, _, kind := create(rotated); again != id || kind != fine {
		t.Errorf("a repeat after the secret was replaced: got %s, kind %d; want %s", again, kind, id)
	}
	var wg sync.WaitGroup
	ids := make([]string, 8)
	in.Seeds = [][]byte{[]byte("another seed")}
	for i := range ids {
		wg.Go(func() { ids[i], _, _ = create(in) })
	}
	wg.Wait()
	if slices.Sort(ids); len(slices.Compact(ids)) != 1 || ids[0] == "" {
		t.Errorf("repeats at once: got webhooks %v, want one", ids)
	}
}

// TestAClockThatWasWrongFreesAKeyOfWebhooks creates webhooks earlier and later than now, such as by a wrong clock. If a
// creation is a day or more from now, the same key must create another webhook.
func TestAClockThatWasWrongFreesAKeyOfWebhooks(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	b := newBench(t)
	for _, ahead := range []time.Duration{-10 * year, -day, time.Millisecond - day, -time.Minute, time.Minute, day,
		10 * year} {
		in := webhook.Creation{Fields: object("url", address), Version: "2.5", Seeds: [][]byte{[]byte(ahead.String())}}
		b.now = start.Add(ahead)
		first, _, err := b.Create(t.Context(), b1, in)
		b.now = start
		second, _, err2 := b.Create(t.Context(), b1, in)
		if err != nil || err2 != nil || (first.ID == second.ID) != (ahead.Abs() < day) {
			t.Errorf("a clock %v ahead: got %s after %s, %v, %v; want the same only within a day", ahead, second.ID, first.ID, err, err2)
		}
	}
}

// TestTheNumberOfEndpointsIsBounded creates more endpoints at the same time than a broker may have. Only the
// permitted number may succeed. The endpoint of an administrator must not count.
// Promises: hook-bounds
func TestTheNumberOfEndpointsIsBounded(t *testing.T) {
	if webhook.MaxOfBroker != 32 || webhook.MaxEndpoints != 4096 {
		t.Errorf("got %d webhooks of a broker and %d of all, want 32 and 4,096", webhook.MaxOfBroker, webhook.MaxEndpoints)
	}
	b := newBench(t)
	b.mustCreate(t, admin)
	kinds := make([]fault.Kind, webhook.MaxOfBroker+8)
	var wg sync.WaitGroup
	for i := range kinds {
		wg.Go(func() {
			_, _, err := b.Create(t.Context(), b1, webhook.Creation{Fields: object("url", address), Version: "2.5"})
			kinds[i] = kindOf(err)
		})
	}
	wg.Wait()
	count := map[fault.Kind]int{}
	for _, k := range kinds {
		count[k]++
	}
	expect.NoDiff(t, cmp.Diff(map[fault.Kind]int{fine: webhook.MaxOfBroker, fault.Forbidden: 8}, count),
		"the answers differ")
	b = newBench(t)
	b.store.(*crowded).full = true
	_, _, err := b.Create(t.Context(), b2, webhook.Creation{Fields: object("url", address), Version: "2.5"})
	expect.ErrorIf(t, kindOf(err) != fault.Forbidden, "one more than all may have: got %v, want a refusal", err)
}

func TestConcurrentChangesAllCount(t *testing.T) {
	b := newBench(t)
	e := b.mustCreate(t, b1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if _, _, err := b.Rotate(t.Context(), b1, e.ID, nil); err != nil && kindOf(err) != fault.Conflict {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		replay := func() error {
			_, err := b.Replay(t.Context(), b1, e.ID, object("offset", start.Add(-time.Hour).Format(time.RFC3339)))
			return err
		}
		err := replay()
		for kindOf(err) == fault.Conflict { // the rotations were faster; a client repeats the request
			err = replay()
		}
		expect.Nil(t, err, "replay %d", i)
	}
	wg.Wait()
	got, err := b.Get(t.Context(), b1, e.ID)
	if want := start.Add(-time.Hour).UnixMicro(); err != nil || got.Position != want {
		t.Errorf("got position %d, %v; want %d, which no rotation has undone", got.Position, err, want)
	}
}
