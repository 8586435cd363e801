// Package mongotest gives a test a server that speaks MongoDB's protocol. This is
// the server of MONGODB_URI. If MONGODB_URI is not set, it is the rig
// deploy/test/rig/devmongo.
package mongotest

import (
	"context"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

// startTimeout limits the wait for the rig's first connection.
const startTimeout = 20 * time.Second

// Server is a MongoDB server or the rig.
type Server struct {
	// Real is true for the server of MONGODB_URI. It is fast, keeps its data after
	// the test, and cannot be killed.
	Real bool
	Addr string // host and port; empty for a real server

	uri, binary, dir string
	cmd              *exec.Cmd
}

// Start returns the real server, or builds and starts the rig. The rig ends with
// the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if uri := os.Getenv("MONGODB_URI"); uri != "" {
		return &Server{Real: true, uri: uri}
	}
	addr, err := porttest.FreeAddr()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Addr: addr, binary: Build(tb), dir: tb.TempDir()}
	s.uri = "mongodb://" + s.Addr
	s.Restart(tb)
	tb.Cleanup(func() { s.Kill(tb) })
	return s
}

// URI returns the URI of a database on the server.
func (s *Server) URI(tb testing.TB, database string) string {
	tb.Helper()
	u, err := url.Parse(s.uri)
	if err != nil {
		tb.Fatal("MONGODB_URI is malformed; name only one host")
	}
	u.Path = "/" + database
	return u.String()
}

// Restart starts the rig after a Kill, with the same address and data.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.cmd = exec.Command(s.binary, "-addr", s.Addr, "-data", s.dir)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		tb.Fatalf("start MongoDB rig: %v", err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	for {
		conn, err := net.Dial("tcp", s.Addr)
		if err == nil {
			conn.Close()
			return
		}
		if !sleep.For(ctx, 10*time.Millisecond) {
			tb.Fatalf("the MongoDB rig does not answer: %v", err)
		}
	}
}

// Kill ends the rig at once, like a crash.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil {
		tb.Error(err)
	}
	_ = s.cmd.Wait() // returns that the process was killed
}

// Build returns the path of the rig's program, and builds the program if it is
// missing. deploy/test/tool.sh builds it as a module outside the workspace,
// because the rig has hundreds of dependencies.
func Build(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	tool := filepath.Join("deploy", "test", "tool.sh")
	for !exists(filepath.Join(dir, tool)) { // until the root of the project
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatalf("no %s above the working directory", tool)
		}
		dir = up
	}
	cmd := exec.Command(filepath.Join(dir, tool), "devmongo")
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		tb.Fatalf("build MongoDB rig: %v", err)
	}
	return strings.TrimSpace(string(path))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
