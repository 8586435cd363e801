package k8s

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// parties are all who may wish to talk to each other: our pods and stores, and
// what else there is in a cluster and outside, with labels as README.md tells.
func parties(services, stores *stack) []party {
	port := func(name string, number int32) []corev1.ContainerPort {
		return []corev1.ContainerPort{{Name: name, ContainerPort: number}}
	}
	around := func(name string, more labels.Set) labels.Set {
		return labels.Merge(labels.Set{corev1.LabelMetadataName: name}, more)
	}
	ours := around("asset-registry", services.namespaces[0].Labels)
	theirs := around("asset-registry-stores", stores.namespaces[0].Labels)
	all := []party{
		{name: "world", ports: port("https", 443)},
		{name: "edge", namespace: "edge", around: around("edge", labels.Set{"asset-registry/edge": "true"}), ports: port("https", 443)},
		{name: "monitoring", namespace: "watch", around: around("watch", labels.Set{"asset-registry/monitoring": "true"}), ports: append(port("otlp-grpc", 4317), port("otlp-http", 4318)...)},
		{name: "stranger", namespace: "other", around: around("other", nil), ports: port("http", 8080)},
		{name: "impostor", namespace: "other", around: around("other", nil), labels: labels.Set{"app.kubernetes.io/name": "gateway", "asset-registry/admin": "true"}, ports: port("http", 8080)},
		{name: "lodger", namespace: "asset-registry", around: ours, ports: port("http", 8080)},
		{name: "admin", namespace: "asset-registry", around: ours, labels: labels.Set{"asset-registry/admin": "true"}},
		{name: "dns", namespace: "kube-system", around: around("kube-system", nil), labels: labels.Set{"k8s-app": "kube-dns"}, ports: []corev1.ContainerPort{{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", ContainerPort: 53}}},
		{name: "assets", namespace: "asset-registry-stores", around: theirs, labels: labels.Set{"asset-registry/store": "assets"}, ports: port("mongodb", 27017)},
		{name: "tokens", namespace: "asset-registry-stores", around: theirs, labels: labels.Set{"asset-registry/store": "tokens"}, ports: port("redis", 6379)},
		{name: "limits", namespace: "asset-registry-stores", around: theirs, labels: labels.Set{"asset-registry/store": "limits"}, ports: port("redis", 6379)},
	}
	all = append(all, party{name: "backup", namespace: "asset-registry-stores", around: theirs, ports: port("http", 8080)})
	for _, d := range services.deployments {
		all = append(all, party{name: d.Name, namespace: d.Namespace, around: ours, labels: d.Spec.Template.Labels, ports: d.Spec.Template.Spec.Containers[0].Ports})
	}
	return all
}

// ways are all connections to what is ours that can be made, and all that what
// is ours can make.
func ways(policies []*networkingv1.NetworkPolicy, all []party) []string {
	isOurs := func(p party) bool { return strings.HasPrefix(p.namespace, "asset-registry") }
	var found []string
	for _, from := range all {
		for _, to := range all {
			for _, port := range to.ports {
				if (isOurs(from) || isOurs(to)) && reaches(policies, from, to, port) {
					found = append(found, fmt.Sprintf("%s to %s:%s", from.name, to.name, port.Name))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// wanted are the ways that there should be, when some come to the gateways.
func wanted(gateways ...string) []string {
	all := map[string][]string{
		"gateway:http":         gateways,
		"assetsvc:http":        {"gateway", "authsvc"},
		"authsvc:http":         {"gateway", "assetsvc"},
		"authsvc:admin":        {"admin"},
		"gateway:metrics":      {"monitoring"},
		"assetsvc:metrics":     {"monitoring"},
		"authsvc:metrics":      {"monitoring"},
		"assets:mongodb":       {"assetsvc", "assets"},
		"tokens:redis":         {"authsvc", "tokens"},
		"limits:redis":         {"gateway", "limits"},
		"dns:dns":              {"gateway", "assetsvc", "authsvc", "lodger", "admin", "assets", "tokens", "limits", "backup"},
		"dns:dns-tcp":          {"gateway", "assetsvc", "authsvc", "lodger", "admin", "assets", "tokens", "limits", "backup"},
		"world:https":          {"assets", "tokens", "limits", "backup"}, // what stores do is their operators' to say
		"edge:https":           {"assets", "tokens", "limits", "backup"},
		"stranger:http":        {"assets", "tokens", "limits", "backup"},
		"impostor:http":        {"assets", "tokens", "limits", "backup"},
		"monitoring:otlp-grpc": {"gateway", "assetsvc", "authsvc", "assets", "tokens", "limits", "backup"},
		"monitoring:otlp-http": {"gateway", "assetsvc", "authsvc", "assets", "tokens", "limits", "backup"},
	}
	var ways []string
	for _, to := range slices.Sorted(maps.Keys(all)) {
		for _, from := range all[to] {
			ways = append(ways, from+" to "+to)
		}
	}
	slices.Sort(ways)
	return ways
}

func TestNobodyReachesMoreThanNeeded(t *testing.T) {
	stores := stackFor(t, "stores")
	for dir, gateways := range map[string][]string{
		// who has no way out has none to the gateways, either
		"base":       {"world", "edge", "monitoring", "stranger", "impostor", "dns", "assets", "tokens", "limits", "backup"},
		"production": {"edge"},
	} {
		services := stackFor(t, dir)
		got := ways(slices.Concat(services.policies, stores.policies), parties(services, stores))
		want := wanted(gateways...)
		for _, way := range want {
			if !slices.Contains(got, way) {
				t.Errorf("%s: there is no way from %s", dir, way)
			}
		}
		for _, way := range got {
			if !slices.Contains(want, way) {
				t.Errorf("%s: there is a way from %s", dir, way)
			}
		}
	}
}

// TestEveryPolicyIsNeeded: without any of them, somebody reaches more or less.
func TestEveryPolicyIsNeeded(t *testing.T) {
	services, stores := stackFor(t, "base"), stackFor(t, "stores")
	all := slices.Concat(services.policies, stores.policies)
	everybody := parties(services, stores)
	whole := ways(all, everybody)
	for i, p := range all {
		if slices.Equal(ways(slices.Delete(slices.Clone(all), i, i+1), everybody), whole) {
			t.Errorf("policy %s/%s changes nothing", p.Namespace, p.Name)
		}
	}
}

// TestReachIsAsKubernetesHasIt: the rules of the interface's documentation.
func TestReachIsAsKubernetesHasIt(t *testing.T) {
	a := party{name: "a", namespace: "n", around: labels.Set{"n": "1"}, labels: labels.Set{"pod": "a"}}
	b := party{name: "b", namespace: "m", around: labels.Set{"m": "1"}, labels: labels.Set{"pod": "b"}}
	port := corev1.ContainerPort{Name: "http", ContainerPort: 80}
	pod := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"pod": name}}
	}
	into := func(peers ...networkingv1.NetworkPolicyPeer) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "m"}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *pod("b"), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers}},
		}}
	}
	closed := into()
	closed.Spec.Ingress = nil
	outward := closed.DeepCopy()
	outward.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	elsewhere := closed.DeepCopy()
	elsewhere.Namespace = "n"
	inside := &metav1.LabelSelector{MatchLabels: map[string]string{"n": "1"}}
	for name, c := range map[string]struct {
		policies []*networkingv1.NetworkPolicy
		want     bool
	}{
		"no policy":                          {nil, true},
		"a policy without rules":             {[]*networkingv1.NetworkPolicy{closed}, false},
		"a policy of another namespace":      {[]*networkingv1.NetworkPolicy{elsewhere}, true},
		"a policy of the other direction":    {[]*networkingv1.NetworkPolicy{outward}, true},
		"a rule for everybody":               {[]*networkingv1.NetworkPolicy{into()}, true},
		"one of two policies":                {[]*networkingv1.NetworkPolicy{closed, into()}, true},
		"a pod of the policy's namespace":    {[]*networkingv1.NetworkPolicy{into(networkingv1.NetworkPolicyPeer{PodSelector: pod("a")})}, false},
		"all pods of a namespace":            {[]*networkingv1.NetworkPolicy{into(networkingv1.NetworkPolicyPeer{NamespaceSelector: inside})}, true},
		"a pod of a namespace":               {[]*networkingv1.NetworkPolicy{into(networkingv1.NetworkPolicyPeer{NamespaceSelector: inside, PodSelector: pod("a")})}, true},
		"another pod of the namespace":       {[]*networkingv1.NetworkPolicy{into(networkingv1.NetworkPolicyPeer{NamespaceSelector: inside, PodSelector: pod("c")})}, false},
		"the namespace or a pod of this one": {[]*networkingv1.NetworkPolicy{into(networkingv1.NetworkPolicyPeer{NamespaceSelector: inside}, networkingv1.NetworkPolicyPeer{PodSelector: pod("c")})}, true},
	} {
		if got := reaches(c.policies, a, b, port); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
