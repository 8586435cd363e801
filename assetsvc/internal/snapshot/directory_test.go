package snapshot

import (
	"os"
	"path/filepath"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestNothingOutsideIsOpened asks for a file outside of the directory of segments, by a path instead of a hash.
func TestNothingOutsideIsOpened(t *testing.T) {
	k := &Keeper{o: Options{Dir: t.TempDir()}}
	expect.OK(t, os.MkdirAll(k.segments(), 0o700))
	const outside = "../secret"
	expect.OK(t, os.WriteFile(filepath.Join(k.segments(), outside+segmentEnd), nil, 0o600))
	expect.ErrOf(t, ErrNone, "")(k.Segment(outside))
}
