package main

import (
	"path/filepath"
	"testing"

	"asset-registry/shared/config/configtest"
)

// TestCheckAndServeRefuseTheSame sets each setting of the server to wrong values, by flag, variable and file.
func TestCheckAndServeRefuseTheSame(t *testing.T) {
	dir := t.TempDir()
	for command, needed := range map[string]map[string]string{
		"serve":  {"data": filepath.Join(dir, "data")},
		"mirror": {"data": filepath.Join(dir, "copy"), "of": "http://127.0.0.1:1"},
	} {
		configtest.Agree(t, configtest.Server{
			Name: "registry", Env: "REGISTRY", Command: command,
			Settings: func() any { return new(commands) },
			Run:      run,
			Needed:   needed,
			IsLarge:  true,
		})
	}
}
