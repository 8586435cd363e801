package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/rig/processes"
)

// root is the top of the repository.
const root = "../../.."

var (
	update = flag.Bool("update", false, "write docs/configuration.md instead of comparing it")
	bin    = flag.String("bin", "", "absolute path of the directory of the programs; by default they are built")
)

// build returns the directory of the programs. It builds them at the first call,
// unless -bin names one.
func build(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(*bin, "registry")); *bin != "" && err == nil {
		return *bin
	}
	if err := processes.Build(t.Context(), *bin); err != nil {
		t.Fatal(err)
	}
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
	want, err := Configuration(t.Context(), build(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "docs", "configuration.md")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/configuration.md differs; run this test with -update (-want +got):\n%s", diff)
	}
}
