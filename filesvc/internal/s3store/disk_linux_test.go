package s3store

import (
	"strings"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/disktest"
	"asset-registry/shared/s3test"
	"asset-registry/shared/testing/expect"
)

// TestAFullSpool fills the disk of uploads. An upload must fail with ErrFull, and work once there is room again.
func TestAFullSpool(t *testing.T) {
	s := open(t, s3test.Start(t, false, "files").Address("files"))
	s.spool = disktest.New(t, 1)
	free := disktest.Fill(t, s.spool)
	expect.Err(t, s.Put(t.Context(), blob(1), strings.NewReader("x")), file.ErrFull, "")
	expect.ErrOf(t, file.ErrNotFound, "")(s.Open(t.Context(), blob(1)))
	free()
	expect.Try(t, s.Put(t.Context(), blob(1), strings.NewReader("x")))
}
