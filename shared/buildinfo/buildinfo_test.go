package buildinfo

import (
	"runtime"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestABuildOfAReleaseHasItsVersion sets the variables that the linker sets for a release. Read must return their
// values.
func TestABuildOfAReleaseHasItsVersion(t *testing.T) {
	version, revision = "0.1.7", "abc"
	defer func() { version, revision = "", "" }()
	expect.Equal(t, Read(), (Info{"0.1.7", "abc", runtime.Version()}), "")
}

func TestABuildNamesTheReleaseOfGo(t *testing.T) {
	got := Read()
	if got.Go != runtime.Version() || got.Version == "" || got.Revision == "" {
		t.Errorf("got %+v, want Go release %s and no empty field", got, runtime.Version())
	}
	if text := got.String(); !strings.Contains(text, runtime.Version()) || strings.Contains(text, "\n") {
		t.Errorf("got %q, want one line with the Go release", text)
	}
}
