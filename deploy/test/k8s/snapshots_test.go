package k8s

import (
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestTheSnapshotsAreOnASharedVolume builds production with the component snapshots.
func TestTheSnapshotsAreOnASharedVolume(t *testing.T) {
	s := stackFor(t, filepath.Join("..", "test", "k8s", "testdata", "snapshots"))
	shared := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	if len(s.claims) != 1 || !slices.Equal(s.claims[0].Spec.AccessModes, shared) {
		t.Fatalf("got the claims %v, want one with ReadWriteMany", s.claims)
	}
	claim := s.claims[0]
	for _, d := range s.deployments {
		var mounted []string
		pod := d.Spec.Template.Spec
		for _, v := range pod.Volumes {
			if v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != claim.Name {
				continue
			}
			for _, m := range pod.Containers[0].VolumeMounts {
				if m.Name == v.Name && !m.ReadOnly {
					mounted = append(mounted, m.MountPath)
				}
			}
		}
		var want []string
		if d.Name == "assetsvc" {
			want = []string{configOf(t, s, pod.Containers[0])["ASSETSVC_SNAPSHOT_DIR"]}
		}
		if !slices.Equal(mounted, want) {
			t.Errorf("%s: got the snapshots at %q, want them at %q", d.Name, mounted, want)
		}
		if claim.Namespace != d.Namespace {
			t.Errorf("%s: got the claim in namespace %q, want %q", d.Name, claim.Namespace, d.Namespace)
		}
		if err := contained(d); err != nil {
			t.Errorf("%s: got %v, want the strictest standard", d.Name, err)
		}
	}
}

// configOf returns the settings that a container gets from its ConfigMap.
func configOf(t *testing.T, s *stack, c corev1.Container) map[string]string {
	t.Helper()
	for _, config := range s.configs {
		if config.Name == c.EnvFrom[0].ConfigMapRef.Name {
			return config.Data
		}
	}
	t.Fatalf("there is no ConfigMap %s", c.EnvFrom[0].ConfigMapRef.Name)
	return nil
}
