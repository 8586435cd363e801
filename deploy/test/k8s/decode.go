package k8s

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// decoder decodes manifests of the kinds in a stack. It refuses unknown fields.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(appsv1.AddToScheme, autoscalingv2.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme)
	if err := kinds.AddToScheme(scheme); err != nil {
		panic(err) // two kinds of one name: an error of the programmer
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// contained returns how the pods of a deployment break the strictest of the pod
// security standards, or nil.
func contained(d *appsv1.Deployment) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	strictest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pod := &d.Spec.Template
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(strictest, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		return fmt.Errorf("%s: %s", result.ForbiddenReason(), result.ForbiddenDetail())
	}
	return nil
}
