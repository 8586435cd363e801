package asset

import (
	"testing"
	"time"

	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

func TestTimesArePrintedAsByPackageTime(t *testing.T) {
	zones := []*time.Location{time.UTC}
	for _, name := range []string{"Europe/Kyiv", "America/St_Johns", "Asia/Kathmandu", "Africa/Monrovia"} {
		zone := expect.Get(time.LoadLocation(name))(t)
		zones = append(zones, zone)
	}
	times := []time.Time{
		{}, time.UnixMicro(0), time.UnixMicro(-1), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for range 10_000 {
		times = append(times, time.UnixMicro(int64(randtest.N(400e15))-100e15))
	}
	for _, zone := range zones {
		for _, at := range times {
			want := at.In(zone).Format(timeForm)
			if got := string(AppendTime([]byte("x"), at, zone)); got != "x"+want {
				t.Fatalf("%v in %v: got %s, want x%s", at, zone, got, want)
			}
			if got := FormatTime(at, zone); got != want {
				t.Fatalf("%v in %v: got %s, want %s", at, zone, got, want)
			}
		}
	}
}

// TestOffsetsAreRead has each accepted form of an offset. It also has refused forms, which are ambiguous or
// very rare.
// Promises: offsets
func TestOffsetsAreRead(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 32, 46, 881_553_000, time.UTC)
	hour, minute, second, midnight := at.Truncate(time.Hour), at.Truncate(time.Minute), at.Truncate(time.Second),
		at.Truncate(24*time.Hour)
	for text, want := range map[string]time.Time{
		"2026-11-22T09:32:46.881553+00:00": at, "2026-11-22T11:32:46.881553 02:00": at, "2026-11-22 09:32:46.881553": at,
		"2026-11-22t09:32:46,8815539z": at, "2026-11-22T09:32:46": second, "2026-11-22T09:32:46 00:00": second,
		"2026-11-22T09:32": minute, "2026-11-22T09:32Z": minute, "2026-11-22T09": hour, "2026-11-22T09Z": hour,
		"2026-11-22T11+02": hour, "2026-11-22T11 02": hour, "2026-11-22T11+02:00": hour, "2026-11-22T0400-0500": hour,
		"2026-11-22": midnight, "20261122": midnight, "20261122T09": hour, "20261122T09Z": hour, "20261122T0932": minute,
		"20261122T093246Z": second, "20261122T093246.881553Z": at, "20261122T113246.881553+0200": at,
		"20261122T113246.881553+02": at, "20261122 093246": second,
	} {
		if got, err := ParseOffset(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "yesterday", "2026", "2026-11", "202611", "2026-1122", "202611-22", "2026-W47-7", "2026-326", "2026326",
		"2026-13-01", "20261301", "2026-11-31", "2026-11-22T24:00", "2026-11-22T09:32:60Z", "2026-11-22T09:3246",
		"2026-11-22T0932:46", "2026-11-22T09:32.5", "2026-11-22T09.5", "2026-11-22T", "2026-11-22Z", "2026-11-22+02:00",
		"2026-11-22T09:32:46.", "2026-11-22T09:32:46+2", "2026-11-22T09:32:46++02:00", "2026-11-22T09:32:46  02:00",
		"2026-11-22T09:32:46.881553+00:00 ", " 2026-11-22", "2026-11-22T09:32:46.8+24:00", "1795217164964702",
		"12026-11-22", "+2026-11-22", "0000-01-01",
	} {
		if got, err := ParseOffset(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
