// Package mongotest gives a test a server that speaks MongoDB's protocol. This is
// the server of MONGODB_URI. If MONGODB_URI is not set, it is the rig
// deploy/test/rig/devmongo.
package mongotest

import (
	"cmp"
	"context"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

// startTimeout limits the wait for the rig's first connection.
const startTimeout = 20 * time.Second

// Server is a MongoDB server or the rig.
type Server struct {
	// Real is true for the server of MONGODB_URI. Such a server is fast, keeps its
	// data after the test, and cannot be killed.
	Real bool
	Addr string // host and port; empty for a real server

	uri, binary, dir string
	run              string // on a real server, the name of each database begins with this text
	cmd              *exec.Cmd
}

// RunVariable is the name of an environment variable. On a real server, the names of all databases of a run begin
// with its value. The program that sets the variable also drops these databases (deploy/test/cmd/mongodrop).
const RunVariable = "MONGODB_RUN"

// Start returns the real server, or builds and starts the rig. The rig ends with
// the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	if uri := os.Getenv("MONGODB_URI"); uri != "" {
		return &Server{Real: true, uri: uri, run: cmp.Or(os.Getenv(RunVariable), strings.ToLower(rand.Text()[:8])) + "-"}
	}
	addr, err := porttest.FreeAddr()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Addr: addr, binary: needtest.Tool(tb, "devmongo"), dir: tb.TempDir()}
	s.uri = "mongodb://" + s.Addr
	s.Restart(tb)
	tb.Cleanup(func() { s.Kill(tb) })
	return s
}

// address matches the address of a MongoDB store: scheme and user, hosts, database and options.
var address = regexp.MustCompile(`^(mongodb(?:\+srv)?://(?:[^/@]*@)?)([^/@?]+)(?:/([^/?]*)(?:\?(.*))?)?$`)

// parts returns the parts of an address of MongoDB.
func parts(tb testing.TB, uri string) (user, hosts, database, options string) {
	tb.Helper()
	found := address.FindStringSubmatch(uri)
	if found == nil {
		tb.Fatal("the address of MongoDB is malformed, want mongodb://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?OPTIONS")
	}
	return found[1], found[2], found[3], found[4]
}

// URI returns the address of a database on the server, with all hosts and options of MONGODB_URI. On a real
// server the database's name begins with the name of the run, so runs do not share databases. A user that is
// defined in the database of MONGODB_URI can still log in.
func (s *Server) URI(tb testing.TB, database string) string {
	tb.Helper()
	user, hosts, before, options := parts(tb, s.uri)
	if before != "" && strings.Contains(user, "@") && !strings.Contains(strings.ToLower(options), "authsource=") {
		options = strings.TrimPrefix(options+"&authSource="+before, "&")
	}
	uri := user + hosts + "/" + s.run + database
	if options != "" {
		uri += "?" + options
	}
	return uri
}

// Through returns the address uri with addr as its only host, and the hosts that uri had. The program that listens
// on addr must pass all bytes on to these hosts. The option directConnection in the new address keeps the driver
// from asking other members of the replica set.
func Through(tb testing.TB, uri, addr string) (through, host string) {
	tb.Helper()
	user, hosts, database, _ := parts(tb, uri)
	return user + addr + "/" + database + "?directConnection=true", hosts
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

// Kill ends the rig immediately, like a crash.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil {
		tb.Error(err)
	}
	_ = s.cmd.Wait() // its error only says that the process was killed
}
