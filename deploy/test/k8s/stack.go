package k8s

import (
	"fmt"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// manifest is one object as kustomize hands it on.
type manifest struct {
	name string // kind and name
	text []byte
}

// build makes the manifests of a directory beside this one.
func build(dir string) ([]manifest, error) {
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	objects, err := kustomizer.Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "k8s", dir))
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	var built []manifest
	for _, o := range objects.Resources() {
		text, err := o.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", dir, err)
		}
		built = append(built, manifest{name: o.GetKind() + " " + o.GetName(), text: text})
	}
	return built, nil
}

// stack is what a directory makes, by kind.
type stack struct {
	namespaces  []*corev1.Namespace
	accounts    []*corev1.ServiceAccount
	configs     []*corev1.ConfigMap
	claims      []*corev1.PersistentVolumeClaim
	services    []*corev1.Service
	deployments []*appsv1.Deployment
	budgets     []*policyv1.PodDisruptionBudget
	scalers     []*autoscalingv2.HorizontalPodAutoscaler
	policies    []*networkingv1.NetworkPolicy
	ingresses   []*networkingv1.Ingress
}

// stackOf reads manifests. There is a place for every kind that may be among
// them; Secrets, for one, have none.
func stackOf(manifests []manifest) (*stack, error) {
	s := &stack{}
	for _, m := range manifests {
		object, _, err := decoder.Decode(m.text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if err := s.add(object); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return s, nil
}

func (s *stack) add(object runtime.Object) error {
	switch o := object.(type) {
	case *corev1.Namespace:
		s.namespaces = append(s.namespaces, o)
	case *corev1.ServiceAccount:
		s.accounts = append(s.accounts, o)
	case *corev1.ConfigMap:
		s.configs = append(s.configs, o)
	case *corev1.PersistentVolumeClaim:
		s.claims = append(s.claims, o)
	case *corev1.Service:
		s.services = append(s.services, o)
	case *appsv1.Deployment:
		s.deployments = append(s.deployments, o)
	case *policyv1.PodDisruptionBudget:
		s.budgets = append(s.budgets, o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		s.scalers = append(s.scalers, o)
	case *networkingv1.NetworkPolicy:
		s.policies = append(s.policies, o)
	case *networkingv1.Ingress:
		s.ingresses = append(s.ingresses, o)
	default:
		return fmt.Errorf("there is no place for a %T", o)
	}
	return nil
}
