package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/authsvc"
	"asset-registry/shared/config"
)

// TestFlagsHaveTheDefaultsOfTheService compares the defaults of the flags with what Config uses for fields that
// are zero.
func TestFlagsHaveTheDefaultsOfTheService(t *testing.T) {
	var c commands
	args := []string{"--secret-file", "x", "--store", "file:x"}
	if _, err := config.Parse(&c, "authsvc", "", "AUTHSVC_TEST", args); err != nil {
		t.Fatal(err)
	}
	got := []any{c.Serve.Service.Timeout, c.Serve.Service.TransferLifetime}
	if diff := cmp.Diff([]any{authsvc.DefaultTimeout, authsvc.DefaultTransferLifetime}, got); diff != "" {
		t.Errorf("the defaults differ (-want +got):\n%s", diff)
	}
}
