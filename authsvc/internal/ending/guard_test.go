package ending

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/authsvc/internal/audit"
	"asset-registry/authsvc/internal/boltstore"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// errKilled is the error of all operations of a process that was killed.
var errKilled = errors.New("the process was killed")

// steps counts operations. The one after the last is not done, and no later one either.
type steps struct{ done, most int }

func (s *steps) take() error {
	if s.done == s.most {
		return errKilled
	}
	s.done++
	return nil
}

// endless is a number of steps that no test takes.
const endless = 1 << 30

// killable is a store of keys whose process can be killed before each change and each reading of the log.
type killable struct {
	*boltstore.Store
	*steps
}

func (k killable) Commit(ctx context.Context, head adminapi.Head, c admin.Change) error {
	if err := k.take(); err != nil {
		return err
	}
	return k.Store.Commit(ctx, head, c)
}

func (k killable) Tell(ctx context.Context, head adminapi.Head) error {
	if err := k.take(); err != nil {
		return err
	}
	return k.Store.Tell(ctx, head)
}

func (k killable) Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error) {
	if err := k.take(); err != nil {
		return nil, err
	}
	return k.Store.Entries(ctx, after, limit)
}

// world is a store of keys in a file, and the endings that an asset service keeps.
type world struct {
	t    *testing.T
	path string
	kept map[string]authapi.Ending

	store    killable
	guard    *Guard
	service  *admin.Service
	verifier *apikey.Verifier
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, path: filepath.Join(t.TempDir(), "tokens.db"), kept: map[string]authapi.Ending{}}
	w.start(endless)
	t.Cleanup(func() { w.store.Close() })
	return w
}

// secrets seal the log of a world.
var secrets = keyring.Ring{bytes.Repeat([]byte("s"), 32)}

// start starts a process that is killed after some steps.
func (w *world) start(most int) {
	w.t.Helper()
	if w.store.Store != nil {
		expect.OK(w.t, w.store.Close())
	}
	opened, err1 := boltstore.Open(w.path, boltstore.Options{})
	sealer, err2 := audit.NewSealer(secrets)
	expect.OK(w.t, errors.Join(err1, err2))
	w.store = killable{opened, &steps{most: most}}
	w.bind(sealer)
}

// bind makes the parts of a process that has just started.
func (w *world) bind(sealer *audit.Sealer) {
	log := slog.New(slog.DiscardHandler)
	service := admin.NewService(w.store, sealer, log, time.Now)
	guard := New(w.store, service, log, noop.NewMeterProvider().Meter(""))
	guard.patience = 3 * askEvery
	w.guard, w.service = guard, service.WithSecond(guard)
	w.verifier = apikey.NewVerifier(nil, w.store, time.Now).WithGuard(guard)
}

// hear lets the asset service and the auth service talk until nothing is new. The asset service is killed after some
// steps, too: each row that it keeps is one, as in MongoDB.
func (w *world) hear(most int) error {
	rows := &steps{most: most}
	notWaiting := func(context.Context, string, time.Duration) (none authapi.WatchKeysResponse, err error) {
		return none, nil
	}
	for {
		r := authapi.EndingsRequest{At: w.kept[authapi.HeadID]}
		answer, err := w.guard.Hear(w.t.Context(), r, notWaiting)
		ids := slices.Sorted(maps.Keys(w.kept))
		for i := 0; err == nil && answer.Behind; i++ {
			r.Endings, r.Last = nil, i+1 >= len(ids)
			if i < len(ids) {
				r.Endings = []authapi.Ending{w.kept[ids[i]]}
			}
			answer, err = w.guard.Hear(w.t.Context(), r, notWaiting)
			if err == nil && r.Last && answer.Behind {
				return errors.New("the auth service asks for more than all endings")
			}
		}
		if err != nil || len(answer.Endings) == 0 {
			return err
		}
		for _, e := range answer.Endings {
			if err := rows.take(); err != nil {
				return err
			}
			if e.Seq > w.kept[e.ID].Seq {
				w.kept[e.ID] = e
			}
		}
	}
}

// by is the operator of a test.
func by() admin.Actor { return admin.Actor{Name: "op", Role: apikey.Operator, Warnings: new([]string)} }

