package boltstore

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/storetest"
	"asset-registry/shared/disktest"
	"asset-registry/shared/testing/expect"
)

// TestANumberOfAWriteThatFailsIsNotGivenAgain creates an asset on a full disk. It takes one number before the
// creation, and a second number after it. Neither the asset nor the first number is stored, but the second number
// must still follow the first. Once the disk has free space, the next asset makes the second number durable.
func TestANumberOfAWriteThatFailsIsNotGivenAgain(t *testing.T) {
	dir := disktest.New(t, 16)
	path := filepath.Join(dir, "assets.db")
	s, err := Open(path, Options{Now: time.Now})
	expect.OK(t, err)
	defer func() { s.Close() }()
	next := func(want int) {
		t.Helper()
		expect.Value(t, want, "")(s.NextNumber(t.Context(), "2026-11-20"))
	}
	r := registry.Record{ID: storetest.NewID(), Body: make([]byte, 5<<20)}
	free := disktest.Fill(t, dir)
	next(1)
	if _, err := s.Create(t.Context(), r); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("on a full disk: got %v, want %v", err, syscall.ENOSPC)
	}
	next(2)
	free()
	expect.MustOf(t, "with free space")(s.Create(t.Context(), r))
	expect.OK(t, s.Close())
	s, err = Open(path, Options{Now: time.Now})
	expect.OK(t, err)
	next(3)
}
