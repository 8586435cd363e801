package registry_test

import (
	"os/exec"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// wire are the packages with requests to other services and their answers. These packages also have HTTP clients,
// which the registry does not use.
var wire = []string{"asset-registry/shared/authapi", "asset-registry/shared/filesapi"}

// TestUseCasesKnowNeitherHTTPNorAStore checks all packages that the registry imports, also indirectly. None of them
// may be a package of HTTP or of a store. The test does not follow the imports of the packages in the variable `wire`.
func TestUseCasesKnowNeitherHTTPNorAStore(t *testing.T) {
	out := expect.Get(exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		".").Output())(t)
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 0 {
			imports[words[0]] = words[1:]
		}
	}
	seen := map[string]bool{}
	for _, name := range wire {
		seen[name] = true
	}
	var follow func(path []string, name string)
	follow = func(path []string, name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		path = append(path, name)
		for _, refused := range []string{"net/http", "gin-gonic", "mongo", "redis", "bbolt"} {
			if strings.Contains(name, refused) {
				t.Errorf("got dependency %s, want none on %s", strings.Join(path, " -> "), refused)
				return
			}
		}
		for _, next := range imports[name] {
			follow(path, next)
		}
	}
	follow(nil, "asset-registry/assetsvc/internal/registry")
	expect.ErrorIf(t, len(seen) < 10, "got %d packages, want at least 10", len(seen))
}
