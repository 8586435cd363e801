package config

import (
	"testing"
	"time"
)

func TestZone(t *testing.T) {
	for _, want := range []string{"+00:00", "+02:00", "-03:30"} {
		zone, err := Zone(want)
		if err != nil {
			t.Errorf("%q: got %v, want no error", want, err)
			continue
		}
		if got := time.Unix(0, 0).In(zone).Format("-07:00"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, text := range []string{"", "Z", "2", "+2", "Europe/Kyiv", "+25:00"} {
		if zone, err := Zone(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, zone)
		}
	}
}