// broker and key make a broker and its key, which has the levels 1 and 2.
func (w *world) key(name string) (id, secret string) {
	w.t.Helper()
	_, err := w.service.CreateBroker(w.t.Context(), by(), adminapi.NewBroker{Name: name})
	settings := adminapi.KeySettings{Name: name, Role: "broker", Levels: "12"}
	k, secret, err2 := w.service.CreateKey(w.t.Context(), by(), adminapi.NewKey{Broker: name, KeySettings: settings})
	expect.OK(w.t, errors.Join(err, err2))
	return k.ID, secret
}

// opens reports whether a secret opens the registry. It is false, too, while keys wait.
func (w *world) opens(secret string) bool {
	w.t.Helper()
	_, err := w.verifier.Verify(w.t.Context(), authapi.Hash(secret))
	kind := fault.KindOf(err)
	if err != nil && kind != fault.Unauthorized && kind != fault.Unavailable && !errors.Is(err, errKilled) {
		w.t.Errorf("got %v, want an answer, or that keys wait", err)
	}
	return err == nil
}

// keep returns a function that lets the file go back to its present state. No process runs afterwards.
func (w *world) keep() (goBack func()) {
	w.t.Helper()
	copied := w.path + ".kept"
	expect.OK(w.t, w.store.Close())
	text, err := os.ReadFile(w.path)
	if err == nil {
		err = os.WriteFile(copied, text, 0o600)
	}
	expect.OK(w.t, err)
	w.store.Store = nil
	w.start(endless)
	return func() {
		expect.OK(w.t, errors.Join(w.store.Close(), os.Rename(copied, w.path), os.WriteFile(copied, text, 0o600)))
		w.store.Store = nil
	}
}

// checkLog checks the audit log: it has no problem, and says that entries were lost this many times.
func (w *world) checkLog(lost int) {
	w.t.Helper()
	sealer, err := audit.NewSealer(secrets)
	expect.OK(w.t, err)
	found, err := audit.NewChecker(w.store, admin.Records(w.store), sealer, time.Now).Check(w.t.Context())
	if err != nil || len(found.Problems) > 0 || len(found.Lost) != lost {
		w.t.Errorf("got %v, the problems %q and the losses %q; want none and %d", err, found.Problems, found.Lost, lost)
	}
}

// waysToEnd are all ways to end a right of a key.
var waysToEnd = []struct {
	name string
	end  func(ctx context.Context, s *admin.Service, id, broker string) error
}{
	{"a revocation", func(ctx context.Context, s *admin.Service, id, _ string) error {
		_, err := s.RevokeKey(ctx, by(), id)
		return err
	}},
	{"a block of its broker", func(ctx context.Context, s *admin.Service, _, broker string) error {
		_, err := s.ChangeBroker(ctx, by(), broker, func(b *adminapi.BrokerSettings) error { b.Blocked = true; return nil })
		return err
	}},
	{"a rotation without grace", func(ctx context.Context, s *admin.Service, id, _ string) error {
		_, _, err := s.RotateKey(ctx, by(), id, 0)
		return err
	}},
	{"a rotation whose grace ends soon", func(ctx context.Context, s *admin.Service, id, _ string) error {
		_, _, err := s.RotateKey(ctx, by(), id, time.Millisecond)
		return err
	}},
	{"rotations that push the secret out", func(ctx context.Context, s *admin.Service, id, _ string) (err error) {
		for range apikey.MaxSecrets + 1 {
			_, _, fails := s.RotateKey(ctx, by(), id, 0)
			err = errors.Join(err, fails)
		}
		return err
	}},
	{"an end that is brought forward", change(func(s *adminapi.KeySettings) {
		soon := time.Now().Add(2 * time.Millisecond)
		s.Expires = &soon
	})},
	{"a level that it loses", change(func(s *adminapi.KeySettings) { s.Levels = "1" })},
	{"another role", change(func(s *adminapi.KeySettings) { s.Role = "concierge" })},
	{"test assets only", change(func(s *adminapi.KeySettings) { s.Test = true })},
	{"fewer networks", change(func(s *adminapi.KeySettings) { s.Allow = []string{"192.0.2.0/24"} })},
	{"a level that it loses, and then a new name", func(ctx context.Context, s *admin.Service, id, _ string) error {
		lose := change(func(s *adminapi.KeySettings) { s.Levels = "1" })
		rename := change(func(s *adminapi.KeySettings) { s.Name = "other" })
		return errors.Join(lose(ctx, s, id, ""), rename(ctx, s, id, ""))
	}},
}

