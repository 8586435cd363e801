package picture

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/testing/expect"
)

// TestASignalIsNoVerdict has children that are hit by signals from outside, also by those for which the runtime of Go
// ends with the code 2, and a child that gets no thread. The picture may be drawn later. A picture whose child was killed
// must be drawn when nobody kills the next one.
func TestASignalIsNoVerdict(t *testing.T) {
	arguments := []string{fatal}
	for _, signal := range []syscall.Signal{
		// Without SIGHUP and SIGINT: who starts the tests may have switched them off.
		syscall.SIGKILL, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSEGV,
		syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS,
	} {
		arguments = append(arguments, hit+strconv.Itoa(int(signal)))
	}
	for _, argument := range arguments {
		_, err := drawer(argument).Draw(t.Context(), open(nil))
		if !errors.Is(err, file.ErrEnded) || errors.Is(err, file.ErrNoPicture) {
			t.Errorf("%s: got %v, want an error after which it is tried again", argument, err)
		}
	}
	text := giant(1_000, 1_000, 1_000)
	killed := false
	from := struct {
		io.Reader
		io.Seeker
		io.Closer
	}{Reader: readerFunc(func(p []byte) (int, error) { // the child waits for the bytes
		killed = killed || killChild(t)
		return copy(p, text[:1]), nil
	})}
	if _, err := drawer(Argument).Draw(t.Context(), from); !errors.Is(err, file.ErrEnded) || !killed {
		t.Errorf("killed from outside: %t; got %v, want an error after which it is tried again", killed, err)
	}
	if _, err := drawer(Argument).Draw(t.Context(), open(text)); err != nil {
		t.Errorf("the next child: got %v, want a picture", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// killChild kills the only child of this process, and reports whether there was one.
func killChild(t *testing.T) (found bool) {
	t.Helper()
	stats := expect.Get(filepath.Glob("/proc/[0-9]*/stat"))(t)
	for _, path := range stats {
		text, _ := os.ReadFile(path) // the process may have ended
		_, after, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err == nil {
				err = syscall.Kill(pid, syscall.SIGKILL)
			}
			expect.OK(t, err)
			found = true
		}
	}
	return found
}

// TestABadDiskIsNoVerdict lets the child read its picture from something that cannot be read: a directory.
func TestABadDiskIsNoVerdict(t *testing.T) {
	f := expect.Get(os.Open(t.TempDir()))(t)
	defer f.Close()
	if _, err := drawer(Argument).Draw(t.Context(), f); err == nil || errors.Is(err, file.ErrNoPicture) ||
		errors.Is(err, file.ErrEnded) {
		t.Errorf("got %v, want an error after which it is tried again", err)
	}
}
