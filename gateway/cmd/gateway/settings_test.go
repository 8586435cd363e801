package main

import (
	"testing"

	"asset-registry/shared/config/configtest"
)

// TestCheckAndServeRefuseTheSame sets each setting of the server to wrong values, by flag, variable and file.
func TestCheckAndServeRefuseTheSame(t *testing.T) {
	configtest.Agree(t, configtest.Server{
		Name: "gateway", Env: "GATEWAY", Command: "serve",
		Settings: func() any { return new(settings) },
		Run:      run,
		Needed:   map[string]string{"secret-file": secretFile(t, 32)},
	})
}
