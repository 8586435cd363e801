package k8s

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// endpoint is a pod, or a machine outside the cluster.
type endpoint struct {
	name            string
	namespace       string // "" outside the cluster
	namespaceLabels labels.Set
	labels          labels.Set
	ports           []corev1.ContainerPort
}

// allows reports whether policies let one endpoint connect to a port of another. On each side, if any policy
// selects the pod, at least one of these policies must allow the connection.
func allows(policies []*networkingv1.NetworkPolicy, from, to endpoint, port corev1.ContainerPort) bool {
	out, in := true, true
	for _, p := range policies {
		if from.isSelectedBy(p) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			out = false
		}
		if to.isSelectedBy(p) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			in = false
		}
	}
	for _, p := range policies {
		if from.isSelectedBy(p) {
			out = out || slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
				return permits(r.To, r.Ports, p.Namespace, to, port)
			})
		}
		if to.isSelectedBy(p) {
			in = in || slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
				return permits(r.From, r.Ports, p.Namespace, from, port)
			})
		}
	}
	return out && in
}

func (e endpoint) isSelectedBy(p *networkingv1.NetworkPolicy) bool {
	return p.Namespace == e.namespace && matches(&p.Spec.PodSelector, e.labels)
}

// permits reports whether a rule of a policy permits a peer and a port. namespace is the namespace of the policy.
func permits(
	peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, namespace string,
	peer endpoint, port corev1.ContainerPort,
) bool {
	isPeer := len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		switch {
		case p.IPBlock != nil:
			return peer.namespace == ""
		case peer.namespace == "":
			return false
		case p.NamespaceSelector == nil:
			return peer.namespace == namespace && matches(p.PodSelector, peer.labels)
		}
		return matches(p.NamespaceSelector, peer.namespaceLabels) && (p.PodSelector == nil || matches(p.PodSelector, peer.labels))
	})
	return isPeer && (len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		isUDP := p.Protocol != nil && *p.Protocol == corev1.ProtocolUDP
		return isUDP == (port.Protocol == corev1.ProtocolUDP) &&
			(p.Port == nil || p.Port.String() == port.Name || p.Port.String() == strconv.Itoa(int(port.ContainerPort)))
	}))
}

func matches(selector *metav1.LabelSelector, of labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(of)
}

// endpoints returns the pods of the services and of the stores, other pods in the cluster, and a machine outside.
// They have the labels that deploy/k8s/README.md tells the operator to set.
func endpoints(services, stores stack) []endpoint {
	port := func(name string, number int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: number}
	}
	spaces := map[string]labels.Set{"edge": {"asset-registry/edge": "true"}, "watch": {"asset-registry/monitoring": "true"}}
	for _, n := range append(every[*corev1.Namespace](services), every[*corev1.Namespace](stores)...) {
		spaces[n.Name] = n.Labels
	}
	pod := func(name, namespace string, labelled labels.Set, ports ...corev1.ContainerPort) endpoint {
		return endpoint{name, namespace, labels.Merge(spaces[namespace], labels.Set{corev1.LabelMetadataName: namespace}), labelled, ports}
	}
	dns := port("dns", 53)
	dns.Protocol = corev1.ProtocolUDP
	found := []endpoint{
		{name: "world", ports: []corev1.ContainerPort{port("https", 443)}},
		pod("edge", "edge", nil, port("https", 443)),
		pod("monitoring", "watch", nil, port("otlp-grpc", 4317), port("otlp-http", 4318)),
		pod("stranger", "other", nil, port("http", 8080)),
		pod("impostor", "other", labels.Set{"app.kubernetes.io/name": "gateway", "asset-registry/admin": "true"}, port("http", 8080)),
		pod("unlabelled", "asset-registry", nil, port("http", 8080)),
		pod("admin", "asset-registry", labels.Set{"asset-registry/admin": "true"}),
		pod("dns", "kube-system", labels.Set{"k8s-app": "kube-dns"}, dns, port("dns-tcp", 53)),
		pod("assets", "asset-registry-stores", labels.Set{"asset-registry/store": "assets"}, port("mongodb", 27017)),
		pod("tokens", "asset-registry-stores", labels.Set{"asset-registry/store": "tokens"}, port("redis", 6379)),
		pod("limits", "asset-registry-stores", labels.Set{"asset-registry/store": "limits"}, port("redis", 6379)),
		pod("backup", "asset-registry-stores", nil, port("http", 8080)),
	}
	for _, d := range every[*appsv1.Deployment](services) {
		found = append(found, pod(d.Name, d.Namespace, d.Spec.Template.Labels, containerOf(d).Ports...))
	}
	return found
}

