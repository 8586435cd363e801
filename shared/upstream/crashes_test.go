package upstream

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

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
