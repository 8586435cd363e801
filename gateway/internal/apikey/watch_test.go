package apikey

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// telling is a Watcher that returns its answers one after the other. Then it ends the watch and fails.
type telling struct {
	answers []authapi.WatchKeysResponse
	asked   []string
	end     context.CancelFunc
}

func (w *telling) WatchKeys(_ context.Context, since string, _ time.Duration) (authapi.WatchKeysResponse, error) {
	w.asked = append(w.asked, since)
	if len(w.answers) == 0 {
		w.end()
		return authapi.WatchKeysResponse{}, errors.New("lost")
	}
	answer := w.answers[0]
	w.answers = w.answers[1:]
	return answer, nil
}

func TestWatchForgetsAndConfirms(t *testing.T) {
	now := time.Unix(1000, 0)
	from := &fake{}
	cache := Cached(from, time.Hour, func() time.Time { return now }, 1<<30)
	cache.VerifyKey(t.Context(), "h")
	cache.VerifyKey(t.Context(), "changed")
	now = now.Add(time.Minute)
	ctx, end := context.WithCancel(t.Context())
	w := &telling{end: end, answers: []authapi.WatchKeysResponse{
		{At: "1"}, {At: "1"}, {At: "2", Keys: []string{"id of changed"}},
	}}
	cache.Watch(ctx, w, slog.New(slog.DiscardHandler))
	if got, want := fmt.Sprint(w.asked), "[ 1 1 2]"; got != want || cache.forgets.Load() != 2 {
		t.Errorf("got calls since %s and %d changes, want %s and 2", got, cache.forgets.Load(), want)
	}
	cache.VerifyKey(t.Context(), "h")
	expect.Equal(t, from.asked.Load(), 2, "calls")
	cache.VerifyKey(t.Context(), "changed")
	expect.Equal(t, from.asked.Load(), 3, "calls")
}

// failing is a Watcher that fails between the times in the fields `from` and `until`. Before and after, it answers
// immediately.
type failing struct {
	from, until time.Time
	calls       int
	since       string
}

func (w *failing) WatchKeys(_ context.Context, since string, _ time.Duration) (authapi.WatchKeysResponse, error) {
	w.calls++
	w.since = since
	if now := time.Now(); now.Before(w.from) || now.After(w.until) {
		return authapi.WatchKeysResponse{At: "1"}, nil
	}
	return authapi.WatchKeysResponse{At: "2", All: true}, errors.New("down")
}

// TestALostWatchIsToldOnce loses the watch for a short time and for a long one. While it is lost, no key may stay
// trusted. Only the long loss may be logged, and only once. The watcher must be asked at most ten times a second.
func TestALostWatchIsToldOnce(t *testing.T) {
	for _, c := range []struct {
		lost  time.Duration
		lines int // wanted number of log lines "cannot watch"; there must be as many lines "watched again"
	}{
		{watchLost - watchPause, 0},
		{3 * watchLost, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			from := &fake{}
			cache := Cached(from, time.Hour, time.Now, 1<<30)
			begun := time.Now()
			w := &failing{from: begun.Add(time.Minute), until: begun.Add(time.Minute + c.lost)}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			go cache.Watch(ctx, w, slog.New(slog.NewTextHandler(&log, nil)))
			time.Sleep(time.Minute - time.Millisecond)
			cache.VerifyKey(t.Context(), "h")
			cache.VerifyKey(t.Context(), "h")
			expect.Equal(t, from.asked.Load(), 1, "while the watch works: calls")
			time.Sleep(unwatchedTTL + watchPause + 2*time.Millisecond)
			cache.VerifyKey(t.Context(), "h")
			expect.Equal(t, from.asked.Load(), 2, "while the watch is lost: calls")
			time.Sleep(time.Minute)
			synctest.Wait()
			if most := int((2*time.Minute + 2*time.Second) / watchPause); w.calls > most {
				t.Errorf("got %d calls of the watcher, want at most %d", w.calls, most)
			}
			if w.since != "1" {
				t.Errorf("got a call since %q, want one since 1, the last answer without an error", w.since)
			}
			for _, line := range []string{"cannot watch changes", "are watched again"} {
				if got := strings.Count(log.String(), line); got != c.lines {
					t.Errorf("lost for %v: got %q %d times, want %d", c.lost, line, got, c.lines)
				}
			}
		})
	}
}

