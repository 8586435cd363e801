package boltfile

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestABatchOnADiskThatHangs holds the lock of changes, as a change does that waits for its disk. Further changes must
// be refused once their contexts end, and be made once the disk goes on.
func TestABatchOnADiskThatHangs(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "file"), Options{Format: "test", Buckets: [][]byte{bigBucket}})
	expect.OK(t, err)
	defer f.Close()
	f.writing.Lock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	made := make(chan struct{})
	err = f.Batch(ctx, func(*bbolt.Tx) error { close(made); return nil })
	expect.ErrorIf(t, fault.KindOf(err) != fault.Unavailable, "got %v, want a fault of kind Unavailable", err)
	f.writing.Unlock()
	<-made
}
