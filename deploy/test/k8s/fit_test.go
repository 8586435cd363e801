package k8s

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestThePartsFit(t *testing.T) {
	for _, dir := range directories {
		if err := stackFor(t, dir).fit(); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestWhatDoesNotFitIsFound breaks each thing that is said to fit.
func TestWhatDoesNotFitIsFound(t *testing.T) {
	pod := func(s *stack) *corev1.PodSpec { return &named(s.deployments, "assetsvc").Spec.Template.Spec }
	one := func(s *stack) *corev1.Container { return &pod(s).Containers[0] }
	set := func(s *stack, name, value string) {
		env := one(s).Env
		for i := range env {
			if env[i].Name == name {
				env[i].Value = value
				return
			}
		}
		t.Errorf("there is no %s", name)
	}
	yes, three := true, int32(3)
	for name, c := range map[string]struct {
		spoil func(*stack)
		says  string
	}{
		"another port":           {func(s *stack) { one(s).Ports[0].ContainerPort = 80 }, "http is 80"},
		"a port that is missing": {func(s *stack) { one(s).Ports = one(s).Ports[:1] }, "metrics is not declared"},
		"a program elsewhere":    {func(s *stack) { set(s, "ASSETSVC_ADDR", ":1") }, "listens at"},
		"a probe of another":     {func(s *stack) { one(s).ReadinessProbe.HTTPGet.Path = "/livez" }, "/readyz"},
		"a probe of metrics":     {func(s *stack) { one(s).LivenessProbe.HTTPGet.Port = intstr.FromString("metrics") }, "/livez"},
		"a server of no name":    {func(s *stack) { set(s, "ASSETSVC_AUTH_URL", "http://auth:8082") }, "auth:8082"},
		"a server's other port":  {func(s *stack) { set(s, "ASSETSVC_AUTH_URL", "http://authsvc:80") }, "authsvc:80"},
		"one address for all":    {func(s *stack) { named(s.services, "authsvc").Spec.ClusterIP = "" }, "does not stand for all"},
		"only those ready":       {func(s *stack) { named(s.services, "authsvc").Spec.PublishNotReadyAddresses = false }, "does not stand for all"},
		"settings said twice":    {func(s *stack) { named(s.configs, "assetsvc").Data["ASSETSVC_ADDR"] = ":8081" }, "not said once"},
		"no settings":            {func(s *stack) { s.configs = nil }, "no ConfigMap"},
		"another's secrets":      {func(s *stack) { pod(s).Volumes[0].Projected.Sources[1].Secret.Name = "authsvc-stores" }, "it reads"},
		"a secret for anyone":    {func(s *stack) { *pod(s).Volumes[0].Projected.DefaultMode = 0o444 }, "may be read by anyone"},
		"a secret elsewhere":     {func(s *stack) { one(s).VolumeMounts[0].MountPath = "/elsewhere" }, "SECRET_FILE"},
		"another's account":      {func(s *stack) { pod(s).ServiceAccountName = "authsvc" }, "not its own"},
		"a token":                {func(s *stack) { pod(s).AutomountServiceAccountToken = &yes }, "a token is given"},
		"an account's token":     {func(s *stack) { named(s.accounts, "assetsvc").AutomountServiceAccountToken = nil }, "a token is given"},
		"links":                  {func(s *stack) { pod(s).EnableServiceLinks = nil }, "look like settings"},
		"an early end":           {func(s *stack) { *pod(s).TerminationGracePeriodSeconds = 20 }, "it needs 23s"},
		"a short drain":          {func(s *stack) { set(s, "ASSETSVC_DRAIN_DELAY", "1s") }, "do not learn"},
		"no pause":               {func(s *stack) { named(s.deployments, "gateway").Spec.Template.Spec.Containers[0].Lifecycle = nil }, "no time to be told"},
		"a gap in updates":       {func(s *stack) { named(s.deployments, "assetsvc").Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal = 1 }, "before new ones"},
		"memory without end":     {func(s *stack) { set(s, "GOMEMLIMIT", "500MiB") }, "GOMEMLIMIT"},
		"no CPU":                 {func(s *stack) { delete(one(s).Resources.Requests, corev1.ResourceCPU) }, "no CPU"},
		"memory not kept":        {func(s *stack) { delete(one(s).Resources.Requests, corev1.ResourceMemory) }, "kept for it"},
		"spread with others": {func(s *stack) {
			pod(s).TopologySpreadConstraints[0].LabelSelector.MatchLabels["app.kubernetes.io/name"] = "x"
		}, "others are spread"},
		"no spread":           {func(s *stack) { pod(s).TopologySpreadConstraints = nil }, "spread over"},
		"two opinions":        {func(s *stack) { named(s.deployments, "assetsvc").Spec.Replicas = &three }, "so does the autoscaler"},
		"one alone":           {func(s *stack) { *named(s.scalers, "assetsvc").Spec.MinReplicas = 1 }, "one alone"},
		"no autoscaler":       {func(s *stack) { named(s.scalers, "assetsvc").Spec.ScaleTargetRef.Name = "x" }, "0 autoscalers"},
		"no budget":           {func(s *stack) { s.budgets = s.budgets[1:] }, "0 disruption budgets"},
		"a large budget":      {func(s *stack) { named(s.budgets, "assetsvc").Spec.MaxUnavailable.IntVal = 2 }, "more than one"},
		"too many gateways":   {func(s *stack) { named(s.scalers, "gateway").Spec.MaxReplicas = 15 }, "the limits count on 16"},
		"a service of nobody": {func(s *stack) { named(s.services, "assetsvc").Spec.Selector["app.kubernetes.io/name"] = "x" }, "stands for 0"},
		"a service of all": {func(s *stack) {
			delete(named(s.services, "assetsvc").Spec.Selector, "app.kubernetes.io/name")
			named(s.services, "assetsvc").Spec.Selector["app.kubernetes.io/part-of"] = "asset-registry"
		}, "stands for 3"},
		"a service for all": {func(s *stack) { named(s.services, "assetsvc").Spec.Type = corev1.ServiceTypeNodePort }, "from outside"},
		"a service's port":  {func(s *stack) { named(s.services, "assetsvc").Spec.Ports[0].TargetPort = intstr.FromString("x") }, "no port x"},
		"the admin API":     {func(s *stack) { named(s.services, "authsvc").Spec.Ports[0].TargetPort = intstr.FromString("admin") }, "not apart"},
		"an ingress elsewhere": {func(s *stack) {
			named(s.ingresses, "gateway").Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "authsvc-admin"
		}, "leads to authsvc-admin"},
		"an ingress of all": {func(s *stack) { named(s.ingresses, "gateway").Spec.Rules[0].HTTP.Paths[1].Path = "/" }, "leads to gateway"},
		"no certificate":    {func(s *stack) { named(s.ingresses, "gateway").Spec.TLS = nil }, "no certificate"},
		"a policy's pods": {func(s *stack) {
			named(s.policies, "assetsvc").Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] = "x"
		}, "about nobody"},
		"a policy's port": {func(s *stack) { *named(s.policies, "assetsvc").Spec.Ingress[0].Ports[0].Port = intstr.FromString("x") }, "port x"},
		"a policy's peer": {func(s *stack) {
			named(s.policies, "assetsvc").Spec.Ingress[0].From[0].PodSelector.MatchLabels["app.kubernetes.io/name"] = "x"
		}, "lets in nobody"},
		"a policy's way out": {func(s *stack) { *named(s.policies, "assetsvc").Spec.Egress[0].Ports[0].Port = intstr.FromInt32(1) }, "has the port 1"},
		"a way past an ingress": {func(s *stack) {
			named(s.ingresses, "gateway").Spec.DefaultBackend = named(s.ingresses, "gateway").Spec.Rules[0].HTTP.Paths[0].Backend.DeepCopy()
		}, "takes whatever"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stackFor(t, "production")
			c.spoil(s)
			if err := s.fit(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
		})
	}
}

// named is the first whose name begins like this: those of ConfigMaps end in a hash.
func named[T metav1.Object](all []T, name string) T {
	return all[slices.IndexFunc(all, func(o T) bool { return strings.HasPrefix(o.GetName(), name) })]
}

func TestManifestsHoldNoSecret(t *testing.T) {
	if _, err := stackOf([]manifest{{name: "Secret x", text: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n")}}); err == nil {
		t.Error("a Secret has a place")
	}
}
