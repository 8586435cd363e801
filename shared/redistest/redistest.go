// Package redistest gives tests a Redis server of their own: the real one, on a
// free port, as production should have it (every write in the append-only file
// before it is answered).
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
)

// Server is a Redis server that a test may kill and start again on its data.
type Server struct {
	Addr string // host:port

	dir      string
	args     []string
	sentinel string // its file of settings, if it is a sentinel
	cmd      *exec.Cmd
}

// startTimeout is how long a server may take until it answers.
const startTimeout = 10 * time.Second

// Start starts a server, which ends with the test. Arguments are settings that
// differ ("--appendonly", "no").
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{Addr: free(t), dir: t.TempDir(), args: args}
	s.Restart(t)
	t.Cleanup(func() { s.Kill(t) })
	return s
}

// free returns an address that nobody listens on.
func free(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// URL is the server's address as a store setting.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Restart starts the server after a Kill, on the same address and data.
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
		args = append(args, "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
		args = append(args, s.args...)
	}
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start redis-server, which these tests need: %v", err)
	}
	await(t, "redis-server does not answer", func() error { return s.says("PING", "+PONG\r\n") })
}

// Flush has the server forget all it knows.
func (s *Server) Flush(t testing.TB) {
	t.Helper()
	if err := s.says("FLUSHALL", "+OK\r\n"); err != nil {
		t.Errorf("flush Redis: %v", err)
	}
}

// answer sends a command in Redis's own protocol, so that the package needs no
// client, and returns the answer.
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
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil { // it answers, and closes
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// Replicate starts a server that copies s, with the same arguments and those
// given, and returns it once the copy is complete.
func (s *Server) Replicate(t testing.TB, args ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := Start(t, append(append(slices.Clone(s.args), "--replicaof", host+" "+port), args...)...)
	await(t, "the replica's copy", func() error { return replica.says("INFO replication", "master_link_status:up") })
	return replica
}

// Watch starts a sentinel that makes the replica of s the primary when s is down,
// and returns its address once it knows the replica. Both servers have the
// password, "" for none.
func (s *Server) Watch(t testing.TB, name, password string) (sentinel string) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 1000\nsentinel failover-timeout %s 5000\n", name, host, port, name, name)
	if password != "" {
		settings += fmt.Sprintf("sentinel auth-pass %s %s\n", name, password)
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf") // which the sentinel writes to
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	watcher := &Server{Addr: free(t), dir: t.TempDir(), sentinel: file}
	watcher.Restart(t)
	t.Cleanup(func() { watcher.Kill(t) })
	await(t, "the sentinel's knowledge of the replica", func() error { return watcher.says("INFO sentinel", "status=ok,address="+s.Addr+",slaves=1") })
	return watcher.Addr
}

// says tells whether the answer to a command holds a text.
func (s *Server) says(command, text string) error {
	answer, err := s.answer(command)
	if err == nil && !strings.Contains(answer, text) {
		err = fmt.Errorf("it says %q, not %q", answer, text)
	}
	return err
}

// await tries until it succeeds, for startTimeout.
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

// Hang makes the server take connections and answer nothing, until Kill.
func (s *Server) Hang(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server at once, as a crash would.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.cmd.Wait() // says that it was killed
}
