package k8s

import (
	"strings"
	"testing"
)

// directories are what is tested: each is something to `kubectl apply -k`.
var directories = []string{"base", "production", "stores"}

func buildFor(t *testing.T, dir string) []manifest {
	t.Helper()
	manifests, err := build(dir)
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

func stackFor(t *testing.T, dir string) *stack {
	t.Helper()
	s, err := stackOf(buildFor(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAServerTakesEveryManifest(t *testing.T) {
	for _, dir := range directories {
		for _, m := range buildFor(t, dir) {
			if err := create(m.text); err != nil {
				t.Errorf("%s: %s: %v", dir, m.name, err)
			}
		}
	}
}

// TestAServerRefuses: what is wrong with a manifest is found, by the code that
// finds nothing wrong with ours.
func TestAServerRefuses(t *testing.T) {
	cases := map[string]struct {
		of, old, new string
		says         string
	}{
		"a field that is none":        {"Deployment gateway", "minReadySeconds:", "minReadySecond:", "unknown field"},
		"a value of another type":     {"Deployment gateway", "minReadySeconds: 5", "minReadySeconds: soon", "minReadySeconds"},
		"a selector of other pods":    {"Deployment gateway", "matchLabels:\n      app.kubernetes.io/name: gateway", "matchLabels:\n      app.kubernetes.io/name: assetsvc", "does not match"},
		"a volume that is not there":  {"Deployment gateway", "      volumes:\n      - name: settings", "      volumes:\n      - name: setting", "Not found"},
		"an end without time":         {"Deployment gateway", "seconds: 5", "seconds: 500", "less than terminationGracePeriodSeconds"},
		"more than there is":          {"Deployment gateway", "memory: 512Mi\n          requests", "memory: 5Mi\n          requests", "less than or equal to memory limit"},
		"a probe of no port":          {"Deployment gateway", "port: http\n          periodSeconds: 10", "port: no port\n          periodSeconds: 10", "port"},
		"a policy of no protocol":     {"NetworkPolicy dns", "protocol: UDP", "protocol: DNS", "protocol"},
		"a scaler with nothing to do": {"HorizontalPodAutoscaler gateway", "minReplicas: 2", "minReplicas: 20", "minReplicas"},
		"a budget of nonsense":        {"PodDisruptionBudget gateway", "maxUnavailable: 1", "maxUnavailable: some", "maxUnavailable"},
		"a service of no port":        {"Service gateway", "port: 80", "port: 0", "port"},
		"a duplicate":                 {"Deployment gateway", "- name: GATEWAY_CONFIG\n", "- name: GATEWAY_ADDR\n", "the server warns"},
	}
	manifests := buildFor(t, "base")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, m := range manifests {
				if m.name != c.of {
					continue
				}
				if !strings.Contains(string(m.text), c.old) {
					t.Fatalf("there is no %q in\n%s", c.old, m.text)
				}
				if err := create([]byte(strings.ReplaceAll(string(m.text), c.old, c.new))); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want an error that says %q", err, c.says)
				}
				return
			}
			t.Fatalf("there is no %s", c.of)
		})
	}
}

func TestPodsMeetTheStrictestStandard(t *testing.T) {
	for _, dir := range []string{"base", "production"} {
		s := stackFor(t, dir)
		if level := s.namespaces[0].Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
			t.Errorf("%s: the namespace enforces %q", dir, level)
		}
		for _, d := range s.deployments {
			if err := contained(d); err != nil {
				t.Errorf("%s: %s: %v", dir, d.Name, err)
			}
			loose := d.DeepCopy()
			loose.Spec.Template.Spec.SecurityContext = nil
			loose.Spec.Template.Spec.Containers[0].SecurityContext = nil
			if err := contained(loose); err == nil || !strings.Contains(err.Error(), "runAsNonRoot") || !strings.Contains(err.Error(), "seccompProfile") {
				t.Errorf("%s: %s without its security context: %v", dir, d.Name, err)
			}
			if fixed := d.Spec.Template.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; fixed == nil || !*fixed {
				t.Errorf("%s: %s may write where it runs", dir, d.Name)
			}
		}
	}
}