func change(
	set func(*adminapi.KeySettings),
) func(ctx context.Context, s *admin.Service, id, _ string) error {
	return func(ctx context.Context, s *admin.Service, id, _ string) error {
		_, err := s.ChangeKey(ctx, by(), id, func(v *adminapi.KeySettings) error { set(v); return nil })
		return err
	}
}

// TestWhatEndedStaysEnded lets a store go back to the time before each way to end a right. The right must stay ended,
// also if the store goes back twice. A key that nobody ended must open the registry.
func TestWhatEndedStaysEnded(t *testing.T) {
	for _, c := range waysToEnd {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			id, secret := w.key("one")
			_, other := w.key("other")
			if err := w.hear(endless); err != nil || !w.opens(secret) {
				t.Fatalf("before: got %v and a key that is refused, want one that opens the registry", err)
			}
			goBack := w.keep()
			expect.OK(t, errors.Join(w.hear(endless), c.end(t.Context(), w.service, id, "one"), w.hear(endless)))
			time.Sleep(3 * time.Millisecond) // the grace and the end of the key
			for times := range 2 {
				goBack()
				w.start(endless)
				if w.opens(secret) {
					t.Error("before an asset service has asked: got a key that opens the registry, want it to wait")
				}
				expect.OK(t, w.hear(endless))
				if w.opens(secret) || !w.opens(other) {
					t.Errorf("the store went back %d times: got %t and %t, want the ended key refused and the other not",
						times+1, w.opens(secret), w.opens(other))
				}
				w.checkLog(1)
			}
			w.start(endless)
			if err := w.hear(endless); err != nil || w.opens(secret) || !w.opens(other) {
				t.Errorf("after a start: got %v, want the ended key refused and the other not", err)
			}
		})
	}
}

// TestAKillAtEachStep kills the auth service or the asset service at each step, while a right ends, and while a store
// that went back is mended. A right whose end was acknowledged without a warning must stay ended all the time.
func TestAKillAtEachStep(t *testing.T) {
	for _, killed := range []string{"auth service", "asset service"} {
		points := 0
		for at, more := 0, true; more; at++ {
			t.Run(fmt.Sprint(killed, " ", at), func(t *testing.T) { more = runWithKill(t, killed, at) })
			points = at
		}
		expect.ErrorIf(t, points < 3, "%s: got %d points of a kill, want some", killed, points)
	}
}

// runWithKill ends a right, lets the store go back, and mends it. It kills one service after some steps, twice. It
// reports whether the service took more steps than that.
func runWithKill(t *testing.T, killed string, at int) (more bool) {
	w := newWorld(t)
	id, secret := w.key("one")
	_, other := w.key("other")
	expect.OK(t, w.hear(endless))
	goBack := w.keep()
	ofAuth, ofAssets := endless, endless
	if killed == "auth service" {
		ofAuth = at
	} else {
		ofAssets = at
	}
	w.start(ofAuth)
	err := errors.Join(w.hear(endless), change(func(s *adminapi.KeySettings) { s.Levels = "1" })(t.Context(), w.service, id, ""))
	heard := w.hear(ofAssets)
	acknowledged := err == nil && heard == nil // as Await sees it
	more = errors.Is(errors.Join(err, heard), errKilled)
	goBack()
	w.start(ofAuth)
	check := func(when string) {
		t.Helper()
		if acknowledged && w.opens(secret) {
			t.Errorf("%s: got a key that opens the registry, want its end to hold", when)
		}
	}
	check("the store went back")
	more = errors.Is(w.hear(ofAssets), errKilled) || more
	check("one service was killed")
	w.start(endless)
	check("it starts again")
	expect.OK(t, w.hear(endless))
	check("it has talked with the other")
	expect.ErrorIf(t, !w.opens(other), "the other key: got a refusal, want it to open the registry")
	if acknowledged {
		w.checkLog(1)
	}
	return more
}

