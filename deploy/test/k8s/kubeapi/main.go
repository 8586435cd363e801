// Command kubeapi says what a Kubernetes API server would answer to requests that create objects. It runs the
// server's own code, without a cluster. It reads a JSON object with names and manifests (YAML texts) from standard
// input. It writes a JSON object with an answer for each name. An answer is the reason of the refusal or the
// warning, or "" if the server takes the manifest silently. kubeapi is a separate module, because the server's code
// takes minutes to compile. deploy/test/tool.sh keeps the program.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // the kinds of the server, with their defaults
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
)

func main() {
	var manifests map[string]string
	if err := json.NewDecoder(os.Stdin).Decode(&manifests); err != nil {
		log.Fatalf("kubeapi: read manifests: %v", err)
	}
	answers := map[string]string{}
	for name, text := range manifests {
		answers[name] = ""
		if err := create([]byte(text)); err != nil {
			answers[name] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatalf("kubeapi: write answers: %v", err)
	}
}

// strategies are the server's rules for new objects. There are none for a Secret, because no manifest has one.
var strategies = map[string]rest.RESTCreateStrategy{
	"ConfigMap":               configmap.Strategy,
	"Deployment":              deployment.Strategy,
	"HorizontalPodAutoscaler": horizontalpodautoscaler.Strategy,
	"Ingress":                 ingress.Strategy,
	"Namespace":               namespace.Strategy,
	"NetworkPolicy":           networkpolicy.Strategy,
	"PersistentVolumeClaim":   persistentvolumeclaim.Strategy,
	"PodDisruptionBudget":     poddisruptionbudget.Strategy,
	"Service":                 service.Strategy,
	"ServiceAccount":          serviceaccount.Strategy,
}

// create returns the reason why the server refuses to create an object, or its warning. It returns nil if the
// server takes the object silently.
func create(text []byte) error {
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict) // refuses unknown fields
	object, kind, err := codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return err
	}
	strategy, isKnown := strategies[kind.Kind]
	if !isKnown {
		return fmt.Errorf("kubeapi does not know the kind %s", kind.Kind)
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
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP} // the server does this where it assigns addresses
	}
	ctx := request.WithNamespace(context.Background(), about.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIGroup: kind.Group, APIVersion: kind.Version,
	})
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		return err
	}
	if warnings := strategy.WarningsOnCreate(ctx, internal); len(warnings) > 0 {
		return fmt.Errorf("the server warns: %s", strings.Join(warnings, "; "))
	}
	return nil
}
