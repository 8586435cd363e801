package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// stored has settings that may hold secrets.
type stored struct {
	Addr     string        `default:"127.0.0.1:1"`
	Store    string        `required:""`
	Others   []string      `name:"others"`
	Timeout  time.Duration `default:"1s"`
	MaxBody  int64         `default:"10"`
	APIToken string        `name:"api-token"`
	TLSKey   string        `name:"tls-key"`
}

// TestCheckTellsWhatIsInForceAndWhereItCameFrom sets a value in each source.
// Check must print each value with its source.
func TestCheckTellsWhatIsInForceAndWhereItCameFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "timeout: 5s\nmax-body: 20\nothers: ['redis://:pa/ss@h:1?db=1', 'mongodb://u:p%@a/x?authToken=t&w=1']\n"
	expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	t.Setenv("EXAMPLE_STORE", "redis://user:p#ss@h:6379/0")
	t.Setenv("EXAMPLE_API_TOKEN", "of-the-environment")
	t.Setenv("EXAMPLE_MAX_BODY", "30")
	var got stored
	var out strings.Builder
	expect.OK(t, Check(&got, "example", "EXAMPLE", "", []string{file, "--max-body=40", "--tls-key", "k.pem"}, &out))
	for _, want := range []string{
		`addr: "127.0.0.1:1" # default`,
		`store: "redis://***@h:6379/0" # environment, EXAMPLE_STORE`,
		`others: ["redis://***@h:1?db=1","mongodb://***@a/x?authToken=***&w=1"] # file`,
		`timeout: 5s # file`,
		`max-body: 40 # flag`,
		`api-token: "***" # environment, EXAMPLE_API_TOKEN`,
		`tls-key: "k.pem" # flag`,
	} {
		if !strings.Contains("\n"+out.String(), "\n"+want+"\n") {
			t.Errorf("got %s, want the line %s", out.String(), want)
		}
	}
	expect.ErrorIf(t, got.Store != "redis://user:p#ss@h:6379/0" || got.MaxBody != 40,
		"got %+v, want the settings as they are", got)
	var values map[string]any
	if err := ReadYAML(strings.NewReader(out.String()), &values); err != nil || len(values) < 7 {
		t.Errorf("the output as YAML: got %v, %v; want a settings file", values, err)
	}
	out.Reset()
	os.Unsetenv("EXAMPLE_STORE")
	expect.Says(t, Check(&stored{}, "example", "EXAMPLE", "", nil, &out), "--store", "without the store")
	expect.Equal(t, out.String(), "", "after a fault: written")
}

// TestCheckReadsACommand reads the settings of one command of a program that has two.
// The other command must not matter.
func TestCheckReadsACommand(t *testing.T) {
	var got struct {
		Serve stored `cmd:""`
		Other stored `cmd:""`
	}
	var out strings.Builder
	if err := Check(&got, "example", "EXAMPLE", "serve", []string{"--store=a"}, &out); err != nil ||
		!strings.Contains(out.String(), `store: "a" # flag`) || got.Serve.Store != "a" {
		t.Errorf("got %v, %q; want the settings of serve", err, out.String())
	}
}
