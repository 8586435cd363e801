package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Folders that an operator may apply besides base, production and stores. Each adds one component to production.
const (
	withFiles     = "../test/k8s/testdata/files"
	withSearch    = "../test/k8s/testdata/search"
	withSnapshots = "../test/k8s/testdata/snapshots"
)

var withServices = []string{"base", "production", withFiles, withSearch, withSnapshots}

// manifests holds the YAML texts of a folder's objects. The keys are kind and name, such as "Service gateway".
type manifests map[string]string

// build returns the manifests of a folder of deploy/k8s.
func build(t *testing.T, dir string) manifests {
	t.Helper()
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	objects, err := kustomizer.Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "k8s", dir))
	if err != nil {
		t.Fatalf("build %s: %v", dir, err)
	}
	built := manifests{}
	for _, o := range objects.Resources() {
		built[o.GetKind()+" "+o.GetName()] = o.MustYaml()
	}
	return built
}

// stack holds the decoded objects of a folder.
type stack []runtime.Object

func decode(t *testing.T, texts manifests) (s stack) {
	t.Helper()
	for name, text := range texts {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s = append(s, object)
	}
	return s
}

// The function `every` returns the objects of one kind.
func every[T runtime.Object](s stack) (found []T) {
	for _, o := range s {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// named returns the object with a kind and a name, or nil.
func named[T interface {
	runtime.Object
	metav1.Object
}](s stack, name string) (found T) {
	for _, o := range every[T](s) {
		if o.GetName() == name {
			return o
		}
	}
	return found
}

// containerOf returns the only container of a deployment's pods.
func containerOf(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }

// environment returns the environment variables of a deployment's container. It returns an error if a variable is
// set twice.
func (s stack) environment(d *appsv1.Deployment) (map[string]string, error) {
	found := map[string]string{}
	for _, from := range containerOf(d).EnvFrom {
		config := named[*corev1.ConfigMap](s, from.ConfigMapRef.Name)
		if config == nil {
			return nil, fmt.Errorf("there is no ConfigMap %s", from.ConfigMapRef.Name)
		}
		for name, value := range config.Data {
			found[name] = value
		}
	}
	for _, v := range containerOf(d).Env {
		if _, twice := found[v.Name]; twice || v.ValueFrom != nil {
			return nil, fmt.Errorf("%s is given twice, or not as a value", v.Name)
		}
		found[v.Name] = v.Value
	}
	return found, nil
}

// setting returns a setting of a deployment's program. The program has the name of the deployment.
func (s stack) setting(d *appsv1.Deployment, name string) string {
	env, _ := s.environment(d) // checkSettings reports the error
	return env[strings.ToUpper(d.Name)+"_"+name]
}

// create sends manifests to the API server's code, in the command kubeapi, to create objects. It returns one answer
// for each manifest. The answer is "" if there was no error and no warning.
func create(t *testing.T, wanted manifests) (answers map[string]string) {
	t.Helper()
	in, err := json.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `program=$(../tool.sh kubeapi) && exec "$program"`)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run kubeapi: %v", err)
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != len(wanted) {
		t.Fatalf("kubeapi answered %q (%v), want %d answers", out, err, len(wanted))
	}
	return answers
}

func TestManifestsHaveNoFault(t *testing.T) {
	for _, dir := range append([]string{"stores"}, withServices...) {
		built := build(t, dir)
		for name, got := range create(t, built) {
			if got != "" {
				t.Errorf("%s: %s: the server says %q, want no complaint", dir, name, got)
			}
		}
		if err := decode(t, built).check(); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestPlantedFaultsAreFound puts one fault at a time into the manifests, and checks the message of the API server's
// code. If the server takes the manifest, a rule must report the fault.
func TestPlantedFaultsAreFound(t *testing.T) {
	built, edited := build(t, withFiles), manifests{}
	for _, f := range faults {
		if edited[f.want] = strings.Replace(built[f.in], f.old, f.new, 1); edited[f.want] == built[f.in] {
			t.Fatalf("%s: there is no %q in %s:\n%s", f.want, f.old, f.in, built[f.in])
		}
	}
	answers := create(t, edited)
	for _, f := range faults {
		got := answers[f.want]
		if got == "" {
			with := maps.Clone(built)
			with[f.in] = edited[f.want]
			got = fmt.Sprint(decode(t, with).check())
		}
		if !strings.Contains(got, f.want) {
			t.Errorf("%s with %q: got %q, want %q", f.in, f.new, got, f.want)
		}
	}
}

// faults are edits of manifests. Each has a part of the message, of the server or of a rule, that must report it.
var faults = []struct{ in, old, new, want string }{
	{"Deployment gateway", "minReadySeconds:", "minReadySecond:", "unknown field"},
	{"Deployment gateway", "matchLabels:\n      app.kubernetes.io/name: gateway", "matchLabels:\n      app: gateway",
		"`selector` does not match template `labels`"},
	{"Deployment gateway", "volumes:\n      - name: settings", "volumes:\n      - name: setting", "Not found"},
	{"Deployment gateway", "limits:\n            ephemeral-storage: 1Gi\n            memory: 512Mi",
		"limits:\n            ephemeral-storage: 1Gi\n            memory: 5Mi",
		"less than or equal to memory limit"},
	{"Deployment gateway", "- name: GATEWAY_CONFIG\n", "- name: GATEWAY_ADDR\n", "the server warns"},
	{"HorizontalPodAutoscaler gateway", "minReplicas: 3", "minReplicas: 30", "minReplicas"},
	{"Namespace asset-registry", "kind: Namespace", "kind: Secret", "does not know the kind Secret"},

	{"Deployment assetsvc", "name: ASSETSVC_ADDR\n", "name: ASSETSVC_ZONE\n", "ASSETSVC_ZONE is given twice"},
	{"Deployment assetsvc", "name: ASSETSVC_ADDR\n", "name: ASSETSVC_PORT\n", "does not know ASSETSVC_PORT"},
	{"Namespace asset-registry", "enforce: restricted", "enforce: baseline", "its namespace does not enforce"},
	{"Deployment gateway", "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"},
	{"Deployment gateway", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "it can write to its image"},
	{"Deployment gateway", "value: 5s", "value: 1s", "got the drain delay 1s"},
	{"Deployment gateway", "preStop:", "postStart:", "no time to learn that the pod ends"},
	{"Deployment assetsvc", "terminationGracePeriodSeconds: 25", "terminationGracePeriodSeconds: 20", "got 20 s until"},
	{"Deployment assetsvc", "maxUnavailable: 0", "maxUnavailable: 1", "ends old pods before new ones are ready"},
	{"Deployment assetsvc", "limits:\n            ephemeral-storage: 1Gi\n            memory: 512Mi",
		"limits:\n            ephemeral-storage: 1Gi", "or their memory is not the limit"},
	{"Deployment assetsvc", "limits:\n            ephemeral-storage: 1Gi", "limits:\n            ephemeral-storage: 100Mi",
		"got 100Mi of ephemeral storage for logs"},
	{"Deployment assetsvc", "value: 400MiB", "value: 500MiB", "got GOMEMLIMIT"},
	{"Deployment assetsvc", "spec:\n", "spec:\n  replicas: 3\n", "both set the number of pods"},
	{"HorizontalPodAutoscaler assetsvc", "minReplicas: 3", "minReplicas: 1", "one pod can be alone"},
	{"HorizontalPodAutoscaler gateway", "maxReplicas: 12", "maxReplicas: 15", "got limits for 16 gateways"},
	{"PodDisruptionBudget assetsvc", "maxUnavailable: 1", "maxUnavailable: 2", "has no budget of one pod"},
	{"Service assetsvc", "publishNotReadyAddresses: true", "publishNotReadyAddresses: false", "does not list each pod"},
	{"PersistentVolumeClaim files", "ReadWriteMany", "ReadWriteOnce", "has no claim with ReadWriteMany"},
	{"Deployment filesvc", "mountPath: /files", "mountPath: /elsewhere", "got a volume at"},
}