// connections returns all connections that the policies allow and that begin or end at a pod of the registry or its
// stores.
func connections(policies []*networkingv1.NetworkPolicy, all []endpoint) (found []string) {
	for _, from := range all {
		for _, to := range all {
			for _, port := range to.ports {
				isOurs := strings.HasPrefix(from.namespace, "asset-registry") || strings.HasPrefix(to.namespace, "asset-registry")
				if isOurs && allows(policies, from, to, port) {
					found = append(found, from.name+" to "+to.name+":"+port.Name)
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

func connectionsOf(t *testing.T, dir string) []string {
	t.Helper()
	services, stores := stackOf(t, dir), stackOf(t, "stores")
	return connections(slices.Concat(every[*networkingv1.NetworkPolicy](services), every[*networkingv1.NetworkPolicy](stores)),
		endpoints(services, stores))
}

// wanted are the connections that base and production must allow, except those to the port http of gateways. In
// each line, all pods before the word "to" may connect to all pods and ports behind it.
var wanted = []string{
	"gateway, authsvc to assetsvc:http",
	"gateway, assetsvc to authsvc:http",
	"admin to authsvc:admin",
	"monitoring to gateway:metrics, assetsvc:metrics, authsvc:metrics",
	"assetsvc, assets to assets:mongodb",
	"authsvc, tokens to tokens:redis",
	"gateway, limits to limits:redis",
	"gateway, assetsvc, authsvc, unlabelled, admin, assets, tokens, limits, backup to dns:dns, dns:dns-tcp",
	"gateway, assetsvc, authsvc to monitoring:otlp-grpc, monitoring:otlp-http",
	// The operators of the stores decide where stores may connect to, so our policies forbid nothing here.
	"assets, tokens, limits, backup to world:https, edge:https, stranger:http, impostor:http, monitoring:otlp-grpc, monitoring:otlp-http",
}

// pairs expands lines, in the form of the list "wanted", into single connections.
func pairs(lines ...string) (all []string) {
	for _, line := range lines {
		from, to, _ := strings.Cut(line, " to ")
		for _, f := range strings.Split(from, ", ") {
			for _, t := range strings.Split(to, ", ") {
				all = append(all, f+" to "+t)
			}
		}
	}
	return all
}

func TestOnlyTheWantedConnectionsAreAllowed(t *testing.T) {
	production := append(slices.Clone(wanted), "edge to gateway:http")
	for dir, want := range map[string][]string{
		// Pods that may not open connections cannot connect to a gateway either, so they are not in the list.
		"base":        append(slices.Clone(wanted), "world, edge, monitoring, stranger, impostor, dns, assets, tokens, limits, backup to gateway:http"),
		"production":  production,
		withSnapshots: production,
		withSearch: append(slices.Clone(production), "gateway to searchsvc:http", "monitoring to searchsvc:metrics",
			"searchsvc to gateway:http, dns:dns, dns:dns-tcp, monitoring:otlp-grpc, monitoring:otlp-http"),
		withFiles: append(slices.Clone(production), "gateway, assetsvc to filesvc:http", "monitoring to filesvc:metrics",
			"filesvc to assets:mongodb, assetsvc:http, dns:dns, dns:dns-tcp, monitoring:otlp-grpc, monitoring:otlp-http"),
	} {
		got, want := connectionsOf(t, dir), pairs(want...)
		slices.Sort(want)
		for _, c := range got {
			if !slices.Contains(want, c) {
				t.Errorf("%s: got the connection %s, which nobody needs", dir, c)
			}
		}
		for _, c := range want {
			if !slices.Contains(got, c) {
				t.Errorf("%s: got no connection %s", dir, c)
			}
		}
	}
}

// TestEveryPolicyIsNeeded leaves out one policy at a time. The allowed connections must then differ from the
// connections that all policies allow.
func TestEveryPolicyIsNeeded(t *testing.T) {
	for _, dir := range []string{"base", withSearch, withFiles} {
		services, stores := stackOf(t, dir), stackOf(t, "stores")
		policies := slices.Concat(every[*networkingv1.NetworkPolicy](services), every[*networkingv1.NetworkPolicy](stores))
		whole := connections(policies, endpoints(services, stores))
		for i, p := range policies {
			if slices.Equal(connections(slices.Delete(slices.Clone(policies), i, i+1), endpoints(services, stores)), whole) {
				t.Errorf("%s: policy %s/%s changes nothing", dir, p.Namespace, p.Name)
			}
		}
	}
}

// TestAllowsIsWhatKubernetesDocuments checks that the results of the function "allows" follow the rules in the
// documentation of NetworkPolicy.
func TestAllowsIsWhatKubernetesDocuments(t *testing.T) {
	from := endpoint{name: "a", namespace: "n", namespaceLabels: labels.Set{"n": "1"}, labels: labels.Set{"pod": "a"}}
	to := endpoint{name: "b", namespace: "m", namespaceLabels: labels.Set{"m": "1"}, labels: labels.Set{"pod": "b"}}
	pod := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"pod": name}}
	}
	type peer = networkingv1.NetworkPolicyPeer
	ingress := func(peers ...peer) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "m"}, Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *pod("b"), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: peers}},
		}}
	}
	closed := ingress()
	closed.Spec.Ingress = nil
	egress, elsewhere := closed.DeepCopy(), closed.DeepCopy()
	egress.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	elsewhere.Namespace = "n"
	space := &metav1.LabelSelector{MatchLabels: map[string]string{"n": "1"}}
	for name, c := range map[string]struct {
		policies []*networkingv1.NetworkPolicy
		want     bool
	}{
		"no policy":                          {nil, true},
		"a policy without rules":             {[]*networkingv1.NetworkPolicy{closed}, false},
		"a policy of another namespace":      {[]*networkingv1.NetworkPolicy{elsewhere}, true},
		"a policy of the other direction":    {[]*networkingv1.NetworkPolicy{egress}, true},
		"a rule for everybody":               {[]*networkingv1.NetworkPolicy{ingress()}, true},
		"one of two policies":                {[]*networkingv1.NetworkPolicy{closed, ingress()}, true},
		"a pod of the policy's namespace":    {[]*networkingv1.NetworkPolicy{ingress(peer{PodSelector: pod("a")})}, false},
		"all pods of a namespace":            {[]*networkingv1.NetworkPolicy{ingress(peer{NamespaceSelector: space})}, true},
		"a pod of a namespace":               {[]*networkingv1.NetworkPolicy{ingress(peer{NamespaceSelector: space, PodSelector: pod("a")})}, true},
		"another pod of the namespace":       {[]*networkingv1.NetworkPolicy{ingress(peer{NamespaceSelector: space, PodSelector: pod("c")})}, false},
		"the namespace or a pod of this one": {[]*networkingv1.NetworkPolicy{ingress(peer{NamespaceSelector: space}, peer{PodSelector: pod("c")})}, true},
	} {
		if got := allows(c.policies, from, to, corev1.ContainerPort{Name: "http", ContainerPort: 80}); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
