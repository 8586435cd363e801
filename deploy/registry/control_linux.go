package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

const socketMode = 0o600

// listenControl opens a Unix socket of mode 0600. No umask and no list of access rights of the directory opens it to
// others, not even for a moment: the socket has the mode before it has a name.
func listenControl(ctx context.Context, path string) (net.Listener, error) {
	private := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
		var failed error
		err := socket.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), socketMode) })
		return errors.Join(err, failed)
	}}
	listener, err := private.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	err = os.Chmod(path, socketMode) // a narrow umask has closed the socket to its own user
	info, unknown := os.Stat(path)
	if err = errors.Join(err, unknown); err == nil && info.Mode().Perm() != socketMode {
		err = fmt.Errorf("the file system gives %s the mode %04o", path, info.Mode().Perm())
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return ownListener{listener.(*net.UnixListener), os.Geteuid()}, nil
}

// ownListener accepts the connections of one user and of root. It closes others.
type ownListener struct {
	*net.UnixListener
	user int
}

func (l ownListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if peer, err := userOf(conn); err == nil && (peer == l.user || peer == 0) {
			return conn, nil
		}
		conn.Close()
	}
}

// userOf returns the user who has opened a connection.
func userOf(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
