package logclient_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/logclient"
	"asset-registry/shared/translog"
)

func TestReadPolicy(t *testing.T) {
	for _, c := range []struct {
		name, text string
		cause      error // nil: the policy is valid
	}{
		{"without witnesses", "quorum none\n", nil},
		{"a malformed line", "quorum\n", translog.ErrPolicy},
		{"a file that is too large", strings.Repeat("#\n", translog.MaxPolicy), translog.ErrPolicy},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "policy")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			policy, err := logclient.ReadPolicy(file)
			if !errors.Is(err, c.cause) || (policy == nil) != (c.cause != nil) {
				t.Errorf("got %v, %v; want the cause %v", policy, err, c.cause)
			}
		})
	}
	if _, err := logclient.ReadPolicy(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: got %v, want fs.ErrNotExist", err)
	}
}
