package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/logtest"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

// scripted is a Redis that lends as many tokens as it is asked for. The function `before` is called first in each
// call, and may make the call fail.
type scripted struct {
	before func(key string, unreported int64) error

	mu    sync.Mutex
	calls int
	told  map[string]int64 // for each key, by its name: how many tokens used without Redis were reported
}

func (s *scripted) take(_ context.Context, keys []string, args [][]any) (answers [][]int64, err error) {
	const most, unreported = 2, 6 // indexes in the arguments
	for i, key := range keys {
		_, name, _ := strings.Cut(key, "{:")
		name, _, _ = strings.Cut(name, "}")
		used := args[i][unreported].(int64)
		s.mu.Lock()
		s.calls++
		s.mu.Unlock()
		if err := s.before(name, used); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.told[name] += used
		s.mu.Unlock()
		answers = append(answers, []int64{args[i][most].(int64), 1, 1000, 0, 0, 0})
	}
	return answers, nil
}

func (s *scripted) pool() telemetry.Pool { return telemetry.Pool{} }

func (s *scripted) Close() error { return nil }

// outage returns a borrower that believes that its Redis is down.
func outage(t *testing.T, fallback Fallback, now func() time.Time, before func(string, int64) error) (
	*Borrower, *scripted, *logtest.Log,
) {
	t.Helper()
	server, log := &scripted{before: before, told: map[string]int64{}}, &logtest.Log{}
	s := NewBorrower(&Redis{connections: server, timeout: time.Minute}, BorrowerConfig{
		Fallback: fallback, Now: now, Log: slog.New(slog.NewJSONHandler(log, nil)),
	})
	t.Cleanup(func() { s.Close() })
	s.markDown(errors.New("Redis is away"))
	return s, server, log
}

func bucketOf(name string) []Bucket {
	return []Bucket{{Key: Key{Name: name}, Cost: 1, Rates: []limiter.Rate{{Limit: 1000, Period: time.Hour}}}}
}

func mustAdmit(t *testing.T, s Store, name string) {
	t.Helper()
	if v, err := s.Take(t.Context(), bucketOf(name), nil); err != nil || v.Wait > 0 {
		t.Errorf("key %s: got %+v, %v; want the request admitted", name, v, err)
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		expect.FatalIf(t, time.Now().After(end), "got no end after 20 s, want that %s", what)
	}
}

func isUp(s *Borrower) func() bool { return func() bool { return !s.IsDown() } }

const isBack = "answers again"

// TestRedisIsDownUntilItAnswers uses a Redis that fails three times and then answers. No use of tokens has to be
// reported to Redis. The outage must end with the first answer.
func TestRedisIsDownUntilItAnswers(t *testing.T) {
	failures := 3 // only monitor calls Redis, so this needs no lock
	s, server, log := outage(t, FallbackClosed, time.Now, func(string, int64) error {
		if failures--; failures >= 0 {
			return errors.New("Redis is away")
		}
		return nil
	})
	await(t, "Redis is back", isUp(s))
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.calls != 4 || s.outages.Load() != 1 {
		t.Errorf("got Redis back after %d calls and %d outages, want 4 calls and 1 outage", server.calls, s.outages.Load())
	}
	await(t, "the log tells it", func() bool { return log.Count(isBack) == 1 })
}

// TestAReportInSeveralCallsLosesNothing uses more keys than one call can report, and makes the first call fail.
// Each token must be reported once.
func TestAReportInSeveralCallsLosesNothing(t *testing.T) {
	var s *Borrower
	ready, failed := make(chan struct{}), false
	s, server, _ := outage(t, FallbackLocal, time.Now, func(_ string, unreported int64) error {
		<-ready
		if unreported > 0 && !failed {
			failed = true
			return errors.New("Redis is away")
		}
		return nil
	})
	const keys = 3 * maxBatch
	for i := range keys {
		mustAdmit(t, s, fmt.Sprint("k", i))
	}
	close(ready)
	await(t, "Redis is back", isUp(s))
	for i := range keys {
		name := fmt.Sprint("k", i)
		server.mu.Lock()
		told := server.told[name]
		server.mu.Unlock()
		expect.Equal(t, told, 1, "key %s: tokens told", name)
		mustAdmit(t, s, name)
	}
}

