package clients

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// version is the version of the release that the tests make.
const version = "0.1.7"

var releasing struct {
	sync.Mutex
	dir string
}

// released makes the clients of a release, once for all tests, and returns the directory of the release.
func released(t *testing.T) string {
	t.Helper()
	needtest.Commands(t, "node", "npm", "python3", "hatchling", "pip3")
	dir, err := workshop()
	expect.OK(t, err)
	releasing.Lock()
	defer releasing.Unlock()
	if releasing.dir == "" {
		dist := filepath.Join(dir, "dist")
		program(t, "../../..", nil, "go", "run", "./deploy/release", "-version", version, "-out", dist)
		releasing.dir = dist
	}
	return releasing.dir
}

// install runs the shell lines of a README that install a client, in the directory dir. Programs in /usr/bin, which
// come from Debian, are found first.
func (s *stage) install(dir, folder string, env ...string) {
	s.t.Helper()
	lines := strings.NewReplacer("DIST", released(s.t), "0.1.0", version).Replace(s.example(folder, "sh"))
	program(s.t, dir, append(env, "PATH=/usr/bin:"+os.Getenv("PATH")), "sh", "-euc", lines)
}

// write writes a file into a new project.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// TestGoClientInstalls installs the client with the commands of its README, and runs the README's example.
func TestGoClientInstalls(t *testing.T) {
	s := newStage(t, 0)
	dir, client := t.TempDir(), "../../../clients/go"
	// The client has no dependencies, so Go gets modules only from the directory of the release.
	env := []string{"GOWORK=off", "GOFLAGS=-modcacherw", "GOPROXY=off", "GOMODCACHE=" + filepath.Join(t.TempDir(), "modules")}
	write(t, dir, "main.go", s.example(client, "go"))
	program(t, dir, env, "go", "mod", "init", "example.org/broker")
	s.install(dir, client, env...)
	expect.Equal(t, program(t, dir, env, "go", "run", "."), "pending 240.5\n", "")
	if got := program(t, dir, env, "go", "list", "-m", "asset-registry.example/client"); !strings.Contains(got, " v"+version) {
		t.Errorf("got %q, want version v%s", got, version)
	}
}

// TestTypeScriptClientInstalls installs the package with the commands of its README, and runs the scenario.
func TestTypeScriptClientInstalls(t *testing.T) {
	s := newStage(t, 0)
	dir := t.TempDir()
	write(t, dir, "package.json", `{"private": true, "type": "module"}`)
	s.install(dir, typescript, "npm_config_offline=true")
	copyAll(t, "scenario.mjs", filepath.Join(dir, "scenario.mjs"))
	program(t, dir, s.env(), "node", "--input-type=module", "--eval",
		`import { run } from "./scenario.mjs"; await run(process.env.REGISTRY, process.env.CONTROL, true);`)
	s.check(append(wanted(), otherData))
}

// TestPythonClientInstalls installs the wheel with the commands of its README. It checks the types in the scenario
// against the installed client, and runs the scenario.
func TestPythonClientInstalls(t *testing.T) {
	needtest.Commands(t, "mypy")
	s := newStage(t, 0)
	dir := t.TempDir()
	packages := filepath.Join(dir, "packages")
	s.install(dir, python, "PIP_NO_INDEX=1", "PIP_TARGET="+packages)
	copyAll(t, "scenario.py", filepath.Join(dir, "scenario.py"))
	env := append(s.env(), "PYTHONPATH="+packages, "MYPYPATH="+packages)
	program(t, dir, env, "mypy", "--strict", "--python-version", "3.11", "--cache-dir", t.TempDir(), "scenario.py")
	program(t, dir, env, "python3", "-W", "error", "scenario.py")
	s.check(append(wanted(), otherData))
}

// TestPythonClientIsOneFile runs the README's example with the file asset_registry.py of the release, and no other
// file of the client.
func TestPythonClientIsOneFile(t *testing.T) {
	s := newStage(t, 0)
	dir := t.TempDir()
	copyAll(t, filepath.Join(released(t), "clients", "asset_registry.py"), filepath.Join(dir, "asset_registry.py"))
	write(t, dir, "example.py", s.example(python, "python"))
	s.checkExample(program(t, dir, s.env(), "python3", "-W", "error", "example.py"))
	got := program(t, dir, s.env(), "python3", "-c", "import asset_registry; print(asset_registry.__version__)")
	if got != version+"\n" {
		t.Errorf("got version %q, want %q", got, version)
	}
}
