// Package redistest gives tests a Redis server of their own: the real one, on a
// free port, as production should have it (every write in the append-only file
// before it is answered).
package redistest

import (
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Server is a Redis server that a test may kill and start again on its data.
type Server struct {
	Addr string // host:port

	dir  string
	args []string
	cmd  *exec.Cmd
}

// startTimeout is how long a server may take until it answers.
const startTimeout = 10 * time.Second

// Start starts a server, which ends with the test. Arguments are settings that
// differ ("--appendonly", "no").
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: listener.Addr().String(), dir: t.TempDir(), args: args}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	t.Cleanup(func() { s.Kill(t) })
	return s
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
	args := append([]string{"--bind", host, "--port", port, "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start redis-server, which these tests need: %v", err)
	}
	deadline := time.Now().Add(startTimeout)
	for {
		err := ask(s.Addr, "PING", "PONG")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not answer: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Flush has the server forget all it knows.
func (s *Server) Flush(t testing.TB) {
	t.Helper()
	if err := ask(s.Addr, "FLUSHALL", "OK"); err != nil {
		t.Errorf("flush Redis: %v", err)
	}
}

// ask sends a command in Redis's own protocol, so that the package needs no
// client, and expects an answer of one word.
func ask(addr, command, want string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if err != nil {
		return err
	}
	if got := string(answer[:n]); got != "+"+want+"\r\n" {
		return fmt.Errorf("it says %q", got)
	}
	return nil
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
