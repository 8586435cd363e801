package registry

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"asset-registry/shared/closing"
	"asset-registry/shared/command"
	"asset-registry/shared/testing/expect"
)

// TestTheCauseOfAFailedBackupIsTold lets the running registry fail, before the first byte of a backup is sent and
// later. The command must tell the cause, and leave no file.
func TestTheCauseOfAFailedBackupIsTold(t *testing.T) {
	for name, bytes := range map[string]int{"before the first byte": 0, "later": 8 << 20} {
		dir, err := os.MkdirTemp("", "control") // the path of a socket must be short
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		files{formatFile: format, secretFile: strings.Repeat("s", 32)}.write(t, dir)
		full := func(to func(int64) (io.Writer, error)) error {
			w, err := to(int64(bytes))
			if err == nil {
				_, err = w.Write(make([]byte, bytes))
			}
			return errors.Join(err, &fs.PathError{Op: "read", Path: assetsFile, Err: syscall.ENOSPC})
		}
		var opened closing.List
		socket := controlSocket{dir: dir, snapshots: map[string]snapshot{assetsFile: full}}
		expect.OK(t, serveControl(t.Context(), socket, slog.New(slog.DiscardHandler), &opened))
		file := filepath.Join(t.TempDir(), "backup.tar")
		err = Backup(t.Context(), dir, file, BackupOptions{})
		if said := command.Words(err); !strings.HasSuffix(said, `back up assets.db: "assets.db": the disk is full`) {
			t.Errorf("%s: got %q, want the cause", name, said)
		}
		if left, err := filepath.Glob(file + "*"); err != nil || len(left) > 0 {
			t.Errorf("%s: got the files %v, %v; want none", name, left, err)
		}
		expect.OK(t, opened.Close())
	}
}

func TestTheCauseOfARefusedCallIsTold(t *testing.T) {
	for want, err := range map[string]error{
		"c.sock: permission denied: run the command as root or as the user of the registry": &url.Error{
			Op: "Get", URL: "http://registry/status", Err: &os.SyscallError{Syscall: "connect", Err: syscall.EACCES}},
		"c.sock: the registry broke off: it answers root and its own user": &url.Error{
			Op: "Get", URL: "http://registry/status", Err: io.EOF},
		"no answer came in time": &url.Error{Op: "Get", URL: "http://registry/status", Err: context.DeadlineExceeded},
	} {
		if said := command.Words(inControl("c.sock", err)); !strings.HasPrefix(said, want) {
			t.Errorf("got %q, want %q", said, want)
		}
	}
}

// TestWhatCannotBeCheckedIsNotDamaged checks and backs up a foreign directory, an empty one, one of another format, and as
// another user one without rights. None is damaged, and no backup is begun. A directory that lacks its format is damaged.
func TestWhatCannotBeCheckedIsNotDamaged(t *testing.T) {
	ours := files{formatFile: format, secretFile: strings.Repeat("s", 32), assetsFile: "x", tokensFile: "x"}
	for _, c := range []struct {
		name    string
		has     files
		user    int
		damaged bool
		says    string
	}{
		{"foreign", files{"letter.txt": "x"}, 0, false, "it holds letter.txt and no FORMAT"},
		{"empty", files{}, 0, false, "is empty"},
		{"another format", ours.with(formatFile, "asset-registry data 2"), 0, false, `has format "asset-registry data 2"`},
		{"a format that is no format", ours.with(formatFile, "x"), 0, true, ""},
		{"no rights", ours, 65534, false, "permission"},
		{"damaged", ours, 0, true, ""},
	} {
		dir := t.TempDir()
		c.has.write(t, dir)
		err := as(t, c.user, func() error { return Check(dir, false, io.Discard) })
		if c.user != 0 && os.Geteuid() != 0 {
			continue // only root becomes another user
		}
		if errors.Is(err, ErrDamaged) != c.damaged || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q, damaged: %t", c.name, err, c.says, c.damaged)
		}
		if c.damaged {
			continue
		}
		if c.name == "another format" {
			_, drawn := DrawFiles(t.Context(), dir, nil)
			for of, err := range map[string]error{
				"compact": Compact(dir, io.Discard), "files draw": drawn,
				"backup to a file": Backup(t.Context(), dir, filepath.Join(t.TempDir(), "x.tar"), BackupOptions{}),
			} {
				expect.Says(t, err, c.says, "%s", of)
			}
		}
		into := filepath.Join(t.TempDir(), "backups")
		backup := func() error { return BackupInto(t.Context(), dir, into, Keep{1, 0}, BackupOptions{}, io.Discard) }
		err = as(t, c.user, backup)
		if err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: backup: got %v, want %q and no damage", c.name, err, c.says)
		}
		if _, err := os.Stat(into); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: backup: got the folder of backups, %v; want none", c.name, err)
		}
	}
}

// as calls a function as a user. If this process is not root, it stays the user that it is.
func as(t *testing.T, user int, f func() error) error {
	t.Helper()
	answer := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the end of the goroutine ends this thread, whose user has changed
		if os.Geteuid() == 0 && user != 0 {
			const same = ^uintptr(0)
			if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, same, uintptr(user), same); failed != 0 {
				answer <- failed
				return
			}
		}
		answer <- f()
	}()
	return <-answer
}
