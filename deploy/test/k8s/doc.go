// Package k8s tests the manifests without a cluster: kustomize builds them,
// and the API server's own code tells what the server would say to them. The
// other tests ask what a server does not: whether the parts fit together,
// whether the policies let in those whom they should and nobody else, and
// whether the programs understand, and do, what the manifests tell them.
//
// It is a module of its own because of what it takes to be an API server.
package k8s