// TestAFailureAfterTheLastReportIsAnotherOutage sends a request while the limiter makes its last report to Redis.
// Redis fails when the limiter then reports this request's use. A second outage must begin. At its end, the limiter
// must report the use again.
func TestAFailureAfterTheLastReportIsAnotherOutage(t *testing.T) {
	var s *Borrower
	ready, during, failed := make(chan struct{}), false, false
	s, server, log := outage(t, FallbackLocal, time.Now, func(name string, unreported int64) error {
		<-ready
		switch {
		case name == "before" && unreported > 0 && !during:
			during = true
			mustAdmit(t, s, "during")
		case name == "during" && unreported > 0 && !failed:
			failed = true
			return errors.New("Redis is away")
		}
		return nil
	})
	mustAdmit(t, s, "before")
	close(ready)
	await(t, "Redis is back twice", func() bool { return log.Count(isBack) == 2 })
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.told["before"] != 1 || server.told["during"] != 1 || s.outages.Load() != 2 {
		t.Errorf("got %v told and %d outages, want one token of each key and 2", server.told, s.outages.Load())
	}
}

// TestACallUnderWayIsNoOutage begins a call to Redis as soon as Redis works again. The call is not finished when
// the last report is made. No second outage may begin.
func TestACallUnderWayIsNoOutage(t *testing.T) {
	var s *Borrower
	ready, arrived, answer := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var begun atomic.Bool
	var request sync.WaitGroup
	now := func() time.Time {
		select {
		case <-ready:
			if !s.IsDown() && begun.CompareAndSwap(false, true) { // Redis works again, and the last report comes next
				request.Go(func() { mustAdmit(t, s, "k") })
				<-arrived
			}
		default:
		}
		return time.Unix(1000, 0)
	}
	s, _, log := outage(t, FallbackLocal, now, func(name string, _ int64) error {
		<-ready
		if name == "k" {
			close(arrived)
			<-answer
		}
		return nil
	})
	close(ready)
	await(t, "the log tells that Redis is back", func() bool { return log.Count(isBack) == 1 })
	if s.IsDown() || s.outages.Load() != 1 {
		t.Errorf("got Redis down: %t, and %d outages; want it in use, and 1", s.IsDown(), s.outages.Load())
	}
	close(answer)
	request.Wait()
}

// TestOneCallUnderWayIsSeenAmongOtherKeys has one key with an unfinished call among many other keys. The method
// reports must see that call each time. The test calls it several times, because maps have a random order.
func TestOneCallUnderWayIsSeenAmongOtherKeys(t *testing.T) {
	p := part{entries: map[Key]*entry{}}
	for i := range 50 {
		p.entries[Key{Name: fmt.Sprint(i)}] = &entry{}
	}
	if _, underWay := p.reports(0, 1); underWay {
		t.Error("got a call under way, want none")
	}
	p.entries[Key{Name: "7"}].loan = loan{renewal: &renewal{}, unreported: 3, unreportedUntil: 10}
	for range 20 {
		if reports, underWay := p.reports(0, 1); len(reports) > 0 || !underWay {
			t.Fatalf("got %d more calls, and one under way: %t; want none more", len(reports), underWay)
		}
	}
}

// TestCloseIsNoOutageAndNoReturn closes borrowers while Redis works and while it is down, and checks their logs.
// The end must add no line about an outage or a recovery.
func TestCloseIsNoOutageAndNoReturn(t *testing.T) {
	s, _, log := outage(t, FallbackLocal, time.Now, func(string, int64) error { return errors.New("Redis is away") })
	const away = "does not answer"
	await(t, "the log tells the outage", func() bool { return log.Count(away) == 1 })
	expect.Try(t, s.Close())
	if n := log.Count(isBack); n > 0 {
		t.Errorf("without Redis: got %d lines that it answers again, want none", n)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 50 { // repeated, because monitor may see the end or the outage first
		s.outage <- ended.Err()
		s.monitor(ended)
		select {
		case <-s.outage:
		default:
		}
	}
	expect.Equal(t, log.Count(away), 1, "at the end: lines of an outage")
}

// TestUseThatHasLeftEveryWindowIsNotTold has tokens that were used without Redis. They must be reported only until
// they have left every window.
func TestUseThatHasLeftEveryWindowIsNotTold(t *testing.T) {
	const end = 10
	for now, want := range map[int64]int{end - 1: 1, end: 0, end + 1: 0} {
		e := &entry{rates: twoRates}
		e.loan.unreported, e.loan.unreportedUntil = 3, end
		p := part{entries: map[Key]*entry{{Name: "k"}: e}}
		if reports, _ := p.reports(now, 1); len(reports) != want {
			t.Errorf("at %d: got %d reports, want %d", now, len(reports), want)
		}
	}
}
