package clients

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

const (
	typescript = "../../../clients/typescript"
	document   = "../../../gateway/internal/openapi/2.5.json"
)

// workshop is the directory in which the function `compiled` works. The function `run` removes it.
var workshop = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "registry-clients-npm") })

var compiling struct {
	sync.Mutex
	done bool
}

// compiled copies the package of the TypeScript client to the directory `workshop`, and compiles it there, once for
// all tests. A program in this directory imports the package as "asset-registry".
func compiled(t *testing.T) (dir, installed string) {
	t.Helper()
	dir, err := workshop()
	expect.OK(t, err)
	installed = filepath.Join(dir, "node_modules", "asset-registry")
	compiling.Lock()
	defer compiling.Unlock()
	if compiling.done {
		return dir, installed
	}
	expect.OK(t, os.MkdirAll(installed, 0o700))
	for _, part := range []string{"src", "test", "package.json", "tsconfig.json", "generate.mjs"} {
		copyAll(t, filepath.Join(typescript, part), filepath.Join(installed, part))
	}
	lines := strings.Fields(program(t, ".", nil, "sh", "npm.sh", typescript))
	expect.OK(t, os.Symlink(lines[len(lines)-1], filepath.Join(installed, "node_modules")))
	program(t, installed, nil, "node", "node_modules/typescript/bin/tsc")
	compiling.done = true
	return dir, installed
}

// copyAll copies a file or a directory.
func copyAll(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	expect.OK(t, err)
	if info.IsDir() {
		expect.OK(t, os.CopyFS(to, os.DirFS(from)))
		return
	}
	text, err := os.ReadFile(from)
	expect.OK(t, err)
	expect.OK(t, os.WriteFile(to, text, 0o600))
}

func TestTypesOfTheTypeScriptClientAreThoseOfTheDocument(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	_, installed := compiled(t)
	generated := filepath.Join(t.TempDir(), "schema.ts")
	path, err := filepath.Abs(document)
	expect.OK(t, err)
	program(t, installed, nil, "node", "generate.mjs", path, generated)
	want, err := os.ReadFile(generated)
	expect.OK(t, err)
	got, err := os.ReadFile(filepath.Join(typescript, "src", "schema.ts"))
	expect.OK(t, err)
	expect.NoDiff(t, cmp.Diff(string(want), string(got)),
		"src/schema.ts differs; run `npm ci && npm run generate` there")
}

func TestTypeScriptClientPassesItsOwnTests(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	_, installed := compiled(t)
	files, err := filepath.Glob(filepath.Join(installed, "test", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files of tests and %v, want some", len(files), err)
	}
	program(t, installed, nil, "node", append([]string{"--test"}, files...)...)
}

func TestTypeScriptClientPassesTheScenarioInNode(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	dir, _ := compiled(t)
	s := newStage(t, 0)
	copyAll(t, "scenario.mjs", filepath.Join(dir, "scenario.mjs"))
	program(t, dir, s.env(), "node", "--input-type=module", "--eval",
		`import { run } from "./scenario.mjs"; await run(process.env.REGISTRY, process.env.CONTROL, true);`)
	s.check(append(wanted(), otherData))
}

func TestTypeScriptExampleWorks(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	dir, _ := compiled(t)
	s := newStage(t, 0)
	expect.OK(t, os.WriteFile(filepath.Join(dir, "example.mts"), []byte(s.example(typescript, "ts")), 0o600))
	program(t, dir, nil, "node", "node_modules/asset-registry/node_modules/typescript/bin/tsc", "--strict",
		"--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "example.mts")
	s.checkExample(program(t, dir, nil, "node", "example.mjs"))
}
