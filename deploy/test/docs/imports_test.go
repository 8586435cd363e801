package docs

import (
	"os/exec"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// level returns the level of one of our packages in the order of imports (docs/style.md, "Layout"), or -1 for other
// packages.
func level(path string) int {
	module, _, _ := strings.Cut(strings.TrimPrefix(path, "asset-registry/"), "/")
	switch {
	case path == "asset-registry.example/client", module == "docs":
		return 0
	case !strings.HasPrefix(path, "asset-registry/"):
		return -1
	case module == "shared":
		return 1
	case module == "deploy":
		return 3
	default:
		return 2 // a service
	}
}

// forbidden says why an import is forbidden, or returns "" if it is allowed.
func forbidden(from, to string) string {
	a, b := level(from), level(to)
	module := func(path string) string { return strings.Join(strings.SplitN(path, "/", 3)[:2], "/") }
	switch {
	case b < 0 || b < a:
		return ""
	case b > a:
		return "imports what stands above it"
	case module(from) != module(to):
		return "imports another service"
	default:
		return ""
	}
}

// TestImportsPointOneWay checks the imports of all packages in the workspace and of their tests. The order is:
// clients and docs, shared, services, deploy. A package must not import a package that stands later in this order. No
// service may import another service.
func TestImportsPointOneWay(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"asset-registry/shared/fault", "asset-registry/gateway", "imports what stands above it"},
		{"asset-registry.example/client", "asset-registry/shared/fault", "imports what stands above it"},
		{"asset-registry/gateway", "asset-registry/authsvc", "imports another service"},
		{"asset-registry/searchsvc/internal/site", "asset-registry/searchsvc/internal/search", ""},
		{"asset-registry/deploy/registry", "asset-registry/gateway", ""},
	} {
		expect.Equal(t, forbidden(c.from, c.to), c.want, "import of %s in %s", c.to, c.from)
	}
	const form = `{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`
	list := exec.CommandContext(t.Context(), "go", "list", "-f", form, "asset-registry/...", "asset-registry.example/client/...")
	list.Dir = root
	out, err := list.Output()
	expect.Must(t, err, "list packages")
	levels := map[int]int{}
	for line := range strings.Lines(string(out)) {
		packages := strings.Fields(line)
		levels[level(packages[0])]++
		for _, to := range packages[1:] {
			if says := forbidden(packages[0], to); says != "" {
				t.Errorf("%s %s: %s", packages[0], says, to)
			}
		}
	}
	for of := range 4 {
		if levels[of] == 0 {
			t.Errorf("got no package on level %d, want at least one", of)
		}
	}
}
