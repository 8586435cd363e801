package config

import (
	"testing"
	"time"
)

func TestZone(t *testing.T) {
	for text, want := range map[string]string{"+00:00": "+00:00", "+02:00": "+02:00", "-03:30": "-03:30"} {
		zone, err := Zone(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := time.Unix(0, 0).In(zone).Format("-07:00"); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "Z", "2", "+2", "Europe/Kyiv", "+25:00"} {
		if zone, err := Zone(text); err == nil {
			t.Errorf("%q was taken for %v", text, zone)
		}
	}
}
