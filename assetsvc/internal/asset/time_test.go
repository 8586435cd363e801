package asset

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestTimesArePrintedAsByPackageTime(t *testing.T) {
	zones := []*time.Location{time.UTC}
	for _, name := range []string{"Europe/Kyiv", "America/St_Johns", "Asia/Kathmandu", "Africa/Monrovia"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, zone)
	}
	times := []time.Time{
		{}, time.UnixMicro(0), time.UnixMicro(-1), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for range 10_000 {
		times = append(times, time.UnixMicro(rand.Int64N(400e15)-100e15))
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