// TestAProcessRemembersWhatNobodyConfirmed lets the store go back under a process whose endings no asset service has
// heard of. They must hold.
// Promises: endings-warned
func TestAProcessRemembersWhatNobodyConfirmed(t *testing.T) {
	w := newWorld(t)
	id, secret := w.key("one")
	_, other := w.key("other")
	if err := w.hear(endless); err != nil || !w.opens(secret) {
		t.Fatal(err)
	}
	goBack := w.keep()
	expect.OK(t, w.hear(endless))
	operator := by()
	expect.Get(w.service.RevokeKey(t.Context(), operator, id))(t)
	if warnings := *operator.Warnings; len(warnings) != 1 || !strings.Contains(warnings[0], "told later") {
		t.Errorf("the answer: got the warnings %q, want one that the asset services will be told later", warnings)
	}
	expect.FatalIf(t, w.opens(secret), "after the revocation: got a key that opens the registry, want a refusal")
	guard := w.guard
	goBack()
	w.start(endless)
	sealer, err := audit.NewSealer(secrets)
	expect.OK(t, err)
	w.bind(sealer)
	service := admin.NewService(w.store, sealer, slog.New(slog.DiscardHandler), time.Now)
	guard.store, guard.service = w.store, service // the process goes on; its connection leads to the store that went back
	w.guard, w.verifier = guard, apikey.NewVerifier(nil, w.store, time.Now).WithGuard(guard)
	expect.ErrorIf(t, w.opens(secret), "the store went back: got a key that opens the registry, want it to wait")
	expect.OK(t, w.hear(endless))
	if w.opens(secret) || !w.opens(other) {
		t.Errorf("got %t and %t, want the revoked key refused and the other not", w.opens(secret), w.opens(other))
	}
	w.checkLog(1)
}

// TestKeysWaitOnlyIfTheEndingsAreLost loses the kept endings, with and without a start of the store's server. Keys wait
// only if the store may have gone back too, and until a person accepts them.
func TestKeysWaitOnlyIfTheEndingsAreLost(t *testing.T) {
	w := newWorld(t)
	_, secret := w.key("one")
	expect.OK(t, w.hear(endless))
	w.kept = map[string]authapi.Ending{}
	if err := w.hear(endless); err != nil || !w.opens(secret) || len(w.kept) == 0 {
		t.Errorf("the server runs on: got %v, and %d endings; want an open registry and all endings told again",
			err, len(w.kept))
	}
	w.kept = map[string]authapi.Ending{}
	w.start(endless)
	for range 2 {
		if err := w.hear(endless); fault.KindOf(err) != fault.Unavailable || w.opens(secret) {
			t.Errorf("the server has started: got %v, want that all keys wait for a person", err)
		}
	}
	if err := w.store.Tell(t.Context(), adminapi.Head{}); err != nil { // what Accept does
		t.Fatal(err)
	}
	if err := w.hear(endless); err != nil || !w.opens(secret) {
		t.Errorf("a person has accepted: got %v, want an open registry", err)
	}
}

// TestAnotherProcessWaitsToo lets one process find a loss, and end what was lost only in part. A process that has read
// none of the lost entries must wait until the asset services have confirmed the new chain.
func TestAnotherProcessWaitsToo(t *testing.T) {
	w := newWorld(t)
	id, secret := w.key("one")
	if err := w.hear(endless); err != nil || !w.opens(secret) {
		t.Fatal(err)
	}
	stale := w.guard // has read nothing of what follows
	goBack := w.keep()
	expect.Get(w.service.RevokeKey(t.Context(), by(), id))(t)
	expect.OK(t, w.hear(endless))
	goBack()
	w.start(endless)
	stale.store = w.store
	kept := w.kept[authapi.HeadID]
	if _, _, err := w.service.NoteLoss(t.Context(), adminapi.Head{Seq: kept.Seq, Hash: kept.Hash}); err != nil {
		t.Fatal(err)
	}
	w.verifier = apikey.NewVerifier(nil, w.store, time.Now).WithGuard(stale)
	if w.opens(secret) {
		t.Error("before the revocation is written again: got a key that opens the registry, want it to wait")
	}
	expect.OK(t, w.hear(endless))
	expect.FaultOf(t, fault.Unauthorized, "after it")(w.verifier.Verify(t.Context(), authapi.Hash(secret)))
}

