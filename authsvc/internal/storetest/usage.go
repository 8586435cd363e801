package storetest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/authapi"
)

func testUses(t *testing.T, open Opener) {
	s := open(t, "a")
	k := newKey("k1", "b")
	k.Secrets = append(k.Secrets, apikey.Secret{Number: 2, Hash: authapi.Hash("2"), Created: made})
	commitChange(t, s, admin.Change{Key: &k, NewHash: k.Secrets[0].Hash})
	var uses []authapi.Use
	for i := range apikey.MaxUses + 3 {
		addr := netip.MustParseAddr(fmt.Sprint("192.0.2.", i))
		uses = append(uses, authapi.Use{KeyID: "k1", Secret: 1, Addr: addr, Micros: made.UnixMicro() + int64(i)})
	}
	again, late := uses[5], uses[6]
	again.Micros, late.Micros = made.UnixMicro()+100, made.UnixMicro()-100
	other := authapi.Use{KeyID: "k1", Secret: 2, Addr: netip.MustParseAddr("2001:db8::1"), Micros: made.UnixMicro()}
	for _, batch := range [][]authapi.Use{uses, {again, late, other}, nil} {
		if err := s.AddUsage(t.Context(), batch, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Uses(t.Context(), []string{"k1", "none"})
	if err != nil || len(got["k1"][1]) != apikey.MaxUses {
		t.Fatalf("got %v, %v; want %d uses of the first secret", got, err, apikey.MaxUses)
	}
	equal(t, got["k1"][1][0], nil, adminapi.Use{Time: made.Add(100 * time.Microsecond), From: "192.0.2.5"})
	equal(t, got["k1"][1][1].From, nil, "192.0.2.10")
	equal(t, got["k1"][1][apikey.MaxUses-1].From, nil, "192.0.2.3")
	equal(t, got["k1"][2], nil, []adminapi.Use{{Time: made, From: "2001:db8::1"}})
}

// testCountsOfAWrongClock counts a request on a day a year ahead. The counts of the other days must stay.
func testCountsOfAWrongClock(t *testing.T, open Opener) {
	s := open(t, "a")
	count := func(day string) authapi.Count {
		return authapi.Count{KeyID: "k1", Day: day, Class: "read", Requests: 1}
	}
	days := []string{"2025-11-21", "2026-11-20", "2026-11-21", "2027-11-21"}
	for _, day := range []string{days[1], days[2], days[3], days[0], days[2]} {
		if err := s.AddUsage(t.Context(), nil, []authapi.Count{count(day)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Counts(t.Context(), "k1", days)
	want := []adminapi.Day{}
	for i, n := range []int64{1, 1, 2, 1} {
		want = append(want, adminapi.Day{Day: days[i], Counts: map[string]int64{"read": n}})
	}
	equal(t, got, err, want)
}

func testCounts(t *testing.T, open Opener) {
	s := open(t, "a")
	count := func(id, day, class string, n int64) authapi.Count {
		return authapi.Count{KeyID: id, Day: day, Class: class, Requests: n}
	}
	for range 3 {
		if err := s.AddUsage(t.Context(), nil, []authapi.Count{
			count("k1", "2026-11-20", "read", 1), count("k1", "2026-11-21", "read", 10),
			count("k1", "2026-11-21", "write", 100), count("k12", "2026-11-21", "read", 1000),
		}); err != nil {
			t.Fatal(err)
		}
	}
	days, err := s.Counts(t.Context(), "k1", []string{"2026-11-19", "2026-11-20", "2026-11-21"})
	equal(t, days, err, []adminapi.Day{
		{Day: "2026-11-20", Counts: map[string]int64{"read": 3}},
		{Day: "2026-11-21", Counts: map[string]int64{"read": 30, "write": 300}},
	})
}
