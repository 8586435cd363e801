package ratelimit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestLimitsOfABrokerAndOfAKey counts how many writes are admitted at the same moment. It must be the number
// that the raised or additional limits allow.
func TestLimitsOfABrokerAndOfAKey(t *testing.T) {
	table := Table{
		{Name: "key-write", By: ByKey, Costs: map[Class]int64{routes.Write: 1}, Windows: map[string]int64{"1s": 4, "1m": 10}},
		{Name: "tenant", By: ByTenant, Costs: map[Class]int64{routes.Write: 2}, Windows: map[string]int64{"1m": 40}},
		{Name: "bytes", By: ByTenant, Costs: map[Class]int64{routes.Write: 1, Bytes: 1}, Windows: map[string]int64{"1m": 1000}},
	}
	now := time.Unix(1000, 0)
	l := New(NewMemory(func() time.Time { return now }, 0), table, func() time.Time { return now }, noop.NewMeterProvider().Meter(""))
	broker := identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}
	writes := func(minutes string, n int64) map[string]map[string]int64 {
		return map[string]map[string]int64{"write": {minutes: n}}
	}
	passes := func(c Client) (n int, last error) {
		for ; n < 1000; n++ {
			if last = l.Admit(t.Context(), http.Header{}, Request{Class: routes.Write, Client: c, Body: 9}); last != nil {
				return n, last
			}
		}
		return n, nil
	}
	for _, c := range []struct {
		name   string
		client Client
		want   int
		by     string // the limit that refuses the next write
	}{
		{"the table", Client{Identity: broker}, 4, "key-write-1s"},
		{"raised once", Client{Identity: identity.Identity{Broker: "b1", KeyID: "k1", Role: identity.Broker}, Raise: 1}, 4, "key-write-1s"},
		{"raised", Client{Identity: broker, Raise: 2}, 8, "key-write-1s"},
		{"raised above the limit of a minute", Client{Identity: broker, Raise: 3}, 12, "key-write-1s"},
		{"a limit of the key", Client{Identity: broker, Limits: writes("1m", 3)}, 3, "limits-write-1m"},
		{"another limit of the key", Client{Identity: broker, Limits: writes("1m", 2)}, 2, "limits-write-1m"},
		{"a limit of another class", Client{Identity: identity.Identity{Broker: "b2", KeyID: "k2", Role: identity.Broker},
			Limits: map[string]map[string]int64{"read": {"1s": 1}}}, 4, "key-write-1s"},
		{"both", Client{Identity: broker, Raise: 4, Limits: writes("1s", 7)}, 7, "limits-write-1s"},
	} {
		now = now.Add(2 * time.Minute)
		got, err := passes(c.client)
		if got != c.want || fault.KindOf(err) != fault.TooMany || !strings.Contains(err.Error(), c.by) {
			t.Errorf("%s: got %d writes, then %v; want %d, then %s", c.name, got, err, c.want, c.by)
		}
	}
}

// TestWithoutATableThereAreNoLimits gives a key a limit, but the gateway has no table. The limit must have no
// effect.
func TestWithoutATableThereAreNoLimits(t *testing.T) {
	l := New(NewMemory(time.Now, 0), nil, time.Now, noop.NewMeterProvider().Meter(""))
	c := Client{
		Identity: identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}, Limits: map[string]map[string]int64{"write": {"1m": 1}},
	}
	for range 3 {
		if err := l.Admit(t.Context(), http.Header{}, Request{Class: routes.Write, Client: c}); err != nil {
			t.Errorf("got %v, want no limit", err)
		}
	}
	if quotas, err := l.Quotas(t.Context(), http.Header{}, c); err != nil || len(quotas) != 0 {
		t.Errorf("got %v, %v; want no quotas", quotas, err)
	}
}

