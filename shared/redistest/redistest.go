// Package redistest gives a test a Redis server on a free port. It runs the real
// redis-server with the settings of production. The server answers a write only
// after the write is in the append-only file.
package redistest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"asset-registry/shared/porttest"
)

// Server is a Redis server that a test can kill and start again with its data.
type Server struct {
	Addr string // host:port

	dir      string
	args     []string
	sentinel string // the settings file of a sentinel; empty for a server
	cmd      *exec.Cmd
}

// startTimeout limits the wait for a server's first answer.
const startTimeout = 10 * time.Second

// Start starts a server that ends with the test. args override settings, such as
// "--appendonly", "no".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{Addr: free(t), dir: t.TempDir(), args: args}
	s.Restart(t)
	t.Cleanup(func() { s.Kill(t) })
	return s
}

// free returns an unused address on this machine.
func free(t testing.TB) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// URL returns the server's address in the form of a store setting.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Restart starts the server after a Kill, with the same address and data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--bind", host, "--port", port, "--dir", s.dir}
	if s.sentinel != "" {
		args = append([]string{s.sentinel, "--sentinel"}, args...)
	} else {
		args = append(args, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
			"--maxmemory-policy", "noeviction", "--repl-diskless-sync-delay", "0") // a replica does not wait for others
		args = append(args, s.args...)
	}
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start redis-server: %v; install it to run this test", err)
	}
	await(t, "wait for redis-server", func() error { return s.says("PING", "+PONG\r\n") })
}

// Flush deletes all data of the server.
func (s *Server) Flush(t testing.TB) {
	t.Helper()
	if err := s.says("FLUSHALL", "+OK\r\n"); err != nil {
		t.Errorf("flush Redis: %v", err)
	}
}

// answer sends a command in Redis's protocol and returns the answer. It uses a TCP
// connection, so the package needs no client library.
func (s *Server) answer(command string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if at := slices.Index(s.args, "--requirepass"); at >= 0 {
		command = "AUTH " + s.args[at+1] + "\r\n" + command
	}
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil { // Redis answers, and then closes the connection
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// Replicate starts a replica of the server, with the server's arguments and args.
// It returns the replica once the replica has all data of the server.
func (s *Server) Replicate(t testing.TB, args ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := Start(t, append(append(slices.Clone(s.args), "--replicaof", host+" "+port), args...)...)
	await(t, "wait for the replica", func() error { return replica.says("INFO replication", "master_link_status:up") })
	if _, err := s.answer("PUBLISH started 1"); err != nil { // there is something to confirm
		t.Fatal(err)
	}
	await(t, "wait until the replica confirms", func() error { // the server tells it nothing before
		answer, err := s.answer("INFO replication")
		if err == nil && (!strings.Contains(answer, "state=online") || strings.Contains(answer, ",offset=0,")) {
			err = fmt.Errorf("got the answer %q, want a replica that is online and has confirmed", answer)
		}
		return err
	})
	return replica
}

// Watch starts a sentinel that makes the server's replica the primary when the server is down. It returns the
// sentinel's address once the sentinel knows the replica. The argument `password` is the password of both servers, or
// "" if they have none.
func (s *Server) Watch(t testing.TB, name, password string) (sentinel string) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\n"+
		"sentinel down-after-milliseconds %[1]s 1000\n"+
		"sentinel failover-timeout %[1]s 5000\n", name, host, port)
	if password != "" {
		settings += fmt.Sprintf("sentinel auth-pass %s %s\n", name, password)
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf") // a file that the sentinel rewrites
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	watcher := &Server{Addr: free(t), dir: t.TempDir(), sentinel: file}
	watcher.Restart(t)
	t.Cleanup(func() { watcher.Kill(t) })
	await(t, "wait for the sentinel to find the replica", func() error {
		return watcher.says("INFO sentinel", "status=ok,address="+s.Addr+",slaves=1")
	})
	return watcher.Addr
}

// says returns nil if the answer to a command contains a text.
func (s *Server) says(command, text string) error {
	answer, err := s.answer(command)
	if err == nil && !strings.Contains(answer, text) {
		err = fmt.Errorf("got the answer %q, want %q in it", answer, text)
	}
	return err
}

// await calls the function `try` until it succeeds, for startTimeout at most.
func await(t testing.TB, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(startTimeout)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Keep keeps a copy of the server's data. The returned function makes the server go back to it: it kills the server,
// replaces its files, and starts it again. It may be called several times.
func (s *Server) Keep(t testing.TB) (goBack func(testing.TB)) {
	t.Helper()
	kept := t.TempDir()
	if err := os.CopyFS(filepath.Join(kept, "data"), os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) {
		t.Helper()
		s.Kill(t)
		if err := os.RemoveAll(s.dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(s.dir, os.DirFS(filepath.Join(kept, "data"))); err != nil {
			t.Fatal(err)
		}
		s.Restart(t)
	}
}

// Hang stops the server's process until Kill. Clients can still connect, but get
// no answers.
func (s *Server) Hang(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server immediately, like a crash.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait() // its error only says that the process was killed
}
