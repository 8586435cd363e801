package upstream

import (
	"errors"
	"testing"
	"time"
)

func TestTheBreakerLetsOneTry(t *testing.T) {
	var b breaker
	now := time.Unix(1000, 0)
	for i := range maxFailures {
		if !b.admit(now) || b.isOpen(now) {
			t.Fatalf("after %d failures: got an open breaker, want a closed one", i)
		}
		if got, want := b.fail(now), i == maxFailures-1; got != want {
			t.Errorf("failure %d: got opened %t, want %t", i+1, got, want)
		}
	}
	if b.admit(now) || !b.isOpen(now) {
		t.Error("after all failures: got a closed breaker, want an open one")
	}
	now = now.Add(openFor)
	if b.isOpen(now) || !b.admit(now) {
		t.Error("after a second: got no trial, want one")
	}
	if b.admit(now) || !b.isOpen(now) {
		t.Error("during a trial: got a second trial, want none")
	}
	if b.fail(now); b.admit(now) {
		t.Error("after a failed trial: got a closed breaker, want an open one")
	}
	if now = now.Add(openFor); !b.admit(now) {
		t.Error("a second after the failed trial: got no trial, want one")
	}
	if b.abandon(); !b.admit(now) {
		t.Error("after an abandoned trial: got no trial, want one")
	}
	b.succeed()
	for range 2 {
		if !b.admit(now) || b.isOpen(now) {
			t.Error("after a successful trial: got an open breaker, want a closed one")
		}
	}
}

func TestNoServerIsAskedForASecondAfterFailures(t *testing.T) {
	s := startServer(t, drop)
	s.unready.Store(true) // a successful check would reset the failures
	p := newPool(t, s.URL)
	var err error
	for range 50 {
		if _, _, err = ask(t, p, "POST", "/", "x"); errors.Is(err, ErrNoServer) {
			break
		}
	}
	if !errors.Is(err, ErrNoServer) || s.requests.Load() != maxFailures {
		t.Errorf("got %d requests, then %v; want %d, then %v", s.requests.Load(), err, maxFailures, ErrNoServer)
	}
}
