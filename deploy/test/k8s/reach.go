package k8s

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// party is a pod, or somebody out in the world, who has no labels.
type party struct {
	name      string
	namespace string     // "": the world
	around    labels.Set // of the namespace
	labels    labels.Set
	ports     []corev1.ContainerPort
}

// reaches tells whether policies let one party connect to a port of another:
// where policies are about a pod, one of them must allow it, on each side.
func reaches(policies []*networkingv1.NetworkPolicy, from, to party, port corev1.ContainerPort) bool {
	out, in := true, true
	for _, p := range policies {
		if from.isUnder(p) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			out = false
		}
		if to.isUnder(p) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			in = false
		}
	}
	for _, p := range policies {
		if from.isUnder(p) {
			out = out || slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
				return admits(r.To, r.Ports, p.Namespace, to, port)
			})
		}
		if to.isUnder(p) {
			in = in || slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
				return admits(r.From, r.Ports, p.Namespace, from, port)
			})
		}
	}
	return out && in
}

// isUnder tells whether a policy is about a party.
func (p party) isUnder(policy *networkingv1.NetworkPolicy) bool {
	return policy.Namespace == p.namespace && matches(&policy.Spec.PodSelector, p.labels)
}

// admits tells whether a rule of a policy in a namespace is for a peer and a port.
func admits(
	peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, namespace string,
	peer party, port corev1.ContainerPort,
) bool {
	known := len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		switch {
		case p.IPBlock != nil:
			return peer.namespace == ""
		case peer.namespace == "":
			return false
		case p.NamespaceSelector == nil:
			return peer.namespace == namespace && matches(p.PodSelector, peer.labels)
		}
		return matches(p.NamespaceSelector, peer.around) && (p.PodSelector == nil || matches(p.PodSelector, peer.labels))
	})
	return known && (len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		number := strconv.Itoa(int(port.ContainerPort))
		return protocol == protocolOf(port) &&
			(p.Port == nil || p.Port.String() == port.Name || p.Port.String() == number)
	}))
}

func protocolOf(p corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

func matches(selector *metav1.LabelSelector, of labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(of)
}

// policiesFit: each is about pods that there are, its ports are theirs, and the
// pods that it means in its own namespace are there, but for those of admins.
func (s *stack) policiesFit() error {
	var faults []error
	for _, p := range s.policies {
		if len(s.deployments) == 0 || len(p.Spec.PodSelector.MatchLabels) == 0 {
			continue
		}
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("policy "+p.Name+": "+format, args...))
		}
		if s.selected(&p.Spec.PodSelector, "") == 0 && !isForeign(&p.Spec.PodSelector) {
			fault("it is about nobody")
		}
		for _, r := range p.Spec.Ingress {
			for _, port := range r.Ports {
				if s.selected(&p.Spec.PodSelector, port.Port.String()) == 0 {
					fault("nobody has the port %s", port.Port.String())
				}
			}
			for _, peer := range r.From {
				if peer.NamespaceSelector == nil && s.selected(peer.PodSelector, "") == 0 && !isForeign(peer.PodSelector) {
					fault("it lets in nobody: %v", peer.PodSelector.MatchLabels)
				}
			}
		}
		for _, r := range p.Spec.Egress {
			for _, peer := range r.To {
				if peer.NamespaceSelector != nil {
					continue
				}
				for _, port := range r.Ports {
					if s.selected(peer.PodSelector, port.Port.String()) == 0 {
						fault("nobody of %v has the port %s", peer.PodSelector.MatchLabels, port.Port.String())
					}
				}
			}
		}
	}
	return errors.Join(faults...)
}

// isForeign tells whether a selector is for pods that the operator labels.
func isForeign(selector *metav1.LabelSelector) bool {
	for label := range selector.MatchLabels {
		if !strings.HasPrefix(label, "asset-registry/") {
			return false
		}
	}
	return true
}

// selected counts the deployments whose pods are meant and have a port, any one if it is "".
func (s *stack) selected(selector *metav1.LabelSelector, port string) int {
	n := 0
	for _, d := range s.deployments {
		if selects(selector, d) && (port == "" || hasPort(d, port)) {
			n++
		}
	}
	return n
}