// TestAWatchThatEndsIsNoLoss ends the watch while its call waits. Nothing may be logged.
func TestAWatchThatEndsIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, end := context.WithCancel(t.Context())
		begun := time.Now()
		w := ending{end: func() {
			if time.Since(begun) > 2*watchLost {
				end()
			}
		}}
		Cached(&fake{}, time.Hour, time.Now, 1<<30).Watch(ctx, w, slog.New(slog.NewTextHandler(&log, nil)))
		if log.Len() > 0 {
			t.Errorf("got the log %q, want none", log.String())
		}
	})
}

// ending is a Watcher that waits as long as the call says, or until the watch ends.
type ending struct{ end func() }

func (w ending) WatchKeys(ctx context.Context, since string, wait time.Duration) (authapi.WatchKeysResponse, error) {
	time.Sleep(wait)
	if w.end(); ctx.Err() != nil {
		time.Sleep(2 * watchLost)
		return authapi.WatchKeysResponse{}, ctx.Err()
	}
	return authapi.WatchKeysResponse{At: "1"}, nil
}

// changing is a Watcher that reports a change every 10 ms.
type changing struct {
	calls      int
	isRestless bool // it answers at once
	isSame     bool // it reports no change after the first answer
}

func (w *changing) WatchKeys(context.Context, string, time.Duration) (authapi.WatchKeysResponse, error) {
	w.calls++
	if !w.isRestless {
		time.Sleep(10 * time.Millisecond)
	}
	if w.isSame {
		return authapi.WatchKeysResponse{At: "1"}, nil
	}
	return authapi.WatchKeysResponse{At: fmt.Sprint(w.calls)}, nil
}

// TestAWatcherIsAskedAtOnce has watchers that must be asked again without a pause: after a change, and after an
// answer that took long.
func TestAWatcherIsAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		quick := &changing{}
		Cached(&fake{}, time.Hour, time.Now, 1<<30).Watch(ctx, quick, slog.New(slog.DiscardHandler))
		if quick.calls < 99 {
			t.Errorf("got %d calls in a second of changes, want 99", quick.calls)
		}
		ctx, end = context.WithTimeout(t.Context(), time.Second)
		defer end()
		restless := &changing{isRestless: true}
		Cached(&fake{}, time.Hour, time.Now, 1<<30).Watch(ctx, restless, slog.New(slog.DiscardHandler))
		if restless.calls < 99 || restless.calls > 101 {
			t.Errorf("got %d calls in a second of answers at once, want 100", restless.calls)
		}
		ctx, end = context.WithTimeout(t.Context(), time.Second)
		defer end()
		same := &changing{isRestless: true, isSame: true}
		Cached(&fake{}, time.Hour, time.Now, 1<<30).Watch(ctx, same, slog.New(slog.DiscardHandler))
		expect.Equal(t, same.calls, 11, "calls in a second of answers at once without a change")
		ctx, end = context.WithTimeout(t.Context(), 4*watchWait+time.Millisecond)
		defer end()
		calls := 0
		Cached(&fake{}, time.Hour, time.Now, 1<<30).Watch(ctx, ending{func() { calls++ }}, slog.New(slog.DiscardHandler))
		if calls != 5 { // the fifth call is not finished when the watch ends
			t.Errorf("got %d calls in the time of 4 that wait, want 5", calls)
		}
	})
}

func TestAnEarlierConfirmationTakesNothingBack(t *testing.T) {
	now := time.Unix(1000, 0)
	cache := Cached(&fake{}, time.Hour, func() time.Time { return now }, 1<<30)
	cache.VerifyKey(t.Context(), "h")
	cache.Confirm(now.Add(time.Minute))
	cache.Confirm(now)
	now = now.Add(time.Minute)
	if _, known, _ := cache.Recall("h"); !known {
		t.Error("got nothing, want the key that was confirmed")
	}
}

func TestACallThatIsTooOldIsNotShared(t *testing.T) {
	for _, c := range []struct {
		age  time.Duration // age of the first call when the second request comes
		want int           // number of calls
	}{
		{unwatchedTTL - 1, 1},
		{unwatchedTTL, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := make(held, 1)
			cache := watched(from, time.Hour, time.Now)
			results := make(chan error, 2)
			verify := func() {
				_, err := cache.VerifyKey(t.Context(), "h")
				results <- err
			}
			go verify()
			old := <-from
			time.Sleep(c.age)
			go verify()
			synctest.Wait()
			refused := fault.New(fault.Unavailable, fault.URL, "auth", "down") // an error that is not remembered
			old <- refused
			synctest.Wait()
			calls := 1
			select {
			case again := <-from:
				calls++
				again <- refused
			default:
			}
			err := errors.Join(<-results, <-results)
			if misses := cache.misses.Load(); calls != c.want || misses != 2 || !errors.Is(err, refused) {
				t.Errorf("at an age of %v: got %d calls, %d misses, %v; want %d calls, 2 misses", c.age, calls, misses, err,
					c.want)
			}
		})
	}
}

