package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestFactsAreThoseOfTheOtherImages checks that this program and `make images` use the same SBOM tool and the same
// user.
func TestFactsAreThoseOfTheOtherImages(t *testing.T) {
	for file, want := range map[string]string{
		"../images/build.sh": "SBOM=" + sbomTool + "\n", "../images/Dockerfile": "USER " + user + "\n",
	} {
		text := expect.Get(os.ReadFile(file))(t)
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: got no line %q, want it", file, want)
		}
	}
}

func TestAReleaseThatCannotBeMadeIsRefused(t *testing.T) {
	full := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	for _, c := range []struct {
		name, says string
		args       []string
	}{
		{"no version", "three numbers", nil},
		{"two numbers", "three numbers", []string{"-version", "0.1"}},
		{"a letter", "three numbers", []string{"-version", "v0.1.0"}},
		{"a suffix", "three numbers", []string{"-version", "0.1.0-rc.1"}},
		{"a leading zero", "three numbers", []string{"-version", "0.01.0"}},
		{"a folder with files", "is not empty", []string{"-version", "0.1.0", "-out", full}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Says(t, run(t.Context(), c.args), c.says, "")
		})
	}
}

// TestAKeyIsMadeOnce signs with a new key, and then with the key that the file has. Both keys must be equal.
func TestAKeyIsMadeOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys", "release.key")
	first := expect.Get(signingKey(file))(t)
	second, err := signingKey(file)
	if err != nil || second.KeyHash() != first.KeyHash() || second.Name() != keyName {
		t.Errorf("got the key %v, %v, want the first one", second, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file of mode 0600", info, err)
	}
	expect.OK(t, os.WriteFile(file, []byte("x"), 0o600))
	if got, err := signingKey(file); err == nil {
		t.Errorf("got %v for a damaged file, want an error", got)
	}
}
