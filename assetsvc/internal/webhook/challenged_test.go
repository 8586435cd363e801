package webhook

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestChallengesAreBounded asks for many challenges in virtual time. Beyond each bound, a challenge must wait.
// Promises: hook-challenges
func TestChallengesAreBounded(t *testing.T) {
	endpoint := func(id int, broker, host string) Endpoint {
		return Endpoint{ID: fmt.Sprint(id), Broker: broker, URL: "https://" + host + "/hook"}
	}
	for _, c := range []struct {
		name string
		of   func(n int) Endpoint
		most int
		wait time.Duration
	}{
		{"one endpoint", func(int) Endpoint { return endpoint(0, "b", "a.example") }, 1, time.Minute},
		{"one broker", func(n int) Endpoint { return endpoint(n, "b", fmt.Sprint(n, ".example")) }, 512, time.Hour},
		{"one host", func(n int) Endpoint { return endpoint(n, fmt.Sprint("b", n), "A.example:"+fmt.Sprint(n)) }, 4096, time.Hour},
		{"an administrator's endpoint", func(int) Endpoint {
			return Endpoint{ID: "0", ByAdmin: true, URL: "https://a.example"}
		}, 1, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := newChallenged()
			for n := range c.most {
				if wait := asked.take(c.of(n)); wait != 0 {
					t.Fatalf("%s: challenge %d waits for %v, want 0", c.name, n, wait)
				}
			}
			if wait := asked.take(c.of(c.most)); wait != c.wait {
				t.Errorf("%s: one more waits for %v, want %v", c.name, wait, c.wait)
			}
			other := endpoint(-1, "other", "other.example")
			if wait := asked.take(other); wait != 0 {
				t.Errorf("%s: another waits for %v, want 0", c.name, wait)
			}
			time.Sleep(c.wait)
			if wait := asked.take(c.of(c.most)); wait != 0 {
				t.Errorf("%s: after %v got a wait of %v, want 0", c.name, c.wait, wait)
			}
			for n := 1; n < c.most; n++ {
				asked.take(c.of(n))
			}
			if wait := asked.take(c.of(c.most + 1)); wait != c.wait {
				t.Errorf("%s: the bound after %v: one more waits for %v, want %v", c.name, c.wait, wait, c.wait)
			}
		})
	}
}

// TestOldChallengesAreForgotten counts challenges of many brokers to many hosts. After an hour it counts
// challenges of one broker to one host, which must remove most of the old counts.
func TestOldChallengesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := newChallenged()
		for n := range 500 {
			asked.take(Endpoint{ID: fmt.Sprint(n), Broker: fmt.Sprint(n), URL: fmt.Sprintf("https://%d.example", n)})
		}
		time.Sleep(challengedFor)
		asked.take(Endpoint{ID: "0", Broker: "0", URL: "https://0.example"})
		if got := len(asked.sent); got != 1500 {
			t.Errorf("got %d names, want 1500, because all may still count", got)
		}
		time.Sleep(time.Second)
		for n := range 400 {
			asked.take(Endpoint{ID: fmt.Sprint("new", n), Broker: "one", URL: "https://one.example"})
		}
		if got := len(asked.sent); got > 1000 {
			t.Errorf("got %d names, want at most 1000: the names of the last hour and a few others", got)
		}
	})
}

// TestTheOwnerLearnsNoMoreThanTheStatus records messages that failed for different reasons. The text that the owner
// sees must say no more about the receiver than the HTTP status.
// Promises: hook-faults
func TestTheOwnerLearnsNoMoreThanTheStatus(t *testing.T) {
	for _, c := range []struct {
		a    answer
		want string
	}{
		{answer{fault: faultOf(errNotPublic)}, "failed"},
		{answer{fault: "the receiver does not speak TLS"}, "failed"},
		{answer{fault: "the receiver answered 503", status: 503}, "failed: 503"},
		{answer{fault: "the receiver did not answer the challenge with its text", status: 200}, "failed: 200"},
		{answer{fault: errUnopened}, errUnopened},
	} {
		p := Progress{}.failed(time.Now(), c.a, 0, giveUp, Failing)
		expect.Equal(t, p.LastError, c.want, "%s", c.a.fault)
	}
}