// TestARevokedKeyIsRefusedWithoutASecondCall lets a request share a call that is too old. While it waits, the key is
// revoked, and the cache learns of the revocation. The request must get the refusal, and count as one miss only.
func TestARevokedKeyIsRefusedWithoutASecondCall(t *testing.T) {
	refused := fault.New(fault.Unauthorized, fault.Header, "Authorization", "the key is revoked")
	synctest.Test(t, func(t *testing.T) {
		from := make(held)
		cache := watched(from, time.Hour, time.Now)
		verify := func(result chan<- error) {
			_, err := cache.VerifyKey(t.Context(), "h")
			result <- err
		}
		first, waits, afterwards := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go verify(first)
		old := <-from
		time.Sleep(unwatchedTTL)
		go verify(waits)
		synctest.Wait()
		cache.Forget(authapi.WatchKeysResponse{Keys: []string{"id of h"}})
		go verify(afterwards)
		again := <-from
		again <- refused
		if err := <-afterwards; err != refused {
			t.Errorf("a request after the change: got %v, want %v", err, refused)
		}
		old <- nil
		expect.Err(t, <-first, nil, "the request from before the change")
		if err := <-waits; err != refused {
			t.Errorf("the request that waits: got %v, want %v", err, refused)
		}
		if hits, misses := cache.hits.Load()+cache.negatives.Load(), cache.misses.Load(); hits != 0 || misses != 3 {
			t.Errorf("got %d hits and %d misses of three requests, want 0 and 3", hits, misses)
		}
	})
}

func TestRecallTellsWhatIsRemembered(t *testing.T) {
	now := time.Unix(1000, 0)
	from := &fake{}
	cache := watched(from, time.Hour, func() time.Time { return now })
	cache.VerifyKey(t.Context(), "h")
	from.err = fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
	cache.VerifyKey(t.Context(), "refused")
	if k, known, err := cache.Recall("h"); !known || err != nil || k.Broker != "of h" {
		t.Errorf("a key: got %+v, %t, %v; want it", k, known, err)
	}
	if _, known, err := cache.Recall("refused"); !known || err != from.err {
		t.Errorf("a refused key: got %t, %v; want the refusal", known, err)
	}
	if k, known, err := cache.Recall("nobody's"); known || err != nil || k.Broker != "" {
		t.Errorf("an unknown key: got %+v, %t, %v; want nothing", k, known, err)
	}
	if _, err := cache.VerifyKey(t.Context(), "refused"); err != from.err {
		t.Errorf("a refused key again: got %v, want the refusal", err)
	}
	now = now.Add(time.Hour)
	if _, known, _ := cache.Recall("h"); known {
		t.Error("a key after its time: got it, want nothing")
	}
}

// TestAFullCacheDropsWhatIsOverFirst fills the cache with answers, some of which have expired. The cache must
// drop the expired ones first.
func TestAFullCacheDropsWhatIsOverFirst(t *testing.T) {
	now := time.Unix(1000, 0)
	from := &fake{}
	cache := watched(from, time.Hour, func() time.Time { return now })
	for i := range maxEntries - 2 {
		cache.VerifyKey(t.Context(), fmt.Sprint("old ", i))
	}
	now = now.Add(time.Hour - time.Second)
	cache.VerifyKey(t.Context(), "kept")
	cache.VerifyKey(t.Context(), "kept too")
	asked := from.asked.Load()
	remembers := func(hash string, want bool) {
		t.Helper()
		if _, known, _ := cache.Recall(hash); known != want {
			t.Errorf("%s: remembered: %t, want %t", hash, known, want)
		}
	}
	for _, hash := range []string{"old 0", "kept", "kept too"} {
		remembers(hash, true) // the cache is full now
	}
	now = now.Add(time.Second)
	cache.VerifyKey(t.Context(), "new")
	for _, hash := range []string{"kept", "kept too", "new"} {
		remembers(hash, true)
	}
	if got := len(cache.entries); got != 3 || from.asked.Load() != asked+1 {
		t.Errorf("got %d entries and %d calls, want 3 and 1", got, from.asked.Load()-asked)
	}
}
