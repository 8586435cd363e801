package ratelimit

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/metrictest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestEachClientHasItsOwnLimits lets one client use up its limit. Then only clients that share this limit must
// be refused.
func TestEachClientHasItsOwnLimits(t *testing.T) {
	at := func(addr string) Client { return Client{Addr: netip.MustParseAddr(addr)} }
	keyed := func(broker, key, addr string) Client {
		return Client{Addr: netip.MustParseAddr(addr),
			Identity: identity.Identity{Broker: broker, KeyID: key, Role: identity.Broker}}
	}
	window := map[string]int64{"1m": 1}
	for _, c := range []struct {
		name  string
		by    By
		first Client
		// others has the names of the clients in the field `client`. A value is true if this client must be refused after
		// the client in the field `first` has reached the limit.
		others map[string]bool
		client map[string]Client // the keys are names
	}{
		{"an address", ByAddress, at("192.0.2.1"), map[string]bool{"itself": true, "another": false},
			map[string]Client{"itself": at("192.0.2.1"), "another": at("192.0.2.2")}},
		{"a network of IPv6", ByAddress, at("2001:db8::1"), map[string]bool{"the same": true, "another": false},
			map[string]Client{"the same": at("2001:db8::2"), "another": at("2001:db8:0:1::1")}},
		{"a key", ByKey, keyed("b", "k1", "192.0.2.1"), map[string]bool{"from elsewhere": true, "another key": false},
			map[string]Client{"from elsewhere": keyed("b", "k1", "192.0.2.2"), "another key": keyed("b", "k2", "192.0.2.1")}},
		{"a broker", ByTenant, keyed("b", "k1", "192.0.2.1"), map[string]bool{"another key": true, "another broker": false},
			map[string]Client{"another key": keyed("b", "k2", "192.0.2.2"), "another broker": keyed("c", "k3", "192.0.2.1")}},
	} {
		table := Table{{Name: "p", By: c.by, Costs: map[Class]int64{routes.Read: 1}, Windows: window}}
		l := New(NewMemory(time.Now, 0), table, time.Now, noop.NewMeterProvider().Meter(""))
		admit := func(client Client) error {
			return l.Admit(t.Context(), http.Header{}, Request{Class: routes.Read, Client: client})
		}
		if err := admit(c.first); err != nil {
			t.Fatalf("%s: got %v, want the first request admitted", c.name, err)
		}
		for name, refused := range c.others {
			expect.Equal(t, fault.KindOf(admit(c.client[name])) == fault.TooMany, refused, "%s, %s, refused", c.name,
				name)
		}
	}
}

// TestARefusalNamesItsPolicy uses up each policy of a table, including a policy with several windows and one
// that counts bytes. The refusal must name the policy.
func TestARefusalNamesItsPolicy(t *testing.T) {
	client := member("b", "k")
	for _, c := range []struct {
		exceeds string
		class   Class
		body    int64
		times   int // number of requests that are admitted
		says    string
	}{
		{"few", routes.Read, 0, 2, "Too many requests:"},
		{"many", routes.List, 0, 3, "Too many requests:"},
		{"size", routes.Write, 60, 1, "Too many bytes written:"},
	} {
		meter := metrictest.New()
		l := New(NewMemory(time.Now, 0), Table{
			{Name: "few", By: ByKey, Costs: map[Class]int64{routes.Read: 1}, Windows: map[string]int64{"1m": 5, "1h": 2}},
			{Name: "many", By: ByTenant, Costs: map[Class]int64{routes.List: 1, routes.Read: 1, routes.Write: 1},
				Windows: map[string]int64{"1m": 3, "1h": 100}},
			{Name: "size", By: ByTenant, Costs: map[Class]int64{routes.Write: 1, Bytes: 1}, Windows: map[string]int64{"1m": 100}},
		}, time.Now, meter)
		var err error
		for n := range c.times + 1 {
			err = l.Admit(t.Context(), http.Header{}, Request{Class: c.class, Client: client, Body: c.body})
			expect.FatalIf(t, n < c.times && err != nil, "%s: request %d: got %v, want it admitted", c.exceeds, n, err)
		}
		f, _ := errors.AsType[*fault.Error](err)
		if f == nil || f.Kind != fault.TooMany || !strings.Contains(f.Details[0].Description, c.says) {
			t.Errorf("%s: got %v, want a refusal with %q", c.exceeds, err, c.says)
		}
		told := meter.Read(t)
		for _, policy := range []string{"few", "many", "size"} {
			want := 0.0
			if policy == c.exceeds {
				want = 1
			}
			if got, known := told["registry.limits.refused{"+policy+"}"]; !known || got != want {
				t.Errorf("%s: got %v refusals of %s, want %v: %v", c.exceeds, got, policy, want, told)
			}
		}
	}
}

// TestARequestThatNoPolicyCountsIsAdmitted asks a limiter that has no policies and no store. The request must be
// admitted.
func TestARequestThatNoPolicyCountsIsAdmitted(t *testing.T) {
	l := New(nil, Table{}, time.Now, noop.NewMeterProvider().Meter(""))
	expect.Try(t, l.Admit(t.Context(), http.Header{}, Request{Class: routes.Read, Client: member("b", "k")}))
}
