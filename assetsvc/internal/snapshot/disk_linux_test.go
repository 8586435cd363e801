package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"asset-registry/shared/disktest"
	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

// TestCopiesThatFillTheDiskLeaveRoomForTheSnapshot makes snapshots on disks that have room for a snapshot, but not
// for its copies. The snapshot must be published each time. It does not matter which of the two writes finds the
// disk full.
// Promises: whole-complete
func TestCopiesThatFillTheDiskLeaveRoomForTheSnapshot(t *testing.T) {
	s := openStore(t)
	for range 300 { // segments of 3 MiB, and copies of more than 8 MiB
		var title strings.Builder
		for range 1250 {
			fmt.Fprintf(&title, "%016x", randtest.Uint64())
		}
		listAsset(t, s, fmt.Sprintf(`,"title":%q`, title.String()))
	}
	for range 3 {
		dir := disktest.New(t, 8)
		k := copying(t, s, dir)
		if _, err := k.Make(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("got %v, want that the disk is full", err)
		}
		m, err := k.Newest()
		if err != nil || m.Assets != 300 {
			t.Fatalf("got a snapshot of %d assets, %v; want one of 300", m.Assets, err)
		}
		for _, segment := range m.Segments {
			f, err := k.Segment(segment.SHA256)
			expect.Must(t, err, "segment %s", segment.SHA256)
			f.Close()
		}
		if manifests, files := copyNames(t, dir); manifests+files != 0 {
			t.Errorf("got %d manifests and %d files of copies, want none", manifests, files)
		}
		expect.ErrorIf(t, !k.lacksCopies(), "got a snapshot with copies, want that they are made later")
	}
}
