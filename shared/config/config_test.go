package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

type example struct {
	Label   string        `default:"127.0.0.1:1"`
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

func TestServeIsAWordOfEveryService(t *testing.T) {
	var alone example
	command, err := Parse(&alone, "example", "", "EXAMPLE", []string{"serve", "--label", "given"})
	expect.ErrorIf(t, err != nil || command != "" || alone.Label != "given",
		"a service without commands: got %q, %v and %+v, want no fault and the address", command, err, alone)
	var several struct {
		Serve example `cmd:""`
	}
	command, err = Parse(&several, "example", "", "EXAMPLE", []string{"serve", "--label", "given"})
	expect.ErrorIf(t, err != nil || command != "serve" || several.Serve.Label != "given",
		"a service with commands: got %q, %v and %+v, want the command serve", command, err, several)
	expect.FailsOf(t, "serve behind a flag")(Parse(&alone, "example", "", "EXAMPLE", []string{"--label", "a", "serve"}))
}

func TestTheLaterOfFileEnvironmentAndFlagsWins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "label: from-file\nmax-body: 20\ntimeout: 2s\ntypes: [a, b]\nsandbox: true\n"
	expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("EXAMPLE_LABEL", "from-env")
	t.Setenv("EXAMPLE_MAX_BODY", "30")
	var got example
	expect.Get(Parse(&got, "example", "", "EXAMPLE", []string{"--config", file, "--max-body=40"}))(t)
	want := example{Label: "from-env", MaxBody: 40, Timeout: 2 * time.Second, Types: []string{"a", "b"}, Sandbox: true}
	expect.NoDiff(t, cmp.Diff(want, got), "settings")
}

func TestDefaultsHoldWhereNothingIsSaid(t *testing.T) {
	var got example
	expect.Get(Parse(&got, "example", "", "EXAMPLE", nil))(t)
	want := example{Label: "127.0.0.1:1", MaxBody: 10, Timeout: time.Second, Types: []string{"bounce"}}
	expect.NoDiff(t, cmp.Diff(want, got), "settings")
}

func TestAllThatIsWrongWithAFileIsToldAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	expect.OK(t, os.WriteFile(file, []byte("max-body: many\ntimeout: soon\nadr: x\nlabel: right\n"), 0o600))
	var got example
	_, err := Parse(&got, "example", "", "EXAMPLE", []string{"--config", file})
	expect.FatalIf(t, err == nil, "got no error, want one")
	for _, told := range []string{"max-body", "timeout", `"adr"`} {
		expect.ErrorIf(t, !strings.Contains(err.Error(), told), "got %v, want %s in it", err, told)
	}
	expect.Equal(t, got.Label, "right", "valid setting label")
}

func TestParseRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []struct{ name, text string }{
		{"unknown.yaml", "adr: x\ncolour: blue\n"},
		{"broken.yaml", "label: [x"},
		{"wrong.yaml", "max-body: many\n"},
	} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600))
	}
	cases := []struct {
		name string
		args []string
		says string
	}{
		{"an unknown flag", []string{"--adr=x"}, "--adr"},
		{"a malformed number in a flag", []string{"--max-body=many"}, "many"},
		{"an argument", []string{"stray"}, "stray"},
		{"a missing file", []string{"--config", filepath.Join(dir, "none.yaml")}, "none.yaml"},
		{"unknown settings in a file", []string{"--config", filepath.Join(dir, "unknown.yaml")}, "colour"},
		{"malformed YAML", []string{"--config", filepath.Join(dir, "broken.yaml")}, "config file"},
		{"a malformed number in a file", []string{"--config", filepath.Join(dir, "wrong.yaml")}, "many"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got example
			_, err := Parse(&got, "example", "", "EXAMPLE", c.args)
			expect.Says(t, err, c.says, "")
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
		{"no rows", "label: x\n", ""},
	} {
		expect.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
		var got example
		if _, err := Parse(&got, "example", "", "EXAMPLE", []string{"--config", file}); err != nil || got.Rows != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, got.Rows, err, c.want)
		}
	}
}

// texts has settings of types whose values YAML could read as a number or a boolean.
type texts struct {
	Name   string
	Names  []string
	ByName map[string]string
	Wait   time.Duration
	Later  *time.Duration
	Rows   rows
}

func parseFile(t *testing.T, text string) (got texts, err error) {
	t.Helper()
	err = parseInto(t, &got, text)
	return got, err
}

func parseInto(t *testing.T, dst any, text string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	_, err := Parse(dst, "example", "", "EXAMPLE", []string{"--config", file})
	return err
}

func TestADurationNeedsItsUnit(t *testing.T) {
	for _, value := range []string{
		"5", "3600", "0x10", "1_000", "007", "1.5", "1e9", "-1", "'5'", "true", "5 s", "[5s]", ".inf",
	} {
		for _, name := range []string{"wait", "later"} {
			_, err := parseFile(t, name+": "+value+"\n")
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "such as 90s") {
				t.Errorf("%s: %s: got %v, want an error with the name and the accepted form", name, value, err)
			}
		}
		if value[0] == '\'' {
			continue
		}
		_, err := Parse(new(texts), "example", "", "EXAMPLE", []string{"--wait=" + value})
		if err == nil || !strings.Contains(err.Error(), "--wait") || !strings.Contains(err.Error(), "such as 90s") {
			t.Errorf("--wait=%s: got %v, want an error with the name and the accepted form", value, err)
		}
	}
	for text, want := range map[string]time.Duration{
		"wait: 5s": 5 * time.Second, "wait: 0": 0, "wait: '1h30m'": 90 * time.Minute,
		"wait: 1.5s":             1500 * time.Millisecond,
		"later: &a 5s\nwait: *a": 5 * time.Second, "wait:": 0, "wait: ~": 0, "\ufeffwait: 5s": 5 * time.Second,
	} {
		if got, err := parseFile(t, text); err != nil || got.Wait != want {
			t.Errorf("%s: got %v, %v; want %v", text, got.Wait, err, want)
		}
	}
}

func TestNamesInAFileStayAsWritten(t *testing.T) {
	written := []string{
		"0123", "1.50", "01", "1_000", "0x1F", "0b11", "0o17", "1e3", "-0", "+1", ".5", "5.", ".inf", "-.INF", ".nan",
		"true", "False", "yes", "2027-01-01", "12345678901234567890123", "'0123'", `"1.50"`, `"12:30:45"`,
	}
	for _, text := range written {
		want := strings.Trim(text, `'"`)
		got, err := parseFile(t, "name: "+text+"\nnames: ["+text+", b]\nby-name: {"+text+": "+text+"}\n")
		wanted := texts{Name: want, Names: []string{want, "b"}, ByName: map[string]string{want: want}}
		if diff := cmp.Diff(wanted, got); err != nil || diff != "" {
			t.Errorf("%s: got %v and the settings (-want +got):\n%s", text, err, diff)
		}
		got, err = parseFile(t, "names:\n  - "+text+"\nby-name:\n  "+text+": "+text+" # a comment\n")
		wanted = texts{Names: []string{want}, ByName: map[string]string{want: want}}
		if diff := cmp.Diff(wanted, got); err != nil || diff != "" {
			t.Errorf("%s in lines: got %v and the settings (-want +got):\n%s", text, err, diff)
		}
	}
	got, err := parseFile(t, "rows:\n- {name: 0123, windows: {60: 5, 1.50: 01}}\n")
	if want := rows(`[{"name":"0123","windows":{"1.50":"01","60":5}}]`); err != nil || got.Rows != want {
		t.Errorf("in a table: got %s, %v; want %s", got.Rows, err, want)
	}
}
