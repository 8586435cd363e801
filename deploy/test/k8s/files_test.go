package k8s

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// withFiles is production with the component files.
var withFiles = filepath.Join("..", "test", "k8s", "testdata", "files")

func TestTheFilesFit(t *testing.T) {
	s := stackFor(t, withFiles)
	checkComponent(t, withFiles, "filesvc")
	d := named(s.deployments, "filesvc")
	if err := s.secretsFit(d); err != nil {
		t.Error(err)
	}
	pod := d.Spec.Template.Spec
	if len(s.claims) != 1 || s.claims[0].Namespace != d.Namespace ||
		s.claims[0].Spec.AccessModes[0] != corev1.ReadWriteMany || *d.Spec.Replicas != 2 {
		t.Errorf("got the claims %v for %d pods, want one with ReadWriteMany for 2", s.claims, *d.Spec.Replicas)
	}
	env, err := s.environment(d)
	if err != nil {
		t.Fatal(err)
	}
	claim, mount := pod.Volumes[1].PersistentVolumeClaim, pod.Containers[0].VolumeMounts[1]
	if claim == nil || claim.ClaimName != s.claims[0].Name || mount.Name != pod.Volumes[1].Name || mount.ReadOnly ||
		mount.MountPath != env["FILESVC_DATA"] {
		t.Errorf("got the volume %v at %v, want that of the files at %s", claim, mount, env["FILESVC_DATA"])
	}
	for _, name := range []string{"assetsvc", "filesvc"} {
		if got, err := s.environment(named(s.deployments, name)); err != nil || got[settingOf(name, "BASE_URL")] == "" {
			t.Errorf("%s: got the settings %v, %v, want the public address", name, got, err)
		}
	}
	for _, name := range []string{"gateway", "assetsvc"} {
		if got, err := s.environment(named(s.deployments, name)); err != nil || got[settingOf(name, "FILES_URL")] == "" {
			t.Errorf("%s: got the settings %v, %v, want the address of the file services", name, got, err)
		}
	}
}

// checkComponent checks the deployment that a component adds, and asks the API server's code
// about all objects but claims.
func checkComponent(t *testing.T, dir, name string) {
	t.Helper()
	s := stackFor(t, dir)
	d := named(s.deployments, name)
	for what, check := range map[string]func(*appsv1.Deployment) error{
		"ports": s.portsFit, "settings": s.settingsFit, "account": s.accountFits, "end": s.endFits, "memory": s.memoryFits,
		"spread": s.spreadFits, "standard": contained,
	} {
		if err := check(d); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, check := range []func() error{s.servicesFit, s.ingressesFit, s.policiesFit} {
		if err := check(); err != nil {
			t.Error(err)
		}
	}
	var texts []string
	for _, m := range buildFor(t, dir) {
		if !strings.HasPrefix(m.name, "PersistentVolumeClaim ") { // kubeapi does not know claims
			texts = append(texts, string(m.text))
		}
	}
	for i, got := range create(t, texts) {
		if got != "" {
			t.Errorf("got %q, want no complaint about\n%s", got, texts[i])
		}
	}
}

func TestTheFileServicesReachTheirStoreOnly(t *testing.T) {
	checkFurtherWays(t, withFiles, []string{
		"assetsvc to filesvc:http", "filesvc to assets:mongodb", "filesvc to assetsvc:http", "filesvc to dns:dns",
		"filesvc to dns:dns-tcp", "filesvc to monitoring:otlp-grpc", "filesvc to monitoring:otlp-http",
		"gateway to filesvc:http", "monitoring to filesvc:metrics",
	})
}
