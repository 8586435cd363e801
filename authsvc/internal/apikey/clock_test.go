package apikey

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
	"asset-registry/shared/testing/expect"
)

const year = 365 * 24 * time.Hour

// TestAGraceOfAWrongClockEnds rotates a key with a clock that is right, or a year ahead or behind. After a wrong
// clock, the former secret must not be valid.
func TestAGraceOfAWrongClockEnds(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		rotated time.Time
		valid   bool
	}{
		"the right clock": {now, true}, "a year ahead": {now.Add(year), false}, "a year behind": {now.Add(-year), false},
		"a minute ahead": {now.Add(time.Minute), true}, "a minute behind": {now.Add(-time.Minute), true},
		"a day ahead": {now.AddDate(0, 0, 1), false}, "a day behind": {now.AddDate(0, 0, -1), true},
		"ten years ahead": {now.Add(10 * year), false}, "ten years behind": {now.Add(-10 * year), false},
	} {
		k := Key{ID: "k", Broker: "b", Settings: Settings{Name: "k", Role: identity.Broker, Levels: "1"},
			Secrets: []Secret{{Number: 1, Hash: authapi.Hash("one"), Created: now}}}
		k, err := k.Rotate(authapi.Hash("two"), MaxGrace, c.rotated)
		expect.OK(t, err)
		if _, valid := k.Admit(authapi.Hash("one"), Broker{Name: "b"}, now); valid != c.valid {
			t.Errorf("%s: the former secret: got valid %v, want %v", name, valid, c.valid)
		}
		if _, valid := k.Admit(authapi.Hash("two"), Broker{Name: "b"}, now); !valid {
			t.Errorf("%s: the new secret: got refused, want valid", name)
		}
	}
}

// recorded keeps what a meter stores.
type recorded struct {
	uses   []authapi.Use
	counts []authapi.Count
}

func (k *recorded) AddUsage(_ context.Context, uses []authapi.Use, counts []authapi.Count) error {
	k.uses, k.counts = append(k.uses, uses...), append(k.counts, counts...)
	return nil
}

// TestUsageOfAWrongClockCountsAsNow reports usage with clocks that are a year ahead or behind. The usage must
// count as usage of now.
func TestUsageOfAWrongClockCountsAsNow(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		by  time.Time
		day string
		use time.Time
	}{
		"the right clock":     {now, "2026-11-22", now},
		"a day behind":        {now.Add(-24 * time.Hour), "2026-11-21", now.Add(-24 * time.Hour)},
		"just after midnight": {now.Add(16 * time.Hour), "2026-11-23", now},
		"a year ahead":        {now.Add(year), "2026-11-22", now},
		"two years behind":    {now.Add(-2 * year), "2026-11-22", now.Add(-2 * year)},
		"a minute ahead":      {now.Add(time.Minute), "2026-11-22", now},
		"a minute behind":     {now.Add(-time.Minute), "2026-11-22", now.Add(-time.Minute)},
		"a day ahead":         {now.AddDate(0, 0, 1), "2026-11-23", now},
		"ten years ahead":     {now.Add(10 * year), "2026-11-22", now},
		"ten years behind":    {now.Add(-10 * year), "2026-11-22", now.Add(-10 * year)},
	} {
		to := &recorded{}
		err := NewMeter(to, func() time.Time { return now }).Report(t.Context(), authapi.ReportUsageRequest{
			Uses:   []authapi.Use{{KeyID: "k", Secret: 1, Addr: netip.MustParseAddr("192.0.2.1"), Micros: c.by.UnixMicro()}},
			Counts: []authapi.Count{{KeyID: "k", Day: c.by.Format(time.DateOnly), Class: authapi.Classes()[0], Requests: 1}},
		})
		if err != nil || len(to.uses) != 1 || len(to.counts) != 1 {
			t.Fatalf("%s: got %+v, %v; want one use and one count", name, to, err)
		}
		if to.counts[0].Day != c.day || to.uses[0].Micros != c.use.UnixMicro() {
			t.Errorf("%s: got the day %s and a use at %v, want %s and %v",
				name, to.counts[0].Day, time.UnixMicro(to.uses[0].Micros).UTC(), c.day, c.use)
		}
	}
}
