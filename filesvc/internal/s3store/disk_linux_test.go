package s3store

import (
	"errors"
	"strings"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/disktest"
	"asset-registry/shared/s3test"
)

// TestAFullSpool fills the disk of uploads. An upload must fail with ErrFull, and work once there is room again.
func TestAFullSpool(t *testing.T) {
	s := open(t, s3test.Start(t, false, "files").Address("files"))
	s.spool = disktest.New(t, 1)
	free := disktest.Fill(t, s.spool)
	if err := s.Put(t.Context(), blob(1), strings.NewReader("x")); !errors.Is(err, file.ErrFull) {
		t.Errorf("got %v, want %v", err, file.ErrFull)
	}
	if _, err := s.Open(t.Context(), blob(1)); !errors.Is(err, file.ErrNotFound) {
		t.Errorf("got %v, want %v", err, file.ErrNotFound)
	}
	free()
	if err := s.Put(t.Context(), blob(1), strings.NewReader("x")); err != nil {
		t.Error(err)
	}
}
