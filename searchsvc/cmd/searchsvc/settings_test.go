package main

import (
	"path/filepath"
	"testing"

	"asset-registry/shared/config/configtest"
)

// TestCheckAndServeRefuseTheSame sets each setting of the server to wrong values, by flag, variable and file.
func TestCheckAndServeRefuseTheSame(t *testing.T) {
	configtest.Agree(t, configtest.Server{
		Name: "searchsvc", Env: "SEARCHSVC", Command: "serve",
		Settings: func() any { return new(settings) },
		Run:      run,
		Needed:   map[string]string{"data": filepath.Join(t.TempDir(), "index")},
	})
}
