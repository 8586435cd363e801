// Package k8s tests the manifests for Kubernetes without a cluster. Kustomize builds them, the code of the
// Kubernetes API server reads them, and the programs run with the settings in them. Other tests check which
// connections between pods are allowed, and rules that no server checks.
//
// The package is a separate module, because it needs the code of Kubernetes.
package k8s
