package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// TestRaisedLimits raises the limits of a broker for a time, and checks what a key of the broker may do. A limit of
// the key itself must hold all the time.
// Promises: raised-limits
func TestRaisedLimits(t *testing.T) {
	t.Parallel()
	addr, admin, dir := freeAddr(t), freeAddr(t), filepath.Join(t.TempDir(), "data")
	if err := standalone(t, addr, dir, &processes.Output{}).Stop(); err != nil { // creates the data directory
		t.Fatal(err)
	}
	output := &processes.Output{}
	p := expect.Get(processes.Start(t.Context(), addr, output, filepath.Join(bin, "registry"), "serve", "--sandbox",
		"--addr", addr, "--data", dir, "--admin-addr", admin, "--limits", "production"))(t)
	killAtEnd(t, p, output)
	o := &office{api: api{"http://" + addr, "2.5"}, admin: "http://" + admin, key: adminKey(t, "registry", "--data", dir)}
	broker := o.broker(t)
	path := "/brokers/" + broker
	_, secret := o.issue(t, broker, fields{"limits": fields{"write": fields{"1h": 3}}})
	// limits returns two limits for writes: the limit per second in the table of limits, and the limit of the key
	// itself.
	limits := func() (table, own string) {
		for _, l := range list(o.me(t, secret).must(t, 200).data()["limits"]) {
			switch text(at(l, "policy")) {
			case "key-write":
				if fmt.Sprint(at(l, "window")) == "1" {
					table = fmt.Sprint(at(l, "limit"))
				}
			case "limits-write":
				own = fmt.Sprint(at(l, "limit"))
			}
		}
		return table, own
	}
	holds := func(what string, want string) {
		t.Helper()
		soon(t, what, 15*time.Second, func() bool {
			table, own := limits()
			return table == want && own == "3"
		})
	}
	holds("the limits of the table, and the limit of the key", "200")
	until := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339Nano) }
	o.ask(t, "PATCH", path, fields{"raise": 10, "raised_until": until(time.Hour)}).must(t, 200)
	holds("raised limits", "2000")
	o.ask(t, "PATCH", path, fields{"raise": 1}).fails(t, 400, "body/raise")
	o.ask(t, "PATCH", path, fields{"raised_until": nil}).fails(t, 400, "body/raised_until")
	o.ask(t, "PATCH", path, fields{"title": "інша"}).must(t, 200)
	holds("raised limits after another change", "2000")
	o.ask(t, "PATCH", path, fields{"raise": 3, "raised_until": until(2 * time.Second)}).must(t, 200)
	holds("the limits of the table, after the end", "200")
	o.ask(t, "PATCH", path, fields{"raise": nil, "raised_until": nil}).must(t, 200)
	for i := range 4 {
		got := o.do(t, call{method: "POST", path: "/assets", key: secret, body: data(validAsset())})
		if want := map[bool]int{true: 201, false: 429}[i < 3]; got.status != want {
			t.Errorf("write %d: got %d, want %d: the key has a limit of 3", i+1, got.status, want)
		}
	}
	equal(t, "problems of the audit log", len(list(o.ask(t, "GET", "/audit/verify", nil).must(t, 200).data()["problems"])), 0)
}
