package generators

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/test/openapi/documents"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

const (
	// goScenario is the directory with the scenario of the Go client. typescriptGenerators is the module with the
	// generators for TypeScript, and the scenarios of their clients.
	goScenario           = "../../apart/generated"
	typescriptGenerators = "../typescript"
	// generating limits one run of a generator or a compiler, on a busy machine.
	generating = 4 * time.Minute
	// mostLines limits the size of the file that oapi-codegen generates. The file becomes large when operations do
	// not share their answers.
	mostLines = 31990
)

// outcome is what the scenario of a generated client prints.
type outcome struct {
	Created   string // status of the asset after its creation
	Stale     int    // HTTP status of a change with an old ETag
	Published string // status of the asset after a change with the current ETag
	Documents int
	Owner     string // owner after the asset was handed over
	Quantity  string // the quantity, sent with four digits after the point
	Followed  bool   // whether a page of the feed has the asset
}

var wantedOutcome = outcome{"draft", 412, "pending", 2, "broker3", "240.5001", true}

var bin = flag.String("bin", "", "absolute path of the directory of the programs")

// serve starts a registry in one process, without rate limits, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	addr := expect.Get(porttest.FreeAddr())(t)
	output := &processes.Output{}
	p := expect.Get(processes.Standalone(t.Context(), *bin, addr, filepath.Join(t.TempDir(), "data"), output))(t)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("the registry: got %v at its end, want exit code 0; it printed %s", err, output.String())
		}
	})
	return "http://" + addr
}

// run runs a program in dir and returns what it prints.
func run(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generating)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: got %v, want success; it printed:\n%s%s", name, strings.Join(args, " "), err, text, problems.String())
	}
	return text
}

// scenario runs the program of a generated client against a registry, and checks the outcome that it prints.
func scenario(t *testing.T, registry, dir, name string, args ...string) {
	t.Helper()
	var got outcome
	text := run(t, dir, []string{"REGISTRY=" + registry + "/api/" + routes.Current}, name, args...)
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: it printed %s", err, text)
	}
	expect.NoDiff(t, cmp.Diff(wantedOutcome, got), "outcome")
}

// written writes the document of the current version to a file, and returns the path of the file.
func written(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "openapi.json")
	d := expect.Get(documents.Public(routes.Current))(t)
	expect.OK(t, os.WriteFile(file, d, 0o600))
	return file
}

// absolute returns the absolute path of a file in goScenario.
func absolute(t *testing.T, name string) string {
	t.Helper()
	return expect.Get(filepath.Abs(filepath.Join(goScenario, name)))(t)
}

// TestGeneratedGoClientWorks generates a client in Go, compiles it with a scenario and runs it. The scenario
// must have the wanted outcome.
func TestGeneratedGoClientWorks(t *testing.T) {
	registry := serve(t)
	dir := t.TempDir()
	tool := strings.TrimSpace(string(run(t, ".", nil, "../../tool.sh", "oapi-codegen")))
	client := filepath.Join(dir, "client.go")
	run(t, dir, nil, tool, "-config", absolute(t, "config.yaml"), "-o", client, written(t, dir))
	text := expect.Get(os.ReadFile(client))(t)
	if got := bytes.Count(text, []byte("\n")); got > mostLines {
		t.Errorf("got a client of %d lines, want at most %d", got, mostLines)
	}
	// With the overlay, the compiler sees the client in the scenario's directory, although no file is written
	// there.
	overlay := expect.Get(json.Marshal(map[string]any{"Replace": map[string]string{absolute(t,
		"client.gen.go"): client}}))(t)
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "scenario")
	expect.OK(t, os.WriteFile(file, overlay, 0o600))
	run(t, goScenario, []string{"GOWORK=off"}, "go", "build", "-tags", "generated", "-overlay", file, "-o", program, ".")
	scenario(t, registry, dir, program)
}

// TestGeneratedTypeScriptClientsWork generates clients with three generators for TypeScript, and runs the
// scenario with each client. Each scenario must have the wanted outcome.
func TestGeneratedTypeScriptClientsWork(t *testing.T) {
	needtest.Commands(t, "node", "npm")
	registry := serve(t)
	dir := t.TempDir()
	modules := strings.TrimSpace(string(run(t, ".", nil, "../../clients/npm.sh", typescriptGenerators)))
	expect.OK(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	files := expect.Get(os.ReadDir(typescriptGenerators))(t)
	for _, f := range files {
		text := expect.Get(os.ReadFile(filepath.Join(typescriptGenerators, f.Name())))(t)
		expect.OK(t, os.WriteFile(filepath.Join(dir, f.Name()), text, 0o600))
	}
	written(t, dir)
	for _, generator := range [][]string{
		{"openapi-typescript", "openapi.json", "-o", "openapi-typescript/schema.ts"},
		{"openapi-ts"},
		{"orval"},
	} {
		run(t, dir, nil, filepath.Join("node_modules", ".bin", generator[0]), generator[1:]...)
	}
	run(t, dir, nil, filepath.Join("node_modules", ".bin", "tsc"))
	for _, program := range []string{"openapi-typescript", "hey-api", "orval"} {
		t.Run(program, func(t *testing.T) { scenario(t, registry, dir, "node", "dist/"+program+".js") })
	}
}
