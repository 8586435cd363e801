package registry

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestTheControlSocketIsPrivate opens the socket under each kind of umask. Its mode must be 0600 before it is used.
func TestTheControlSocketIsPrivate(t *testing.T) {
	for _, umask := range []int{0, 0o002, 0o022, 0o077, 0o777} {
		_, path := openControl(t, umask)
		info := expect.Get(os.Stat(path))(t)
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("umask %04o: got a socket of mode %04o, want 0600", umask, got)
		}
	}
}

// TestTheControlSocketKnowsItsUser lets everybody open the socket, as a mistaken chmod does. Another user must get no
// answer; the own user must get one.
func TestTheControlSocketKnowsItsUser(t *testing.T) {
	listener, path := openControl(t, 0)
	expect.OK(t, errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o666)))
	own := os.Geteuid()
	if own != 0 { // the test cannot become another user, so another user owns the socket
		listener.user++
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "hello")
			conn.Close()
		}
	}()
	const nobody = 65534
	expect.Equal(t, heard(t, path, nobody), "", "another user, the answer")
	if own == 0 {
		expect.Equal(t, heard(t, path, own), "hello", "the own user, the answer")
	}
}

// openControl opens a control socket under a umask.
func openControl(t *testing.T, umask int) (ownListener, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "control") // the path of a socket must be short
	expect.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, controlFile)
	defer syscall.Umask(syscall.Umask(umask))
	listener := expect.Get(listenControl(t.Context(), path))(t)
	t.Cleanup(func() { listener.Close() })
	return listener.(ownListener), path
}

// heard returns what a user reads from the socket. If this process is not root, it stays the user that it is.
func heard(t *testing.T, path string, user int) string {
	t.Helper()
	var answer string
	err := as(t, user, func() error {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn) // a connection that was refused may end with an error
		answer = string(text)
		return nil
	})
	expect.ErrorIf(t, err != nil, "user %d: %v", user, err)
	return answer
}
