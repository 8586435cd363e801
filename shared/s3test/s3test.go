// Package s3test gives a test an object store with the API of S3. The store is versitygw, a program of another project.
// It keeps its objects in a directory.
package s3test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

// startTimeout limits the wait for the first connection.
const startTimeout = 20 * time.Second

// Server is an object store that a test can kill and start again with its data. The programs and the test
// itself find its credentials in the environment.
type Server struct {
	Addr string // host and port
	Dir  string // the directory of the data; each bucket is a directory in it, and each object is a file

	tb      testing.TB
	program string
	args    []string
	cmd     *exec.Cmd
}

// Environment has the credentials, in the form of os.Environ.
var Environment = []string{"AWS_ACCESS_KEY_ID=tester", "AWS_SECRET_ACCESS_KEY=secret-of-the-tests"}

// Start starts a server that ends with the test, and makes buckets. If versions is true, the buckets keep old
// versions of objects.
func Start(tb testing.TB, versions bool, buckets ...string) *Server {
	tb.Helper()
	for _, pair := range Environment {
		name, value, _ := strings.Cut(pair, "=")
		tb.Setenv(name, value)
	}
	return StartIn(tb, tb.TempDir(), versions, buckets...)
}

// StartIn is like Start, but keeps the data in dir. It sets no environment variables, so a test that is not allowed to
// set them can call it.
func StartIn(tb testing.TB, dir string, versions bool, buckets ...string) *Server {
	tb.Helper()
	addr, err := porttest.FreeAddr()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Addr: addr, Dir: filepath.Join(dir, "objects"), tb: tb, program: needtest.Tool(tb, "versitygw")}
	sidecar := filepath.Join(dir, "sidecar")
	s.args = []string{"--quiet", "--port", addr, "posix", "--sidecar", sidecar}
	made := []string{sidecar, s.Dir}
	if versions {
		old := filepath.Join(dir, "versions")
		s.args, made = append(s.args, "--versioning-dir", old), append(made, old)
	}
	for _, b := range buckets {
		made = append(made, filepath.Join(s.Dir, b))
	}
	for _, d := range made {
		if err := os.MkdirAll(d, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	s.Restart()
	tb.Cleanup(s.Kill)
	return s
}

// Address returns the address of a bucket, or of a prefix in it, as a setting of the registry.
func (s *Server) Address(bucket string) string { return "s3+http://" + s.Addr + "/" + bucket }

// Restart starts the server after a Kill, with the same address and data.
func (s *Server) Restart() {
	s.tb.Helper()
	s.cmd = exec.Command(s.program, append(s.args, s.Dir)...)
	s.cmd.Env = append(os.Environ(),
		"ROOT_ACCESS_KEY_ID="+value(Environment[0]), "ROOT_SECRET_ACCESS_KEY="+value(Environment[1]))
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		s.tb.Fatalf("start the object store: %v", err)
	}
	for end := time.Now().Add(startTimeout); ; {
		conn, err := net.Dial("tcp", s.Addr)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) || !sleep.For(s.tb.Context(), 10*time.Millisecond) {
			s.tb.Fatalf("the object store does not answer: %v", err)
		}
	}
}

func value(pair string) string {
	_, v, _ := strings.Cut(pair, "=")
	return v
}

// Kill ends the server immediately, like a crash.
func (s *Server) Kill() {
	s.tb.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil {
		s.tb.Error(err)
	}
	_ = s.cmd.Wait() // its error only says that the process was killed
}
