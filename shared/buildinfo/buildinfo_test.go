package buildinfo

import (
	"runtime"
	"strings"
	"testing"
)

// TestABuildOfAReleaseHasItsVersion sets what the linker sets.
func TestABuildOfAReleaseHasItsVersion(t *testing.T) {
	version = "0.1.7"
	defer func() { version = "" }()
	if got := Read().Version; got != "0.1.7" {
		t.Errorf("got version %q, want 0.1.7", got)
	}
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
