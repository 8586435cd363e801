package docs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// root is the root of the repository.
const root = "../../.."

var (
	update = flag.Bool("update", false, "write docs/configuration.md instead of comparing it")
	bin    = flag.String("bin", "", "absolute path of the directory of the programs; by default they are built")
)

// build returns the directory of the programs. Its first call builds them, unless the flag -bin names a directory.
func build(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(*bin, "registry")); *bin != "" && err == nil {
		return *bin
	}
	expect.OK(t, processes.Build(t.Context(), *bin))
	return *bin
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if *bin != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "registry-docs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*bin = dir
	return m.Run()
}

func TestConfigurationIsWhatTheProgramsDeclare(t *testing.T) {
	for name, describe := range map[string]func(context.Context, string) (string, error){
		"configuration.md": Configuration, "registryctl.md": Tool,
	} {
		want, err := describe(t.Context(), build(t))
		expect.OK(t, err)
		file := filepath.Join(root, "docs", name)
		if *update {
			expect.OK(t, os.WriteFile(file, []byte(want), 0o644))
		}
		got, err := os.ReadFile(file)
		expect.OK(t, err)
		expect.NoDiff(t, cmp.Diff(want, string(got)), "docs/%s differs; run this test with -update", name)
	}
}

// TestFewSettingsComeFirst counts the settings without a group. A command may have at most ten of them, because
// only settings that nearly everybody needs should have no group.
func TestFewSettingsComeFirst(t *testing.T) {
	const most = 10
	known := map[string]bool{}
	for _, name := range programs {
		p, err := settingsOf(t.Context(), build(t), name)
		expect.OK(t, err)
		for _, c := range p.Commands {
			var first []string
			for _, s := range c.Settings {
				known[s.Name] = true
				if s.Group == "" {
					first = append(first, s.Name)
				}
			}
			if len(first) > most {
				t.Errorf("%s %s: got %d settings without a group, %q, want at most %d", name, c.Name, len(first), first, most)
			}
		}
	}
	for _, name := range config.Groups() {
		if !known[name] {
			t.Errorf("the groups have the setting %s, which no program has", name)
		}
	}
}
