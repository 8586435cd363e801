package console

import (
	"math"
	"testing"
	"time"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/testing/expect"
)

func TestAChartHasEveryDayAndKeepsToItsFrame(t *testing.T) {
	now := time.Date(2026, 3, 2, 1, 0, 0, 0, time.UTC)
	busy := adminapi.Day{Day: "2026-02-28", Counts: map[string]int64{"list": 700, "read": 250, "write": 50}}
	for name, counts := range map[string][]adminapi.Day{
		"no requests":          nil,
		"one request":          {{Day: "2026-03-02", Counts: map[string]int64{"read": 1}}},
		"requests on two days": {busy, {Day: "2026-03-01", Counts: map[string]int64{"write": 10}}},
		"a very large count":   {{Day: "2026-03-01", Counts: map[string]int64{"list": math.MaxInt64 / 4, "read": 3}}},
		"requests a year ago":  {{Day: "2025-03-01", Counts: map[string]int64{"list": 5}}},
	} {
		for _, days := range []int{1, 7, 30, 400} {
			c := newChart(counts, days, now)
			last := c.Days[len(c.Days)-1]
			if len(c.Days) != days || last.Name != "2026-03-02" || last.Label != "03-02" {
				t.Errorf("%s: got %d days to %s (%s), want %d to 2026-03-02", name, len(c.Days), last.Name, last.Label, days)
			}
			if len(c.Ticks) < 2 || len(c.Ticks) > 6 {
				t.Errorf("%s, %d days: got %d ticks, want 2 to 6", name, days, len(c.Ticks))
			}
			for _, day := range c.Days {
				for _, bar := range day.Bars {
					if bar.Height <= 0 || bar.Y < chartTop-0.01 || bar.Y+bar.Height > chartHeight-chartBottom+0.01 ||
						bar.X < chartLeft || bar.X+bar.Width > chartWidth-chartRight {
						t.Errorf("%s, %d days: got the bar %+v on %s, want it in the frame", name, days, bar, day.Name)
					}
				}
			}
		}
	}
	c := newChart([]adminapi.Day{busy, {Day: "2026-03-01", Counts: map[string]int64{"write": 500}}}, 7, now)
	if c.Total != 1500 || c.Most != 1000 || c.MostOn != "2026-02-28" {
		t.Errorf("got %d requests, at most %d on %s; want 1500, 1000 on 2026-02-28", c.Total, c.Most, c.MostOn)
	}
	saturday, sunday := c.Days[4], c.Days[5]
	if len(saturday.Bars) != 3 || len(sunday.Bars) != 1 ||
		math.Abs(saturday.Bars[0].Height/sunday.Bars[0].Height-1.4) > 1e-9 {
		t.Errorf("got bars %+v and %+v, want 3 and 1, with first heights of 700 to 500", saturday.Bars, sunday.Bars)
	}
	if saturday.Bars[1].Y+saturday.Bars[1].Height != saturday.Bars[0].Y {
		t.Errorf("got bars %+v, want each on top of the previous one", saturday.Bars)
	}
}

func TestNumbersOfAChart(t *testing.T) {
	for n, want := range map[int64]int64{0: 1, 4: 1, 5: 2, 10: 5, 25: 10, 3264: 1000, math.MaxInt64: 2e18} {
		expect.Equal(t, niceStep(n), want, "niceStep(%d)", n)
	}
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1k", 2500: "2.5k", 1234: "1234", 2e6: "2M", 15e8: "1.5G",
	} {
		expect.Equal(t, short(n), want, "short(%d)", n)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		expect.Equal(t, grouped(n), want, "grouped(%d)", n)
	}
}
