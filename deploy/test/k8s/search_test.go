package k8s

import (
	"path/filepath"
	"slices"
	"testing"
)

// withSearch is production with the component search.
var withSearch = filepath.Join("..", "test", "k8s", "testdata", "search")

func TestTheSearchFits(t *testing.T) {
	s := stackFor(t, withSearch)
	checkComponent(t, withSearch, "searchsvc")
	if got := configOf(t, s, named(s.deployments, "gateway").Spec.Template.Spec.Containers[0]); got["GATEWAY_SEARCH_URL"] == "" {
		t.Errorf("got the settings %v of the gateway, want the address of the search", got)
	}
}

func TestTheSearchReachesGatewaysOnly(t *testing.T) {
	checkFurtherWays(t, withSearch, []string{
		"gateway to searchsvc:http", "monitoring to searchsvc:metrics", "searchsvc to dns:dns", "searchsvc to dns:dns-tcp",
		"searchsvc to gateway:http", "searchsvc to monitoring:otlp-grpc", "searchsvc to monitoring:otlp-http",
	})
}

// checkFurtherWays compares all ways of production with a component with those of production.
func checkFurtherWays(t *testing.T, dir string, want []string) {
	t.Helper()
	stores := stackFor(t, "stores")
	all := func(dir string) []string {
		services := stackFor(t, dir)
		return ways(slices.Concat(services.policies, stores.policies), parties(services, stores))
	}
	before, after := all("production"), all(dir)
	var more []string
	for _, way := range after {
		if !slices.Contains(before, way) {
			more = append(more, way)
		}
	}
	if !slices.Equal(more, want) || len(after) != len(before)+len(want) {
		t.Errorf("got the further ways %q, want %q and no other change", more, want)
	}
}
