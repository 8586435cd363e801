package config

import (
	"os"
	"path/filepath"
	"strings"
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

func TestSecret(t *testing.T) {
	secret := strings.Repeat("s", 32)
	for name, c := range map[string]struct{ text, want string }{
		"as it is":         {secret, secret},
		"with a line end":  {secret + "\n", secret},
		"too short":        {secret[1:] + "\n", ""},
		"white space only": {strings.Repeat(" ", 40), ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Secret(file)
			if string(got) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
	if _, err := Secret(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that does not exist was read")
	}
}
