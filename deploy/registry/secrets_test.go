package registry_test

import (
	"strings"
	"testing"

	"asset-registry/authsvc"
	"asset-registry/filesvc"
	"asset-registry/gateway"
)

// TestNoFaultOfAnAddressShowsItsPassword configures each service with a public address that has a password and a
// query. The fault must not show the password.
func TestNoFaultOfAnAddressShowsItsPassword(t *testing.T) {
	const address = "https://olha:s3cret@registry.example/?x"
	for name, err := range map[string]error{
		"gateway": gateway.Config{BaseURL: address}.Validate(),
		"authsvc": authsvc.Config{BaseURL: address}.Validate(),
		"filesvc": filesvc.Config{BaseURL: address}.Validate(),
	} {
		if err == nil || !strings.Contains(err.Error(), "base URL") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want a fault of the base URL without the password", name, err)
		}
	}
}
