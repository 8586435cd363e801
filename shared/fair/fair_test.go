package fair

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// load is what one caller asks for: a request after each pause, each of which works for a time.
type load struct {
	by          string
	every, work time.Duration
	amount      int64
}

// outcome is what became of the requests of a caller.
type outcome struct {
	mu               sync.Mutex
	answered, failed int
	longest          time.Duration // longest wait of a request that was answered
}

// run applies loads to a semaphore for 20 s of virtual time, and returns the outcome of each.
func run(t *testing.T, s *Semaphore, loads []load) []*outcome {
	outcomes := make([]*outcome, len(loads))
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for i, l := range loads {
			outcomes[i] = &outcome{}
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // so that no two requests come at the same moment
				for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(l.every) {
					all.Go(func() { outcomes[i].ask(s, l) })
				}
			})
		}
		all.Wait()
		if got := s.Used(); got != 0 || s.waiting != 0 {
			t.Errorf("at the end: got %d used, %d waiting; want none", got, s.waiting)
		}
	})
	return outcomes
}

func (o *outcome) ask(s *Semaphore, l load) {
	begun := time.Now()
	end, err := s.Acquire(context.Background(), l.by, l.amount)
	o.mu.Lock()
	if err != nil {
		o.failed++
	} else {
		o.answered, o.longest = o.answered+1, max(o.longest, time.Since(begun))
	}
	o.mu.Unlock()
	if err == nil {
		time.Sleep(l.work)
		end()
	}
}

// TestOneCallerDelaysOthersByAFewTurns lets one caller, or a few, ask 30 times a second for the dearest work of each
// kind. Another caller asks ten times a second for little. Its requests are all answered, and wait for one turn of each
// other caller at most.
// Promises: fair-places
func TestOneCallerDelaysOthersByAFewTurns(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		name      string
		size      int64
		attackers int
		work      time.Duration
		amount    int64
	}{
		{"second tries of a search", 1, 1, 170 * time.Millisecond, 1},
		{"pages of whole assets", 1, 1, 200 * time.Millisecond, 1},
		{"pages of whole assets on eight processors", 4, 1, 200 * time.Millisecond, 1},
		{"large assets that need all of the memory", 100, 1, 300 * time.Millisecond, 100},
		{"three callers at once", 1, 3, 170 * time.Millisecond, 1},
		{"turns of nearly a second", 1, 1, 900 * time.Millisecond, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			loads := []load{{"another", second / 10, 5 * time.Millisecond, 1}}
			for n := range c.attackers {
				loads = append(loads, load{fmt.Sprint("attacker ", n), second / 30, c.work, c.amount})
			}
			done := run(t, New(c.size), loads)
			if other := done[0]; other.failed > 0 || other.answered < 100 {
				t.Errorf("the other caller: got %d answers and %d refusals, want answers only", other.answered, other.failed)
			}
			if got, want := done[0].longest, time.Duration(c.attackers)*c.work; got > want {
				t.Errorf("the other caller: got a wait of %v, want at most %v", got, want)
			}
			for _, o := range done[1:] {
				if o.failed == 0 || o.answered == 0 {
					t.Errorf("an attacker: got %d answers and %d refusals, want some of both", o.answered, o.failed)
				}
			}
		})
	}
}

// TestAmountsAreSharedEqually lets three callers ask for more than there is. Each must get about a third, although
// one of them asks three times as often.
func TestAmountsAreSharedEqually(t *testing.T) {
	work := 100 * time.Millisecond
	done := run(t, New(2), []load{{"a", work / 9, work, 1}, {"b", work / 3, work, 1}, {"c", work / 3, work, 1}})
	for i, o := range done {
		if got, want := o.answered, (done[0].answered+done[1].answered+done[2].answered)/3; got < want-5 || got > want+5 {
			t.Errorf("caller %d: got %d answers, want about %d", i, got, want)
		}
	}
}

