package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestTheBreakerLetsOneTry(t *testing.T) {
	var b breaker
	now := time.Unix(1000, 0)
	for i := range maxFailures {
		if !b.admit(now) || b.isOpen(now) {
			t.Fatalf("after %d failures: got an open breaker, want a closed one", i)
		}
		expect.Equal(t, b.fail(now), i == maxFailures-1, "failure %d, opened", i+1)
	}
	expect.ErrorIf(t, b.admit(now) || !b.isOpen(now), "after all failures: got a closed breaker, want an open one")
	now = now.Add(openFor)
	expect.ErrorIf(t, b.isOpen(now) || !b.admit(now), "after a second: got no trial, want one")
	expect.ErrorIf(t, b.admit(now) || !b.isOpen(now), "during a trial: got a second trial, want none")
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
	for ready := 1; ready != 0; ready, _ = p.Ready() { // then the connection of the check is closed
		time.Sleep(time.Millisecond)
	}
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

func TestARequestThatKillsDoesNotTravel(t *testing.T) {
	var servers []*testServer
	var urls []string
	for range 5 {
		servers = append(servers, startServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("kill") {
				drop(w, r)
			}
		}))
		urls = append(urls, servers[len(servers)-1].URL)
	}
	p := newPool(t, urls...)
	asked := func() (n int64) {
		for _, s := range servers {
			n += s.requests.Load()
		}
		return n
	}
	for range 20 { // this loop opens a connection to each server
		if _, _, err := ask(t, p, "GET", "/", ""); err != nil {
			t.Fatal(err)
		}
	}
	before := asked()
	for range 10 {
		if _, _, err := ask(t, p, "GET", "/?kill", ""); err == nil {
			t.Fatal("got an answer to a request that kills its server, want an error")
		}
	}
	expect.Equal(t, asked()-before, 11, "10 equal requests that kill: arrivals")
	if _, _, err := ask(t, p, "GET", "/?kill&other", ""); err == nil {
		t.Fatal("got an answer to a request that kills its server, want an error")
	}
	if got := asked() - before; got != 13 {
		t.Errorf("another request that kills: got %d arrivals, want 2", got-11)
	}
}

func TestCrashesAreForgotten(t *testing.T) {
	d, now := newCrashes(), time.Now()
	r, _ := http.NewRequest("GET", "http://service/a?b", nil)
	for _, c := range []struct {
		name string
		at   time.Time
		want bool
	}{
		{"the first crash", now, true},
		{"the second crash", now.Add(time.Second), false},
		{"just before crashTime ends", now.Add(crashTime - 1), false},
		{"after crashTime", now.Add(crashTime), true},
		{"the second crash after crashTime", now.Add(crashTime + 1), false},
	} {
		expect.Equal(t, d.mayRepeat(r, c.at), c.want, "%s", c.name)
	}
	for i := range 2 * maxCrashes {
		r, _ := http.NewRequest("GET", fmt.Sprintf("http://service/%d", i), nil)
		d.mayRepeat(r, now.Add(2*crashTime))
	}
	if got := len(d.last); got > maxCrashes {
		t.Errorf("got %d requests remembered, want at most %d", got, maxCrashes)
	}
}
