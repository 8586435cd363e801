package registry

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestABackupEndsWhenItsReceiverStops asks for a backup whose data has no end, and reads nothing. The sender must
// give up.
func TestABackupEndsWhenItsReceiverStops(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m := patient(w, 50*time.Millisecond)
		for {
			if _, err := m.Write(make([]byte, 1<<20)); err != nil {
				ended <- err
				return
			}
		}
	}))
	defer server.Close()
	receiver := expect.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
	defer receiver.Close()
	expect.Get(receiver.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")))(t)
	select {
	case err := <-ended:
		expect.Err(t, err, os.ErrDeadlineExceeded, "")
	case <-time.After(time.Minute):
		t.Error("the backup goes on, want it to end")
	}
}

// TestABackupLooksAtTheStatus has a registry that answers with an error page. The page must not be stored as a
// backup.
func TestABackupLooksAtTheStatus(t *testing.T) {
	dir, err := os.MkdirTemp("", "control") // the path of a socket must be short
	expect.OK(t, err)
	defer os.RemoveAll(dir)
	listener := expect.Get(net.Listen("unix", filepath.Join(dir, controlFile)))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not now", http.StatusServiceUnavailable)
	})}
	go server.Serve(listener)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "backup.tar")
	expect.Says(t, Backup(t.Context(), dir, file, BackupOptions{}), "503", "")
	if left, err := filepath.Glob(file + "*"); err != nil || len(left) > 0 {
		t.Errorf("got the files %v, %v; want none", left, err)
	}
}
