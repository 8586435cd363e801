// Package private checks that other users of a machine stay out of the directories of a program.
package private

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The bits of a mode for users other than the owner.
const (
	othersWrite = 0o022
	others      = 0o077
)

// Check looks at the directories of a program, and logs a warning for each one that other users may enter or write.
// A place is a directory, or "file:" and the path of a file in a directory. Check ignores the address of a server,
// an empty place, and a directory that does not exist. It returns an error for a directory that others may write
// although this process may narrow its mode.
func Check(log *slog.Logger, places ...string) error {
	warnings, err := Look(places...)
	for _, w := range warnings {
		log.Warn(w)
	}
	return err
}

// Print prints the warnings of Check, each as a line.
func Print(w io.Writer, places ...string) error {
	warnings, err := Look(places...)
	for _, warning := range warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	return err
}

// Look returns the warnings and the error of Check.
func Look(places ...string) (warnings []string, err error) {
	seen := map[string]bool{}
	for _, place := range places {
		dir := directory(place)
		if dir == "" || seen[dir] {
			continue
		}
		seen[dir] = true
		warning, refused := look(dir)
		if warning != "" {
			warnings = append(warnings, warning)
		}
		err = errors.Join(err, refused)
	}
	return warnings, err
}

// directory returns the directory of a place, or "" if the place has none.
func directory(place string) string {
	path, isFile := strings.CutPrefix(place, "file:")
	switch {
	case path == "" || !isFile && strings.Contains(place, "://"):
		return ""
	case isFile:
		return filepath.Dir(path)
	}
	return filepath.Clean(path)
}

func look(dir string) (warning string, refused error) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return "", nil // the program that opens the directory reports the error
	}
	if info.Mode().Perm()&others == 0 {
		return lookAround(dir, info), nil
	}
	may := "enter"
	if info.Mode().Perm()&othersWrite != 0 {
		may = "write into"
	}
	says := fmt.Sprintf("other users of this machine may %s the directory %s (mode %04o)", may, dir, info.Mode().Perm())
	if info.Mode().Perm()&othersWrite != 0 && isOurs(info) && !isShared(info.Mode()) {
		return "", fmt.Errorf("%s: run chmod 700 %s", says, dir)
	}
	return says, nil
}

// lookAround returns the warning for a directory with a narrow mode that another user owns or may replace.
func lookAround(dir string, info os.FileInfo) string {
	if is, ok := info.Sys().(*syscall.Stat_t); ok && is.Uid != 0 && int(is.Uid) != os.Geteuid() {
		return fmt.Sprintf("the directory %s belongs to another user (id %d), who may read and change it", dir, is.Uid)
	}
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil || above.Mode().Perm()&0o002 == 0 || above.Mode()&os.ModeSticky != 0 {
		return ""
	}
	return fmt.Sprintf("other users of this machine may replace the directory %s (mode %04o of %s)", dir,
		above.Mode().Perm(), filepath.Dir(dir))
}

// isOurs reports whether this process may change the mode.
func isOurs(info os.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && (os.Geteuid() == 0 || int(is.Uid) == os.Geteuid())
}

// isShared reports whether a mode is meant for others, so that the process must leave it. The sticky bit is on the
// directories that a system shares, such as /tmp. Kubernetes sets the other mode at each start for the group of a pod
// (fsGroup), also for directories that the program has made in the volume.
func isShared(mode os.FileMode) bool {
	return mode&os.ModeSticky != 0 || mode&os.ModeSetgid != 0 && mode.Perm()&0o002 == 0
}
