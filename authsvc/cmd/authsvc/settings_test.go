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
	configtest.Agree(t, configtest.Server{
		Name: "authsvc", Env: "AUTHSVC", Command: "serve",
		Settings: func() any { return new(commands) },
		Run:      run,
		Needed:   map[string]string{"secret-file": secretFile(t), "store": "file:" + filepath.Join(t.TempDir(), "a.db")},
	})
}

func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(strings.Repeat("s", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
