package logclient_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/logclient"
	"asset-registry/shared/testing/expect"
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
			expect.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
			policy, err := logclient.ReadPolicy(file)
			expect.ErrorIf(t, !errors.Is(err, c.cause) || (policy == nil) != (c.cause != nil),
				"got %v, %v; want the cause %v", policy, err, c.cause)
		})
	}
	expect.ErrOf(t, fs.ErrNotExist, "without the file")(logclient.ReadPolicy(filepath.Join(t.TempDir(), "none")))
}