// TestTheStoreGoesBackWhileAServiceWaits lets another process note the loss of an entry that an asset service keeps,
// while the service waits for a later one. The new chain is no later entry: the service must be asked for its endings.
func TestTheStoreGoesBackWhileAServiceWaits(t *testing.T) {
	w := newWorld(t)
	id, secret := w.key("one")
	expect.OK(t, w.hear(endless))
	goBack := w.keep()
	expect.Get(w.service.RevokeKey(t.Context(), by(), id))(t)
	expect.OK(t, w.hear(endless))
	guard, kept := w.guard, w.kept[authapi.HeadID]
	answer, err := guard.Hear(t.Context(), authapi.EndingsRequest{At: kept},
		func(ctx context.Context, _ string, _ time.Duration) (none authapi.WatchKeysResponse, err error) {
			goBack()
			w.start(endless)
			guard.store = w.store
			_, _, err = w.service.NoteLoss(ctx, adminapi.Head{Seq: kept.Seq, Hash: kept.Hash})
			return none, err
		})
	if err != nil || !answer.Behind || len(answer.Endings) > 0 {
		t.Errorf("got %+v, %v; want to be asked for the endings", answer, err)
	}
	expect.OK(t, w.hear(endless))
	expect.FaultOf(t, fault.Unauthorized, "the revoked key")(w.verifier.Verify(t.Context(), authapi.Hash(secret)))
}

// TestAWaitWithoutAnEntryAsksNoMore lets a wait end without an entry. The store must not be asked again, because the
// time of the request may be over.
func TestAWaitWithoutAnEntryAsksNoMore(t *testing.T) {
	w := newWorld(t)
	id, _ := w.key("one")
	expect.OK(t, w.hear(endless))
	answer, err := w.guard.Hear(t.Context(), authapi.EndingsRequest{At: w.kept[authapi.HeadID]},
		func(ctx context.Context, since string, _ time.Duration) (authapi.WatchKeysResponse, error) {
			_, err := w.service.RevokeKey(ctx, by(), id) // a later read would find it
			return authapi.WatchKeysResponse{At: since}, err
		})
	expect.ErrorIf(t, err != nil || len(answer.Endings) > 0, "got %+v, %v; want no ending yet", answer, err)
	expect.OK(t, w.hear(endless))
}

// slow answers from the store as it was before a pause.
type slow struct {
	apikey.Finder
	pause func()
}

func (s *slow) FindSecret(ctx context.Context, hash string) (apikey.Found, error) {
	found, err := s.Finder.FindSecret(ctx, hash)
	if pause := s.pause; pause != nil {
		s.pause = nil
		pause()
	}
	return found, err
}

// TestAnAnswerOfBeforeTheMendingIsAskedAgain reads a key from a store that went back. Before the answer arrives, the
// store is mended.
// Promises: endings-hold
func TestAnAnswerOfBeforeTheMendingIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	id, secret := w.key("one")
	_, other := w.key("other")
	expect.OK(t, w.hear(endless))
	goBack := w.keep()
	expect.Get(w.service.RevokeKey(t.Context(), by(), id))(t)
	expect.OK(t, w.hear(endless))
	goBack()
	w.start(endless)
	finder := &slow{Finder: w.store, pause: func() {
		expect.OK(t, w.hear(endless))
		expect.Get(w.guard.Head(t.Context()))(t) // another request has found that the store is right again
	}}
	w.verifier = apikey.NewVerifier(nil, finder, time.Now).WithGuard(w.guard)
	if w.opens(secret) || !w.opens(other) {
		t.Errorf("got %t and %t, want the revoked key refused and the other not", w.opens(secret), w.opens(other))
	}
}
