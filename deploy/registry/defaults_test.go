package registry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/gateway"
	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// TestFlagsHaveTheDefaultsOfTheServices checks that each flag has the same default as the service that it configures.
// A service uses its default for a zero field of its Config. If services share a flag, their defaults must be equal.
func TestFlagsHaveTheDefaultsOfTheServices(t *testing.T) {
	var c Config
	expect.Get(config.Parse(&c, "registry", "", "REGISTRY_TEST", nil))(t)
	got := map[string]any{
		"body of the gateway": c.MaxBody, "body of the asset service": c.MaxBody,
		"timeout of the gateway": c.Timeout, "timeout of the asset service": c.Timeout,
		"lifetime of transfers": c.TransferLifetime,
		"requests":              c.Settings.MaxConcurrent, "streams": c.Settings.ClientStreams,
		"segments": c.Settings.ClientSegments,
	}
	want := map[string]any{
		"body of the gateway": int64(gateway.DefaultMaxBody), "body of the asset service": int64(assetsvc.DefaultMaxBody),
		"timeout of the gateway": gateway.DefaultTimeout, "timeout of the asset service": assetsvc.DefaultTimeout,
		"lifetime of transfers": time.Duration(authsvc.DefaultTransferLifetime),
		"requests":              gateway.DefaultMaxConcurrent, "streams": gateway.DefaultClientStreams,
		"segments": gateway.DefaultClientSegments,
	}
	expect.NoDiff(t, cmp.Diff(want, got), "the defaults differ")
}
