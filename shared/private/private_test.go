package private

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

func TestDirectoriesThatOthersMayUse(t *testing.T) {
	for _, c := range []struct {
		name    string
		mode    os.FileMode
		foreign bool   // another user owns the directory
		warns   string // part of the warning; "": none
		refuses bool
	}{
		{"only the owner", 0o700, false, "", false},
		{"less than the owner", 0o500, false, "", false},
		{"others may enter", 0o755, false, "may enter", false},
		{"the group may enter", 0o750, false, "may enter", false},
		{"others may only enter", 0o711, false, "may enter", false},
		{"others may only list", 0o704, false, "may enter", false},
		{"others may write", 0o777, false, "", true},
		{"others may write what they cannot read", 0o703, false, "", true},
		{"a directory that the system shares", 0o777 | os.ModeSticky, false, "may write into", false},
		{"the group may write", 0o770, false, "", true},
		{"the group may write, and others enter", 0o775, false, "", true},
		{"the volume of a pod", 0o775 | os.ModeSetgid, false, "may write into", false},
		{"the volume of a pod that others may write", 0o777 | os.ModeSetgid, false, "", true},
		{"a volume that another user owns", 0o777, true, "may write into", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			expect.OK(t, os.Mkdir(dir, 0o700))
			expect.OK(t, os.Chmod(dir, c.mode))
			if c.foreign {
				dir = foreign(t)
			}
			for _, place := range []string{dir, "file:" + filepath.Join(dir, "assets.db")} {
				var text bytes.Buffer
				err := Check(slog.New(slog.NewTextHandler(&text, nil)), place, place)
				if (err != nil) != c.refuses || err != nil && !strings.Contains(err.Error(), "chmod 700 "+dir) {
					t.Errorf("%s: got %v, want an error: %t", place, err, c.refuses)
				}
				warned := strings.Count(text.String(), "level=WARN")
				if !strings.Contains(text.String(), c.warns) || (warned == 1) != (c.warns != "") || warned > 1 {
					t.Errorf("%s: got the log %q, want one warning with %q", place, &text, c.warns)
				}
			}
		})
	}
}

// foreign returns a directory of the system that everybody may write, and makes this process a user who does not
// own it.
func foreign(t *testing.T) string {
	t.Helper()
	if os.Geteuid() == 0 {
		expect.OK(t, syscall.Seteuid(65534))
		t.Cleanup(func() { expect.OK(t, syscall.Seteuid(0)) })
	}
	return os.TempDir()
}

// TestDirectoriesThatOthersOwnOrMayReplace looks at directories with mode 0700 that are still not this process's alone.
func TestDirectoriesThatOthersOwnOrMayReplace(t *testing.T) {
	for _, c := range []struct {
		name  string
		owner int
		above os.FileMode
		want  string
	}{
		{"nobody else", 0, 0o755, ""},
		{"another owner", 65534, 0o755, "belongs to another user"},
		{"others may write above", 0, 0o777, "may replace"},
		{"the system shares what is above", 0, 0o777 | os.ModeSticky, ""},
	} {
		above := t.TempDir()
		dir := filepath.Join(above, "data")
		expect.OK(t, errors.Join(os.Mkdir(dir, 0o700), os.Chmod(above, c.above)))
		if c.owner != 0 {
			if err := os.Chown(dir, c.owner, -1); err != nil {
				needtest.Missing(t, "chown", err)
			}
		}
		warnings, err := Look(dir)
		if err != nil || (len(warnings) > 0) != (c.want != "") || !strings.Contains(strings.Join(warnings, ""), c.want) {
			t.Errorf("%s: got %q, %v; want a warning with %q", c.name, warnings, err, c.want)
		}
	}
}

func TestPlacesWithoutADirectory(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	warnings, err := Look("", "file:", "mongodb://a,b/registry", "redis://a", "s3+https://host/bucket", absent, "file:"+absent+"/x.db")
	expect.ErrorIf(t, err != nil || len(warnings) > 0, "got %q, %v; want nothing", warnings, err)
}
