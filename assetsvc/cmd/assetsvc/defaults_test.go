package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc"
	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// TestFlagsHaveTheDefaultsOfTheService compares the defaults of the flags with the values that a Config uses
// for fields that are zero. Both must be the same.
func TestFlagsHaveTheDefaultsOfTheService(t *testing.T) {
	var c commands
	args := []string{"--secret-file", secretFile(t), "--store", "file:x"}
	expect.Get(config.Parse(&c, "assetsvc", "", "ASSETSVC_TEST", args))(t)
	s := c.Serve
	got := []any{s.Service.MaxBody, s.Service.Timeout, s.Service.StoreTimeout, s.Service.StoreLease}
	want := []any{int64(assetsvc.DefaultMaxBody), assetsvc.DefaultTimeout, assetsvc.DefaultStoreTimeout,
		assetsvc.DefaultStoreLease}
	expect.NoDiff(t, cmp.Diff(want, got), "the defaults differ")
}
