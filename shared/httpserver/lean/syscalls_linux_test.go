package lean

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// calls returns the numbers of system calls by which this process has read and written.
func calls(t *testing.T) (reads, writes int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		needtest.Missing(t, "proc", err)
	}
	var rchar, wchar int
	expect.Get(fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d", &rchar, &wchar, &reads,
		&writes))(t)
	return reads, writes
}

// TestSystemCallsOfARequest counts the reads and writes of this process. The server must make about one read and one
// write for each request. The client is in the same process; its socket blocks, so it adds exactly one write and one
// read for each request.
func TestSystemCallsOfARequest(t *testing.T) {
	body := make([]byte, 4<<10) // as large as an asset
	l, _ := start(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }, Options{})
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	expect.OK(t, err)
	defer unix.Close(client)
	to := l.Addr().(*net.TCPAddr)
	expect.OK(t, unix.Connect(client, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte{127, 0, 0, 1}}))
	const requests = 1000
	request, answer := []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), make([]byte, 16<<10)
	readsBefore, writesBefore := calls(t)
	for range requests {
		expect.Get(unix.Write(client, request))(t)
		if n, err := unix.Read(client, answer); err != nil || n < len(body) {
			t.Fatalf("got %d bytes, %v; want a whole answer", n, err)
		}
	}
	reads, writes := calls(t)
	perRequest := func(n int) float64 { return float64(n)/requests - 1 } // minus 1: the call of the client itself
	// The runtime itself reads and writes now and then, to wake its threads.
	if r, w := perRequest(reads-readsBefore), perRequest(writes-writesBefore); r > 1.2 || w > 1.2 {
		t.Errorf("got %.2f reads and %.2f writes a request, want 1 and 1", r, w)
	} else {
		t.Logf("%.2f reads and %.2f writes a request", r, w)
	}
}
