package admin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

// stock creates the brokers "a" and "b", and seven keys named n-k0 to n-k6, an hour apart. k1 is revoked, and k5 has
// expired. Of the keys that are still valid, k2 expires first. k3 was used last, and k0 was used before it. The keys
// with even numbers belong to the broker "a".
func (w *world) stock(t *testing.T) {
	t.Helper()
	w.broker(t, "a")
	w.broker(t, "b")
	for i := range 7 {
		w.now = w.now.Add(time.Hour)
		id, _ := w.key(t, []string{"a", "b"}[i%2], func(n *adminapi.NewKey) {
			n.Name = "n-" + []string{"k0", "K1", "k2", "K3", "k4", "K5", "k6"}[i]
			switch i {
			case 2:
				expires := w.now.AddDate(0, 1, 0)
				n.Expires = &expires
			case 4:
				expires := w.now.AddDate(0, 2, 0)
				n.Expires = &expires
			case 5:
				expires := w.now.Add(time.Minute)
				n.Expires = &expires
			}
		})
		switch i {
		case 1:
			expect.Get(w.service.RevokeKey(t.Context(), operator, id))(t)
		case 0, 3:
			report := []authapi.Use{{KeyID: id, Secret: 1, Addr: local, Micros: w.now.UnixMicro()}}
			counts := []authapi.Count{{KeyID: id, Day: w.now.Format(time.DateOnly), Class: "read", Requests: int64(i + 1)}}
			expect.OK(t, w.AddUsage(t.Context(), report, counts))
		}
	}
}

func names(keys []adminapi.Key) string {
	var all []string
	for _, k := range keys {
		all = append(all, strings.TrimPrefix(strings.ToLower(k.Name), "n-"))
	}
	return strings.Join(all, " ")
}

func TestKeysAreFoundInEveryOrder(t *testing.T) {
	w := newWorld(t)
	w.stock(t)
	for _, c := range []struct {
		name  string
		query admin.KeyQuery
		want  string
	}{
		{"no query", admin.KeyQuery{}, "k6 k5 k4 k3 k2 k1 k0"},
		{"reversed", admin.KeyQuery{Reverse: true}, "k0 k1 k2 k3 k4 k5 k6"},
		{"by last use", admin.KeyQuery{Order: admin.ByUsed}, "k3 k0 k6 k5 k4 k2 k1"},
		{"by name, in any case", admin.KeyQuery{Order: admin.ByName}, "k0 k1 k2 k3 k4 k5 k6"},
		{"by name, reversed", admin.KeyQuery{Order: admin.ByName, Reverse: true}, "k6 k5 k4 k3 k2 k1 k0"},
		{"by broker, the newest first", admin.KeyQuery{Order: admin.ByBroker}, "k6 k4 k2 k0 k5 k3 k1"},
		{"by expiry", admin.KeyQuery{Order: admin.ByExpiry}, "k5 k2 k4 k6 k3 k1 k0"},
		{"of a broker", admin.KeyQuery{Broker: "b"}, "k5 k3 k1"},
		{"in states", admin.KeyQuery{States: []string{adminapi.Active, adminapi.Expired}}, "k6 k5 k4 k3 k2 k0"},
		{"with a text", admin.KeyQuery{Text: "N-K3"}, "k3"},
		{"a page", admin.KeyQuery{Skip: 2, Limit: 3}, "k4 k3 k2"},
		{"a page beyond the last one", admin.KeyQuery{Skip: 300, Limit: 3}, "k0"},
		{"nothing", admin.KeyQuery{Text: "none", Skip: 3}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.query.Limit == 0 {
				c.query.Limit = 25
			}
			got, err := w.service.FindKeys(t.Context(), c.query)
			if err != nil || names(got.Keys) != c.want || got.Cut {
				t.Errorf("got %q, cut %t, %v; want %q, all of them", names(got.Keys), got.Cut, err, c.want)
			}
		})
	}
	got, err := w.service.FindKeys(t.Context(), admin.KeyQuery{
		Broker: "b", States: []string{adminapi.Revoked}, Limit: 1,
	})
	want := map[string]int{adminapi.Active: 1, adminapi.Expired: 1, adminapi.Revoked: 1}
	if err != nil || got.Total != 1 || !maps.Equal(got.States, want) {
		t.Errorf("got %d keys of states %v, %v; want 1 of %v", got.Total, got.States, err, want)
	}
	_, err = w.service.FindKeys(t.Context(), admin.KeyQuery{Order: "colour", Limit: 1})
	expect.ErrorIf(t, fault.KindOf(err) != fault.Invalid, "an unknown order: got %v, want a fault of kind Invalid", err)
}

func TestTheUsageOfABrokerIsThatOfItsKeys(t *testing.T) {
	w := newWorld(t)
	w.stock(t)
	day := w.now.Format(time.DateOnly)
	for broker, want := range map[string]int64{"a": 1, "b": 4} {
		sum, cut, err := w.service.BrokerUsage(t.Context(), broker, 7)
		if err != nil || cut || len(sum) != 1 || sum[0].Day != day || sum[0].Counts["read"] != want {
			t.Errorf("%s: got %v, cut %t, %v; want %d read on %s", broker, sum, cut, err, want, day)
		}
	}
	for _, days := range []int{0, admin.MaxSummedDays + 1} {
		if _, _, err := w.service.BrokerUsage(t.Context(), "a", days); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%d days: got %v, want a fault of kind Invalid", days, err)
		}
	}
}

func TestBrokersAreFoundInPages(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		w.broker(t, fmt.Sprint("b", i))
	}
	w.broker(t, "other")
	for skip, want := range map[int][]string{0: {"b0", "b1", "b2"}, 3: {"b3", "b4", "b5"}, 6: {"b6"}, 99: {"b6"}} {
		p, err := w.service.FindBrokers(t.Context(), "B", skip, 3)
		var got []string
		for _, b := range p.Brokers {
			got = append(got, b.Name)
		}
		if err != nil || !slices.Equal(got, want) || p.Total != 7 || p.Cut {
			t.Errorf("after %d: got %v of %d, %v; want %v of 7", skip, got, p.Total, err, want)
		}
	}
}

// endless is a store whose list of keys never ends. It counts the keys that were read.
type endless struct {
	*world
	read int
}

func (e *endless) KeysBack(_ context.Context, before string, limit int) (keys []apikey.Key, err error) {
	for range limit {
		e.read++
		keys = append(keys, apikey.Key{ID: fmt.Sprint("key-", e.read), Settings: apikey.Settings{Role: identity.Broker}})
	}
	if e.read > 2*admin.MaxFound {
		return nil, errors.New("too much was read")
	}
	return keys, nil
}

func TestASearchOfKeysIsBounded(t *testing.T) {
	w := newWorld(t)
	store := &endless{world: w}
	service := admin.NewService(store, nil, nil, func() time.Time { return w.now })
	got, err := service.FindKeys(t.Context(), admin.KeyQuery{Limit: 25})
	if err != nil || !got.Cut || got.Total != admin.MaxFound || len(got.Keys) != 25 || store.read > admin.MaxFound+1000 {
		t.Errorf("got %d of %d keys, cut %t, %v after reading %d; want 25 of %d, cut",
			len(got.Keys), got.Total, got.Cut, err, store.read, admin.MaxFound)
	}
}