// TestChangedLimitsAreCountedAnew changes the limits of a broker and of its key within one window. Each time, the whole
// new limit must be free.
func TestChangedLimitsAreCountedAnew(t *testing.T) {
	table := Table{{
		Name: "tenant", By: ByTenant, Costs: map[Class]int64{routes.Write: 1}, Windows: map[string]int64{"1m": 5},
	}}
	l := New(NewMemory(time.Now, 0), table, time.Now, noop.NewMeterProvider().Meter(""))
	limited := func(raise, limit int64) Client {
		c := member("b", "k")
		c.Raise, c.Limits = raise, map[string]map[string]int64{"write": {"1m": limit}}
		return c
	}
	raised := member("b", "k")
	raised.Raise = 2
	for n, c := range []struct {
		client Client
		want   int
	}{{member("b", "k"), 5}, {raised, 10}, {limited(3, 4), 4}, {limited(3, 3), 3}} {
		got := 0
		for l.Admit(t.Context(), http.Header{}, Request{Class: routes.Write, Client: c.client}) == nil {
			got++
		}
		expect.Equal(t, got, c.want, "limits %d: writes", n+1)
	}
}

// TestAKeyWithItsOwnLimitSharesThoseOfItsBroker gives one key of a broker a limit. A raise of 0 or 1 raises nothing, so
// this key and another key of the broker must still count together.
func TestAKeyWithItsOwnLimitSharesThoseOfItsBroker(t *testing.T) {
	table := Table{{
		Name: "tenant", By: ByTenant, Costs: map[Class]int64{routes.Write: 1}, Windows: map[string]int64{"1m": 2},
	}}
	for _, raise := range []int64{0, 1} {
		l := New(NewMemory(time.Now, 0), table, time.Now, noop.NewMeterProvider().Meter(""))
		limited, plain := member("b", "k1"), member("b", "k2")
		limited.Raise, limited.Limits = raise, map[string]map[string]int64{"read": {"1m": 9}}
		for n, c := range []Client{limited, plain, plain, limited} {
			err := l.Admit(t.Context(), http.Header{}, Request{Class: routes.Write, Client: c})
			if refused := fault.KindOf(err) == fault.TooMany; refused != (n >= 2) {
				t.Errorf("raise %d, write %d: got %v, want a refusal: %t", raise, n+1, err, n >= 2)
			}
		}
	}
}

// TestQuotasShowTheLimitsOfABrokerAndOfAKey checks the quotas that GET /me shows. They must be the raised limits of
// the broker and the additional limits of the key.
func TestQuotasShowTheLimitsOfABrokerAndOfAKey(t *testing.T) {
	table := Table{
		{Name: "key-write", By: ByKey, Costs: map[Class]int64{routes.Write: 1}, Windows: map[string]int64{"1s": 4}},
		{Name: "address-write", By: ByAddress, Costs: map[Class]int64{routes.Write: 1}, Windows: map[string]int64{"1s": 1}},
		{Name: "bytes", By: ByTenant, Costs: map[Class]int64{routes.Write: 1, Bytes: 1}, Windows: map[string]int64{"1m": 1000}},
	}
	l := New(NewMemory(time.Now, 0), table, time.Now, noop.NewMeterProvider().Meter(""))
	header := http.Header{}
	quotas, err := l.Quotas(t.Context(), header, Client{
		Identity: identity.Identity{Broker: "b", KeyID: "k", Role: identity.Broker}, Raise: 5,
		Limits: map[string]map[string]int64{"read": {"1m": 7}},
	})
	expect.OK(t, err)
	got := map[string]int64{}
	for _, q := range quotas {
		got[q.Policy] = q.Left
	}
	expect.NoDiff(t, cmp.Diff(map[string]int64{"key-write": 20, "limits-read": 7, "bytes": 5000}, got), "the limits")
	want := `"key-write-1s";q=20;w=1, "limits-read-1m";q=7;w=60, "bytes-1m";q=5000;qu="content-bytes";w=60`
	expect.Equal(t, header.Get(PolicyHeader), want, "")
}
