package fair

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestWhoWaitsForAServerHasNoPlace lets a request wait for another server. Others have its place meanwhile. It goes on
// when it has the place again, and gives it back at its end, however it ends.
// Promises: fair-places
func TestWhoWaitsForAServerHasNoPlace(t *testing.T) {
	failed := errors.New("the server is away")
	for _, c := range []struct {
		name       string
		others     time.Duration // how long another caller has the place from the middle of the wait on
		answer     error
		ended      bool // the request ends while it waits
		want       error
		waited     time.Duration
		usedBefore int64 // places in use when Rest has returned
	}{
		{"nobody else", 0, nil, false, nil, time.Second, 1},
		{"another caller for a moment", time.Second, nil, false, nil, 1500 * time.Millisecond, 1},
		{"another caller for too long", 5 * time.Second, nil, false, ErrFull, 3 * time.Second, 1},
		{"a server that is away", 0, failed, false, failed, time.Second, 0},
		{"a request that ended", 0, nil, true, nil, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(1)
				ctx, end, err := s.Take(t.Context(), "one", 1)
				expect.OK(t, err)
				if c.others > 0 {
					go func() {
						time.Sleep(time.Second / 2)
						release, err := s.Acquire(t.Context(), "another", 1)
						if err != nil {
							t.Errorf("another caller meanwhile: got %v, want a place", err)
							return
						}
						time.Sleep(c.others)
						release()
					}()
				}
				begun := time.Now()
				err = Rest(ctx, func() error {
					expect.Equal(t, s.Used(), 0, "while it waits: places in use")
					// A call within a call, and one beside it, change nothing.
					expect.Err(t, Rest(ctx, func() error { return nil }), nil, "a call within")
					if c.ended {
						end()
					}
					time.Sleep(time.Second)
					return c.answer
				})
				if waited := time.Since(begun); !errors.Is(err, c.want) || waited != c.waited {
					t.Errorf("got %v after %v, want %v after %v", err, waited, c.want, c.waited)
				}
				expect.Equal(t, s.Used(), c.usedBefore, "after it: places in use")
				end()
				time.Sleep(10 * time.Second)
				expect.Equal(t, s.Used(), 0, "at the end: places in use")
			})
		})
	}
}

// sent is an answer that has waited for a given time.
type sent struct {
	waits time.Duration
	cut   bool
}

func (s *sent) Waits() time.Duration { return s.waits }
func (s *sent) Cut()                 { s.cut = true }

// TestTheCallerWithTheMostGivesWay lets callers hold answers, and takes what is needed until nobody waits. Each holder gives
// back once, whether it is cut or ends by itself.
// Promises: stuck-answers
func TestTheCallerWithTheMostGivesWay(t *testing.T) {
	var h Held
	expect.FatalIf(t, h.Take(), "got an answer of nobody, want none")
	given := map[string]int{}
	answers, ends := map[string]*sent{}, map[string]func(){}
	for _, a := range []struct {
		name, by string
		waits    time.Duration
	}{
		{"one", "honest", time.Hour}, {"two a", "two", time.Second}, {"two b", "two", time.Minute},
		{"many a", "many", time.Second}, {"many b", "many", 2 * time.Second}, {"many c", "many", 0},
		{"many d", "many", time.Second - 1},
	} {
		answers[a.name] = &sent{waits: a.waits}
		ends[a.name] = h.Add(a.by, answers[a.name], func() { given[a.name]++ })
	}
	// Of the caller `many`, the two that wait for less than a second stay, and it has as many as `two` after two cuts.
	for _, want := range []string{"many b", "many a", "two b"} {
		if !h.Take() || !answers[want].cut || given[want] != 1 {
			t.Errorf("got %v given back, want %s cut next", given, want)
		}
	}
	for h.Take() {
	}
	for name, a := range answers {
		ends[name]()
		if a.cut != (a.waits >= patience) || given[name] != 1 {
			t.Errorf("%s: got cut %t, given back %d times; want it cut after a second, given back once", name, a.cut, given[name])
		}
	}
	if len(h.all)+len(h.callers) > 0 {
		t.Errorf("got %d answers of %d callers at the end, want none", len(h.all), len(h.callers))
	}
}
