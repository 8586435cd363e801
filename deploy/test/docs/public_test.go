package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/routes"
	"asset-registry/shared/testing/expect"
)

// TestTheIngressHasThePublicPaths compares the paths of the Ingress with routes.Public. Both must have the same
// paths.
func TestTheIngressHasThePublicPaths(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/k8s/production/ingress.yaml"))
	expect.OK(t, err)
	var ingress struct {
		Spec struct {
			Rules []struct {
				HTTP struct {
					Paths []struct {
						Path     string
						PathType string `yaml:"pathType"`
					}
				}
			}
		}
	}
	expect.OK(t, yaml.Unmarshal(text, &ingress))
	if len(ingress.Spec.Rules) == 0 {
		t.Fatal("got no rule, want one")
	}
	for _, rule := range ingress.Spec.Rules {
		var got []routes.PublicPath
		for _, p := range rule.HTTP.Paths {
			got = append(got, routes.PublicPath{Path: p.Path, Exact: p.PathType == "Exact"})
		}
		expect.NoDiff(t, cmp.Diff(routes.Public(), got), "the paths of the Ingress differ from routes.Public")
	}
}
