package k8s

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/mattfenwick/cyclonus/pkg/matcher"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// endpoint is a pod, or a machine outside the cluster.
type endpoint struct {
	name  string
	peer  matcher.TrafficPeer
	ports []corev1.ContainerPort
}

// endpoints returns the pods of the services and of the stores, other pods in the cluster, and a machine outside.
// They have the labels that deploy/k8s/README.md tells the operator to set.
func endpoints(both stack) []endpoint {
	port := func(name string, number int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: number}
	}
	spaces := map[string]labels.Set{
		"edge": {"asset-registry/edge": "true"}, "watch": {"asset-registry/monitoring": "true"},
	}
	for _, n := range every[*corev1.Namespace](both) {
		spaces[n.Name] = n.Labels
	}
	pod := func(name, namespace string, of labels.Set, ports ...corev1.ContainerPort) endpoint {
		named := labels.Merge(spaces[namespace], labels.Set{corev1.LabelMetadataName: namespace})
		peer := matcher.InternalPeer{PodLabels: of, NamespaceLabels: named, Namespace: namespace}
		return endpoint{name, matcher.TrafficPeer{Internal: &peer}, ports}
	}
	store := func(name string, ports ...corev1.ContainerPort) endpoint {
		return pod(name, "asset-registry-stores", labels.Set{"asset-registry/store": name}, ports...)
	}
	dns := port("dns", 53)
	dns.Protocol = corev1.ProtocolUDP
	admin := labels.Set{"asset-registry/admin": "true"}
	impostor := labels.Merge(admin, labels.Set{"app.kubernetes.io/name": "gateway"})
	found := []endpoint{
		{"world", matcher.TrafficPeer{IP: "192.0.2.1"}, []corev1.ContainerPort{port("https", 443)}},
		pod("edge", "edge", nil, port("https", 443)),
		pod("monitoring", "watch", nil, port("otlp-grpc", 4317), port("otlp-http", 4318)),
		pod("stranger", "kube-system", nil, port("http", 8080), dns),
		pod("impostor", "other", impostor, port("http", 8080)),
		pod("unlabelled", "asset-registry", nil, port("http", 8080)),
		pod("admin", "asset-registry", admin),
		pod("dns", "kube-system", labels.Set{"k8s-app": "kube-dns"}, dns, port("dns-tcp", 53)),
		store("assets", port("mongodb", 27017)),
		store("tokens", port("redis", 6379)),
		store("limits", port("redis", 6379)),
		pod("backup", "asset-registry-stores", nil, port("http", 8080)),
	}
	for _, d := range every[*appsv1.Deployment](both) {
		found = append(found, pod(d.Name, d.Namespace, d.Spec.Template.Labels, containerOf(d).Ports...))
	}
	return found
}

// connections returns all connections that policies allow and that begin or end at a pod of the registry or its
// stores, sorted.
func connections(policies []*networkingv1.NetworkPolicy, all []endpoint) (found []string) {
	rules := matcher.BuildNetworkPolicies(false, policies)
	for _, from := range all {
		for _, to := range all {
			for _, port := range to.ports {
				traffic := matcher.Traffic{
					Source: &from.peer, Destination: &to.peer, ResolvedPort: int(port.ContainerPort),
					ResolvedPortName: port.Name, Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP),
				}
				isOurs := strings.Contains(from.peer.Namespace()+to.peer.Namespace(), "asset-registry")
				if isOurs && rules.IsTrafficAllowed(&traffic).IsAllowed() {
					found = append(found, from.name+" to "+to.name+":"+port.Name)
				}
			}
		}
	}
	slices.Sort(found)
	return found
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
	"assets, tokens, limits, backup to world:https, edge:https, stranger:http, stranger:dns, impostor:http, " +
		"monitoring:otlp-grpc, monitoring:otlp-http",
}

// pairs expands lines, in the form of the list `wanted`, into single connections.
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

// TestOnlyTheWantedConnectionsAreAllowed also removes each policy in turn. Each removal must make a difference.
func TestOnlyTheWantedConnectionsAreAllowed(t *testing.T) {
	production := append(slices.Clone(wanted), "edge to gateway:http")
	for dir, lines := range map[string][]string{
		// Pods that are not allowed to open connections cannot connect to a gateway either, so they are not in the
		// list.
		"base": append(slices.Clone(wanted),
			"world, edge, monitoring, stranger, impostor, dns, assets, tokens, limits, backup to gateway:http"),
		"production":  production,
		withSnapshots: production,
		withSearch: append(slices.Clone(production), "gateway, authsvc to searchsvc:http", "monitoring to searchsvc:metrics",
			"searchsvc to gateway:http, dns:dns, dns:dns-tcp, monitoring:otlp-grpc, monitoring:otlp-http"),
		withFiles: append(slices.Clone(production), "gateway, assetsvc to filesvc:http", "monitoring to filesvc:metrics",
			"filesvc to assets:mongodb, assetsvc:http, dns:dns, dns:dns-tcp, monitoring:otlp-grpc, monitoring:otlp-http"),
	} {
		s, want := append(decode(t, build(t, dir)), decode(t, build(t, "stores"))...), pairs(lines...)
		slices.Sort(want)
		policies, all := every[*networkingv1.NetworkPolicy](s), endpoints(s)
		if diff := gocmp.Diff(want, connections(policies, all)); diff != "" {
			t.Errorf("%s: the allowed connections differ (-want +got):\n%s", dir, diff)
		}
		for i, p := range policies {
			if slices.Equal(connections(slices.Delete(slices.Clone(policies), i, i+1), all), want) {
				t.Errorf("%s: without the policy %s/%s the same connections are allowed", dir, p.Namespace, p.Name)
			}
		}
	}
}
