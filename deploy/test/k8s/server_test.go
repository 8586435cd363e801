package k8s

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// create sends manifests to the API server's code, in the command kubeapi, to create objects. It returns one answer
// for each manifest. The answer is "" if there was no error and no warning.
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
	for _, dir := range all {
		var names, texts []string
		for _, m := range build(t, dir) {
			names, texts = append(names, dir+": "+m.name), append(texts, m.text)
		}
		for i, got := range create(t, texts) {
			if got != "" {
				t.Errorf("%s: got %q, want no complaint", names[i], got)
			}
		}
	}
}

// TestAServerRefuses checks that the API server's code, which accepts our manifests, refuses manifests with faults.
func TestAServerRefuses(t *testing.T) {
	cases := []struct {
		name         string
		of, old, new string
		says         string
	}{
		{"a field that is none", "Deployment gateway", "minReadySeconds:", "minReadySecond:", "unknown field"},
		{"a selector of other pods", "Deployment gateway", "matchLabels:\n      app.kubernetes.io/name: gateway", "matchLabels:\n      app.kubernetes.io/name: assetsvc", "does not match"},
		{"a volume that is not there", "Deployment gateway", "      volumes:\n      - name: settings", "      volumes:\n      - name: setting", "Not found"},
		{"more than there is", "Deployment gateway", "memory: 512Mi\n          requests", "memory: 5Mi\n          requests", "less than or equal to memory limit"},
		{"a scaler with nothing to do", "HorizontalPodAutoscaler gateway", "minReplicas: 2", "minReplicas: 20", "minReplicas"},
		{"a duplicate", "Deployment gateway", "- name: GATEWAY_CONFIG\n", "- name: GATEWAY_ADDR\n", "the server warns"},
	}
	texts := map[string]string{}
	for _, m := range build(t, "base") {
		texts[m.name] = m.text
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

func TestManifestsHoldNoSecret(t *testing.T) {
	if _, err := decode([]manifest{{"Secret x", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"}}); err == nil {
		t.Error("got no error for a Secret")
	}
}

func TestPodsMeetTheStrictestStandard(t *testing.T) {
	for _, dir := range withServices {
		s := stackOf(t, dir)
		if level := every[*corev1.Namespace](s)[0].Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
			t.Errorf("%s: the namespace enforces %q, want restricted", dir, level)
		}
		for _, d := range every[*appsv1.Deployment](s) {
			if err := meetsStandard(d); err != nil {
				t.Errorf("%s: %s: %v", dir, d.Name, err)
			}
			if fixed := containerOf(d).SecurityContext.ReadOnlyRootFilesystem; fixed == nil || !*fixed {
				t.Errorf("%s: %s can write to its image", dir, d.Name)
			}
			d.Spec.Template.Spec.SecurityContext, containerOf(d).SecurityContext = nil, nil
			if err := meetsStandard(d); err == nil || !strings.Contains(err.Error(), "runAsNonRoot") {
				t.Errorf("%s: %s without its security context: got %v, want an error that says runAsNonRoot", dir, d.Name, err)
			}
		}
	}
}

// meetsStandard returns an error that says how the pods of a deployment break the strictest pod security standard,
// or nil.
func meetsStandard(d *appsv1.Deployment) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	pod := &d.Spec.Template
	strictest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(strictest, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		return errors.New(result.ForbiddenReason() + ": " + result.ForbiddenDetail())
	}
	return nil
}
