package ratelimit

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ulule/limiter/v3"

	"asset-registry/shared/testing/expect"
)

// stateOf returns the state of a rate with the given name. Tests distinguish rates by their limits.
func stateOf(name string, limit, left int64, next time.Duration) State {
	return State{Rate: limiter.Rate{Formatted: name, Limit: limit}, Left: left, Next: next}
}

// headers has the headers of an answer, in the order of Headers.
type headers [5]string

func of(h http.Header) (all headers) {
	for i, name := range Headers() {
		all[i] = h.Get(name)
	}
	return all
}

// TestTheOldHeadersTellOfTheTightestRate has answers about one rate and about several ones. The older headers must show
// the rate that refuses. If no rate refuses, they must show the rate with the least left.
func TestTheOldHeadersTellOfTheTightestRate(t *testing.T) {
	now := time.Unix(1000, 1) // not a full second, so that the headers show that the time of a reset is rounded up
	const next = 1500 * time.Millisecond
	for _, c := range []struct {
		name    string
		inBytes int
		v       Verdict
		want    headers
	}{
		{"one that is not used", 1, Verdict{States: []State{stateOf("a", 10, 10, 0)}},
			headers{"p", `"a";r=10`, "10", "10", "1001"}},
		{"one that is used", 1, Verdict{States: []State{stateOf("a", 10, 9, next)}},
			headers{"p", `"a";r=9;t=2`, "10", "9", "1002"}},
		{"the second has less left", 2, Verdict{States: []State{stateOf("a", 10, 9, next), stateOf("b", 5, 4, 0)}},
			headers{"p", `"a";r=9;t=2, "b";r=4`, "5", "4", "1001"}},
		{"both have the same left", 2, Verdict{States: []State{stateOf("a", 10, 4, next), stateOf("b", 5, 4, 0)}},
			headers{"p", `"a";r=4;t=2, "b";r=4`, "10", "4", "1002"}},
		{"fewer bytes than requests are left", 1, Verdict{States: []State{stateOf("a", 10, 9, 0), stateOf("b", 5, 4, 0)}},
			headers{"p", `"a";r=9, "b";r=4`, "10", "9", "1001"}},
		{"the one that refuses has more left", 2, Verdict{
			States: []State{stateOf("a", 10, 1, next), stateOf("b", 5, 2, next)}, Wait: 3 * time.Second, Refused: 1,
		}, headers{"p", `"a";r=1;t=2, "b";r=2;t=2`, "5", "2", "1004"}},
	} {
		h := http.Header{}
		writeHeaders(h, &plan{policy: "p", inBytes: c.inBytes}, c.v, now)
		expect.NoDiff(t, cmp.Diff(c.want, of(h)), "%s: the headers", c.name)
	}
}

// TestBytesThatAreCountedLaterAreInTheHeaders counts bytes after a request was admitted. The headers must show what is
// left after these bytes.
func TestBytesThatAreCountedLaterAreInTheHeaders(t *testing.T) {
	now := time.Unix(1000, 0)
	request := Verdict{States: []State{stateOf("a", 10, 9, 0), stateOf("b", 500, 400, 0)}}
	bytes := func(name string, wait time.Duration) Verdict {
		return Verdict{States: []State{stateOf(name, 500, 300, 0)}, Wait: wait}
	}
	for _, c := range []struct {
		name   string
		before Verdict // if it has no states, the answer has no headers yet
		v      Verdict
		want   headers
	}{
		{"bytes that the request had counted", request, bytes("b", 0),
			headers{"p", `"a";r=9, "b";r=300`, "10", "9", "1000"}},
		{"too many of them", request, bytes("b", time.Second),
			headers{"p", `"a";r=9, "b";r=300`, "500", "300", "1001"}},
		{"bytes of another policy", request, bytes("c", 0),
			headers{"p, q", `"a";r=9, "b";r=400, "c";r=300`, "10", "9", "1000"}},
		{"too many of another policy", request, bytes("c", time.Second),
			headers{"p, q", `"a";r=9, "b";r=400, "c";r=300`, "500", "300", "1001"}},
		{"a request without limits before", Verdict{}, bytes("c", 0), headers{"q", `"c";r=300`, "500", "300", "1000"}},
		{"bytes only, twice", bytes("c", 0), Verdict{States: []State{stateOf("c", 500, 200, 0)}},
			headers{"p", `"c";r=200`, "500", "200", "1000"}},
	} {
		h := http.Header{}
		if len(c.before.States) > 0 {
			writeHeaders(h, &plan{policy: "p", inBytes: 1}, c.before, now)
		}
		updateHeaders(h, &plan{policy: "q"}, c.v, now)
		expect.NoDiff(t, cmp.Diff(c.want, of(h)), "%s: the headers", c.name)
	}
}