// TestNewcomersDoNotStarveACaller sends requests of ever new callers. A caller that comes again and again waits for
// those before it only.
func TestNewcomersDoNotStarveACaller(t *testing.T) {
	s := New(1)
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		other := &outcome{}
		for n := range 1000 {
			all.Go(func() { (&outcome{}).ask(s, load{fmt.Sprint(n), 0, 9 * time.Millisecond, 1}) })
			if n%100 == 50 {
				all.Go(func() { other.ask(s, load{"again", 0, 9 * time.Millisecond, 1}) })
			}
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		if other.failed > 0 || other.longest > 30*time.Millisecond {
			t.Errorf("got %d refusals and a wait of %v, want none and at most 30 ms", other.failed, other.longest)
		}
	})
}

// TestAFullQueueRefusesWhoWaitsMost fills the queue. One caller can fill only a part of it. When many fill all of it,
// the newest request of the caller with the most is refused, and a caller without any still comes in.
// Promises: fair-places
func TestAFullQueueRefusesWhoWaitsMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1)
		end, err := s.Acquire(t.Context(), "holder", 1)
		expect.OK(t, err)
		var mu sync.Mutex
		refused := map[string]int{}
		var served []string
		ask := func(by string, requests int) {
			time.Sleep(time.Millisecond)
			for range requests {
				go func() {
					release, err := s.Acquire(t.Context(), by, 1)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused[by]++
						return
					}
					served = append(served, by)
					release()
				}()
				synctest.Wait()
			}
		}
		ask("a", maxShare+5)
		expect.Equal(t, refused["a"], 5, "more than its share: refused")
		ask("b", maxShare)
		ask("c", maxShare)
		ask("d", maxShare-1)
		ask("e", 1) // now the queue is full
		ask("d", 1) // d has now as many as the others, and came last
		ask("e", 2)
		want := map[string]int{"a": 5, "b": 1, "c": 1, "d": 1}
		for _, by := range []string{"a", "b", "c", "d", "e"} {
			expect.Equal(t, refused[by], want[by], "%s: refused", by)
		}
		expect.Equal(t, s.Refused(), 8, "refusals counted")
		end()
		synctest.Wait()
		if first := served[:5]; !slices.Equal(first, []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("got %v served first, want each caller once", first)
		}
		expect.Equal(t, len(served), maxWaiting, "served")
	})
}

// TestAWaitEnds covers the ends of a wait other than the amount: the time, and the context of the request.
func TestAWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(10)
		leave, err := s.Acquire(t.Context(), "a", 1000) // more than the size; Acquire gets the whole size
		if err != nil || s.Used() != 10 {
			t.Fatalf("more than the size: got %d, %v; want the whole size", s.Used(), err)
		}
		begun := time.Now()
		if _, err := s.Acquire(t.Context(), "b", 1); !errors.Is(err, ErrFull) || time.Since(begun) != maxWait {
			t.Errorf("without an end: got %v after %v, want %v after %v", err, time.Since(begun), ErrFull, maxWait)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		expect.ErrOf(t, context.Canceled, "canceled")(s.Acquire(gone, "b", 1))
		leave()
		leave() // the second call gives nothing back
		_, err = s.Acquire(t.Context(), "a", 4)
		expect.OK(t, err)
		first, leaves := context.WithCancel(t.Context())
		go func() { _, _ = s.Acquire(first, "b", 10) }()
		synctest.Wait()
		small := make(chan error)
		go func() { _, err := s.Acquire(context.Background(), "c", 4); small <- err }()
		synctest.Wait()
		leaves() // the large request goes, so the one behind it is served
		if err := <-small; err != nil {
			t.Errorf("behind a request that left: got %v, want its amount", err)
		}
	})
}

// Promises: fair-places
func TestPlacesAreHalfOfTheProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range []struct{ processors, want int }{{1, 1}, {2, 1}, {3, 2}, {8, 4}} {
		runtime.GOMAXPROCS(c.processors)
		expect.Equal(t, NewPlaces().Size(), int64(c.want), "%d processors: places", c.processors)
	}
}
