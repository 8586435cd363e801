package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/config/configtest"
)

// TestCheckAndServeRefuseTheSame sets each setting of the server to wrong values, by flag, variable and file.
func TestCheckAndServeRefuseTheSame(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	configtest.Agree(t, configtest.Server{
		Name: "filesvc", Env: "FILESVC", Command: "serve",
		Settings: func() any { return new(settings) },
		Run:      run,
		Needed: map[string]string{
			"secret-file": secret, "store": "file:" + filepath.Join(t.TempDir(), "a.db"), "data": t.TempDir(),
		},
	})
}
