package registryctl

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTheLaterOfFileEnvironmentAndFlagsWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("url: http://file\nkey: file\nadmin-url: http://file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"REGISTRYCTL_KEY": "environment", "REGISTRYCTL_ADMIN_URL": "http://environment"}
	p := &program{config: file, output: asTable, env: func(name string) string { return environment[name] }, flags: settings{AdminURL: "http://flag"}}
	if err := p.load(); err != nil {
		t.Fatal(err)
	}
	if want := (settings{URL: "http://file", Key: "environment", AdminURL: "http://flag"}); p.settings != want {
		t.Errorf("got %+v, want %+v", p.settings, want)
	}
}

func TestParseLimits(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		want  map[string]map[string]int64 // nil: it is refused
	}{
		"two of a class": {[]string{"write:1s=5", "write:1m=100"}, map[string]map[string]int64{"write": {"1s": 5, "1m": 100}}},
		"none":           {[]string{"none"}, map[string]map[string]int64{}},
		"no number":      {[]string{"write:1s=many"}, nil},
		"no window":      {[]string{"write=5"}, nil},
		"nothing":        {[]string{""}, nil},
	} {
		if got, err := parseLimits(c.texts); (err == nil) != (c.want != nil) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestParseEnd(t *testing.T) {
	for text, want := range map[string]time.Time{"2027-01-31T02:00:00+02:00": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)} {
		if got, err := parseEnd(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	if got, err := parseEnd("never"); got != nil || err != nil {
		t.Errorf("never: got %v, %v", got, err)
	}
	if got, err := parseEnd("1h"); err != nil || time.Until(got.(time.Time)).Round(time.Minute) != time.Hour {
		t.Errorf("in an hour: got %v, %v", got, err)
	}
	if _, err := parseEnd("tomorrow"); err == nil {
		t.Error("tomorrow was taken")
	}
}

func TestATerminalIsNotTold(t *testing.T) {
	var out strings.Builder
	p := &program{out: &out, output: asTable}
	if err := p.print(nil, row{"NAME"}, row{"\x1b[31mred\tТОВ\u009b"}, row{""}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "NAME\n?[31mred?ТОВ?\n-\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
