package k8s

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The folders of deploy/k8s that an operator applies. Each of the three folders in testdata is production with one
// component.
var (
	withFiles     = filepath.Join("..", "test", "k8s", "testdata", "files")
	withSearch    = filepath.Join("..", "test", "k8s", "testdata", "search")
	withSnapshots = filepath.Join("..", "test", "k8s", "testdata", "snapshots")
	withServices  = []string{"base", "production", withFiles, withSearch, withSnapshots}
	all           = append([]string{"stores"}, withServices...)
)

// manifest is one object, as kustomize writes it.
type manifest struct{ name, text string }

// build returns the manifests of a folder of deploy/k8s.
func build(t *testing.T, dir string) (built []manifest) {
	t.Helper()
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	objects, err := kustomizer.Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "k8s", dir))
	if err != nil {
		t.Fatalf("build %s: %v", dir, err)
	}
	for _, o := range objects.Resources() {
		text, err := o.AsYAML()
		if err != nil {
			t.Fatalf("build %s: %v", dir, err)
		}
		built = append(built, manifest{o.GetKind() + " " + o.GetName(), string(text)})
	}
	return built
}

// stack holds the decoded objects of a folder.
type stack []runtime.Object

// decode decodes manifests. It refuses unknown fields, secrets, and kinds that no folder should have.
func decode(manifests []manifest) (s stack, err error) {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(appsv1.AddToScheme, autoscalingv2.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme)
	if err := kinds.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, m := range manifests {
		object, _, err := decoder.Decode([]byte(m.text), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if _, isSecret := object.(*corev1.Secret); isSecret {
			return nil, fmt.Errorf("%s: a manifest holds a secret", m.name)
		}
		s = append(s, object)
	}
	return s, nil
}

func stackOf(t *testing.T, dir string) stack {
	t.Helper()
	s, err := decode(build(t, dir))
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
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

// named returns the object of a kind whose name begins with the given text, or nil. It compares only the beginning
// because names of ConfigMaps end in a hash.
func named[T interface {
	runtime.Object
	metav1.Object
}](s stack, name string) (found T) {
	for _, o := range every[T](s) {
		if strings.HasPrefix(o.GetName(), name) {
			return o
		}
	}
	return found
}

// containerOf returns the only container of a deployment's pods.
func containerOf(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }

// selects reports whether a selector matches the pods of a deployment.
func selects(selector *metav1.LabelSelector, d *appsv1.Deployment) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
}

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
	env, err := s.environment(d)
	if err != nil {
		return "" // the rule "each setting is given once" reports this error
	}
	return env[strings.ToUpper(d.Name)+"_"+name]
}
