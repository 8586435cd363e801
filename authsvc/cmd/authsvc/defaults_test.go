package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/authsvc"
	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// TestFlagsHaveTheDefaultsOfTheService compares the defaults of the flags with what Config uses for fields that
// are zero.
func TestFlagsHaveTheDefaultsOfTheService(t *testing.T) {
	var c commands
	args := []string{"--secret-file", secretFile(t), "--store", "file:x"}
	expect.Get(config.Parse(&c, "authsvc", "", "AUTHSVC_TEST", args))(t)
	got := []any{c.Serve.Service.Timeout, c.Serve.Service.TransferLifetime}
	expect.NoDiff(t, cmp.Diff([]any{authsvc.DefaultTimeout, authsvc.DefaultTransferLifetime}, got), "the defaults")
}
