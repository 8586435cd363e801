// Package k8s tests the manifests for Kubernetes without a cluster. Kustomize builds
// them, the API server's own code reads them, and the programs run with the settings
// in them. Other tests check who can connect to whom, and what no server checks.
//
// It is a module of its own because it needs the code of Kubernetes.
package k8s
