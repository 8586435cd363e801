package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// operators has the paths of a gateway that clients outside the registry must not reach.
var operators = []string{"/livez", "/readyz"}

// TestEveryRouteIsPublicOrForOperators compares the routes of a gateway with two lists: the public paths and
// the paths for operators. Each route must be in one of the two lists. The manifests and load balancers only
// let public paths through.
func TestEveryRouteIsPublicOrForOperators(t *testing.T) {
	_, engine := open(t, http.NotFoundHandler(), nil)
	unused := routes.Public()
	paths := []string{"/ua", "/UA", "/UK", "/EN", "/search", routes.Favicon} // without a route (stray)
	for _, r := range engine.Routes() {
		paths = append(paths, r.Path)
	}
	for _, path := range paths {
		path = strings.NewReplacer(":", "", "*", "").Replace(path)
		has := func(p routes.PublicPath) bool {
			return path == p.Path || !p.Exact && strings.HasPrefix(path, p.Path+"/")
		}
		isPublic := slices.ContainsFunc(routes.Public(), has)
		expect.Equal(t, isPublic, !slices.Contains(operators, path), "%s, public", path)
		unused = slices.DeleteFunc(unused, has)
	}
	expect.ErrorIf(t, len(unused) > 0, "got no route for the public paths %v, want one for each", unused)
}
