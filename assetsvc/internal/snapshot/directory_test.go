package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestNothingOutsideIsOpened asks for a file outside of the directory of segments, by a path instead of a hash.
func TestNothingOutsideIsOpened(t *testing.T) {
	k := &Keeper{o: Options{Dir: t.TempDir()}}
	if err := os.MkdirAll(k.segments(), 0o700); err != nil {
		t.Fatal(err)
	}
	const outside = "../secret"
	if err := os.WriteFile(filepath.Join(k.segments(), outside+segmentEnd), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := k.Segment(outside); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, %v; want ErrNone", f, err)
	}
}
