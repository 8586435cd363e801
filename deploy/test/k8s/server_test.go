package k8s

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
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

// create returns the API server's answers to requests that create objects: ""
// for each manifest that it takes silently (command kubeapi).
func create(t *testing.T, manifests []string) (answers []string) {
	t.Helper()
	tool, err := exec.CommandContext(t.Context(), "../tool.sh", "kubeapi").Output()
	if err != nil {
		t.Fatalf("build kubeapi: %v", err)
	}
	in, err := json.Marshal(manifests)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(tool)))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run kubeapi: %v", err)
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(manifests) {
		t.Fatalf("kubeapi answered %q (%v), want %d answers", out, err, len(manifests))
	}
	return answers
}

func TestAServerTakesEveryManifest(t *testing.T) {
	for _, dir := range directories {
		manifests := buildFor(t, dir)
		var texts []string
		for _, m := range manifests {
			texts = append(texts, string(m.text))
		}
		for i, got := range create(t, texts) {
			if got != "" {
				t.Errorf("%s: %s: got %q, want no complaint", dir, manifests[i].name, got)
			}
		}
	}
}

// TestAServerRefuses proves that the code that takes our manifests finds faults.
func TestAServerRefuses(t *testing.T) {
	cases := []struct {
		name         string
		of, old, new string
		says         string
	}{
		{"a field that is none", "Deployment gateway", "minReadySeconds:", "minReadySecond:", "unknown field"},
		{"a value of another type", "Deployment gateway", "minReadySeconds: 5", "minReadySeconds: soon", "minReadySeconds"},
		{"a selector of other pods", "Deployment gateway", "matchLabels:\n      app.kubernetes.io/name: gateway", "matchLabels:\n      app.kubernetes.io/name: assetsvc", "does not match"},
		{"a volume that is not there", "Deployment gateway", "      volumes:\n      - name: settings", "      volumes:\n      - name: setting", "Not found"},
		{"an end without time", "Deployment gateway", "seconds: 5", "seconds: 500", "less than terminationGracePeriodSeconds"},
		{"more than there is", "Deployment gateway", "memory: 512Mi\n          requests", "memory: 5Mi\n          requests", "less than or equal to memory limit"},
		{"a probe of no port", "Deployment gateway", "port: http\n          periodSeconds: 10", "port: no port\n          periodSeconds: 10", "port"},
		{"a policy of no protocol", "NetworkPolicy dns", "protocol: UDP", "protocol: DNS", "protocol"},
		{"a scaler with nothing to do", "HorizontalPodAutoscaler gateway", "minReplicas: 2", "minReplicas: 20", "minReplicas"},
		{"a budget of nonsense", "PodDisruptionBudget gateway", "maxUnavailable: 1", "maxUnavailable: some", "maxUnavailable"},
		{"a service of no port", "Service gateway", "port: 80", "port: 0", "port"},
		{"a duplicate", "Deployment gateway", "- name: GATEWAY_CONFIG\n", "- name: GATEWAY_ADDR\n", "the server warns"},
	}
	texts := map[string]string{}
	for _, m := range buildFor(t, "base") {
		texts[m.name] = string(m.text)
	}
	var wrong []string
	for _, c := range cases {
		if !strings.Contains(texts[c.of], c.old) {
			t.Fatalf("%s: there is no %q in %s:\n%s", c.name, c.old, c.of, texts[c.of])
		}
		wrong = append(wrong, strings.ReplaceAll(texts[c.of], c.old, c.new))
	}
	for i, got := range create(t, wrong) {
		if !strings.Contains(got, cases[i].says) {
			t.Errorf("%s: got %q, want an error that says %q", cases[i].name, got, cases[i].says)
		}
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
