package k8s

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // what the server knows, its defaults with it
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// read decodes an object, and refuses fields that there are none of.
func read(text []byte) (runtime.Object, error) {
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDeserializer().Decode(text, nil, nil)
	return object, err
}

// strategyOf returns what the server does with a new object of a kind.
func strategyOf(kind string) (rest.RESTCreateStrategy, error) {
	switch kind {
	case "ConfigMap":
		return configmap.Strategy, nil
	case "Deployment":
		return deployment.Strategy, nil
	case "HorizontalPodAutoscaler":
		return horizontalpodautoscaler.Strategy, nil
	case "Ingress":
		return ingress.Strategy, nil
	case "Namespace":
		return namespace.Strategy, nil
	case "NetworkPolicy":
		return networkpolicy.Strategy, nil
	case "PodDisruptionBudget":
		return poddisruptionbudget.Strategy, nil
	case "Service":
		return service.Strategy, nil
	case "ServiceAccount":
		return serviceaccount.Strategy, nil
	}
	return nil, fmt.Errorf("nothing is known of a %s", kind)
}

// create returns why the server would refuse to create an object, or what it
// would warn of.
func create(text []byte) error {
	object, err := read(text)
	if err != nil {
		return err
	}
	strategy, err := strategyOf(object.GetObjectKind().GroupVersionKind().Kind)
	if err != nil {
		return err
	}
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	about, err := meta.Accessor(internal)
	if err != nil {
		return err
	}
	rest.FillObjectMetaSystemFields(about)
	if s, ok := internal.(*core.Service); ok && s.Spec.ClusterIP != "" {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP} // which the server does where it gives addresses out
	}
	kind := object.GetObjectKind().GroupVersionKind()
	ctx := request.WithNamespace(context.Background(), about.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: "create", APIGroup: kind.Group, APIVersion: kind.Version})
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		return err
	}
	if warnings := strategy.WarningsOnCreate(ctx, internal); len(warnings) > 0 {
		return fmt.Errorf("the server warns: %s", strings.Join(warnings, "; "))
	}
	return nil
}

// contained returns what the strictest standard for pods has against those of a
// deployment.
func contained(d *appsv1.Deployment) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	strictest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(strictest, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec))
	if !result.Allowed {
		return fmt.Errorf("%s: %s", result.ForbiddenReason(), result.ForbiddenDetail())
	}
	return nil
}
