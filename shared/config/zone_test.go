package config

import (
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

func TestZone(t *testing.T) {
	for _, want := range []string{"+00:00", "+02:00", "-03:30"} {
		zone, err := Zone(want)
		if err != nil {
			t.Errorf("%q: got %v, want no error", want, err)
			continue
		}
		expect.Equal(t, time.Unix(0, 0).In(zone).Format("-07:00"), want, "")
	}
	for _, text := range []string{"", "Z", "2", "+2", "Europe/Kyiv", "+25:00"} {
		if zone, err := Zone(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, zone)
		}
	}
}
