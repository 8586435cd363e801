package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/gateway"
	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// TestFlagsHaveTheDefaultsOfTheService compares the defaults of the flags with what Config uses for fields that
// are zero.
func TestFlagsHaveTheDefaultsOfTheService(t *testing.T) {
	var s settings
	expect.Get(config.Parse(&s, "gateway", "", "GATEWAY_TEST", []string{"--secret-file", secretFile(t, 32)}))(t)
	c := s.Service
	got := []any{c.MaxBody, c.Timeout, c.KeyTTL, c.Settings.MaxConcurrent, c.Settings.ClientStreams,
		c.Settings.ClientSegments}
	want := []any{int64(gateway.DefaultMaxBody), gateway.DefaultTimeout, gateway.DefaultKeyTTL,
		gateway.DefaultMaxConcurrent, gateway.DefaultClientStreams, gateway.DefaultClientSegments}
	expect.NoDiff(t, cmp.Diff(want, got), "the defaults")
}
