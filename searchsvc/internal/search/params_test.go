package search

import (
	"net/url"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no time zones

	"asset-registry/shared/testing/expect"
)

// TestDaysAreThoseOfAZone reads dates of days that begin in summer time and in winter time. Each day must begin
// and end at midnight in the zone.
func TestDaysAreThoseOfAZone(t *testing.T) {
	kyiv := expect.Get(time.LoadLocation("Europe/Kyiv"))(t)
	for day, want := range map[string]string{
		"2026-11-25": "2026-11-24T22:00:00Z", "2026-07-01": "2026-06-30T21:00:00Z", "2026-03-29": "2026-03-28T22:00:00Z",
		"2026-10-25": "2026-10-24T21:00:00Z",
	} {
		values := url.Values{"published_from": {day}, "published_to": {day}}
		q := expect.Get(Parse(values, kyiv))(t)
		expect.Equal(t, q.Filters.Published.From.UTC().Format(time.RFC3339), want, "%s, the start", day)
		next, _ := time.ParseInLocation(time.DateOnly, day, kyiv)
		if next = next.AddDate(0, 0, 1); !q.Filters.Published.Until.Equal(next) {
			t.Errorf("%s: got the end %s, want %s", day, q.Filters.Published.Until, next)
		}
		if got := q.Values(); got.Get("published_from") != day || got.Get("published_to") != day {
			t.Errorf("%s: got the parameters %v, want the day", day, got)
		}
	}
}
