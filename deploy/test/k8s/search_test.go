package k8s

import (
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// withSearch is production with the component search.
var withSearch = filepath.Join("..", "test", "k8s", "testdata", "search")

func TestTheSearchFits(t *testing.T) {
	s := stackFor(t, withSearch)
	d := named(s.deployments, "searchsvc")
	for name, check := range map[string]func(*appsv1.Deployment) error{
		"ports": s.portsFit, "settings": s.settingsFit, "account": s.accountFits, "end": s.endFits, "memory": s.memoryFits,
		"spread": s.spreadFits, "standard": contained,
	} {
		if err := check(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, check := range []func() error{s.servicesFit, s.ingressesFit, s.policiesFit} {
		if err := check(); err != nil {
			t.Error(err)
		}
	}
	if got := configOf(t, s, named(s.deployments, "gateway").Spec.Template.Spec.Containers[0]); got["GATEWAY_SEARCH_URL"] == "" {
		t.Errorf("got the settings %v of the gateway, want the address of the search", got)
	}
	var texts []string
	for _, m := range buildFor(t, withSearch) {
		texts = append(texts, string(m.text))
	}
	for i, got := range create(t, texts) {
		if got != "" {
			t.Errorf("got %q, want no complaint about\n%s", got, texts[i])
		}
	}
}

// TestTheSearchReachesGatewaysOnly compares all ways with those of production.
func TestTheSearchReachesGatewaysOnly(t *testing.T) {
	stores := stackFor(t, "stores")
	all := func(dir string) []string {
		services := stackFor(t, dir)
		return ways(slices.Concat(services.policies, stores.policies), parties(services, stores))
	}
	before, after := all("production"), all(withSearch)
	var more []string
	for _, way := range after {
		if !slices.Contains(before, way) {
			more = append(more, way)
		}
	}
	want := []string{
		"gateway to searchsvc:http", "monitoring to searchsvc:metrics", "searchsvc to dns:dns", "searchsvc to dns:dns-tcp",
		"searchsvc to gateway:http", "searchsvc to monitoring:otlp-grpc", "searchsvc to monitoring:otlp-http",
	}
	if !slices.Equal(more, want) || len(after) != len(before)+len(want) {
		t.Errorf("got the further ways %q, want %q and no other change", more, want)
	}
}
