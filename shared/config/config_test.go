package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type example struct {
	Addr    string        `default:"127.0.0.1:1"`
	MaxBody int64         `default:"10"`
	Timeout time.Duration `default:"1s"`
	Types   []string      `default:"bounce"`
	Sandbox bool
	Rows    rows
}

// rows is a setting whose value is a string or a table.
type rows string

func (r *rows) UnmarshalJSON(text []byte) error {
	*r = rows(text)
	return nil
}

func TestTheLaterOfFileEnvironmentAndFlagsWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "addr: from-file\nmax-body: 20\ntimeout: 2s\ntypes: [a, b]\nsandbox: true\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EXAMPLE_ADDR", "from-env")
	t.Setenv("EXAMPLE_MAX_BODY", "30")
	var got example
	if _, err := Parse(&got, "example", "", "EXAMPLE", []string{"--config", file, "--max-body=40"}); err != nil {
		t.Fatal(err)
	}
	want := example{Addr: "from-env", MaxBody: 40, Timeout: 2 * time.Second, Types: []string{"a", "b"}, Sandbox: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings differ (-want +got):\n%s", diff)
	}
}

func TestDefaultsHoldWhereNothingIsSaid(t *testing.T) {
	var got example
	if _, err := Parse(&got, "example", "", "EXAMPLE", nil); err != nil {
		t.Fatal(err)
	}
	want := example{Addr: "127.0.0.1:1", MaxBody: 10, Timeout: time.Second, Types: []string{"bounce"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings differ (-want +got):\n%s", diff)
	}
}

func TestAllThatIsWrongWithAFileIsToldAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("max-body: many\ntimeout: soon\nadr: x\naddr: right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got example
	_, err := Parse(&got, "example", "", "EXAMPLE", []string{"--config", file})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, told := range []string{"max-body", "timeout", `"adr"`} {
		if !strings.Contains(err.Error(), told) {
			t.Errorf("got %v, want %s in it", err, told)
		}
	}
	if got.Addr != "right" {
		t.Errorf("valid setting addr: got %q, want %q", got.Addr, "right")
	}
}

func TestParseRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []struct{ name, text string }{
		{"unknown.yaml", "adr: x\ncolour: blue\n"},
		{"broken.yaml", "addr: [x"},
		{"wrong.yaml", "max-body: many\n"},
	} {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		name string
		args []string
		says string
	}{
		{"an unknown flag", []string{"--adr=x"}, "--adr"},
		{"a malformed number in a flag", []string{"--max-body=many"}, "many"},
		{"an argument", []string{"serve"}, "serve"},
		{"a missing file", []string{"--config", filepath.Join(dir, "none.yaml")}, "none.yaml"},
		{"unknown settings in a file", []string{"--config", filepath.Join(dir, "unknown.yaml")}, "colour"},
		{"malformed YAML", []string{"--config", filepath.Join(dir, "broken.yaml")}, "config file"},
		{"a malformed number in a file", []string{"--config", filepath.Join(dir, "wrong.yaml")}, "many"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got example
			_, err := Parse(&got, "example", "", "EXAMPLE", c.args)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
}

func TestATableIsReadFromTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	for _, c := range []struct {
		name, text string
		want       rows
	}{
		{"a table", "rows:\n  - {name: a, windows: {1s: 5}}\n", `[{"name":"a","windows":{"1s":5}}]`},
		{"a string", "rows: named\n", "named"},
		{"no rows", "addr: x\n", ""},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got example
		if _, err := Parse(&got, "example", "", "EXAMPLE", []string{"--config", file}); err != nil || got.Rows != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, got.Rows, err, c.want)
		}
	}
}
