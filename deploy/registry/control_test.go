package registry

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// TestABackupEndsWhenItsReceiverStops has a receiver that asks for a backup without an end,
// and reads none of it.
func TestABackupEndsWhenItsReceiverStops(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m := moving{w, http.NewResponseController(w), 50 * time.Millisecond}
		for {
			if _, err := m.Write(make([]byte, 1<<20)); err != nil {
				ended <- err
				return
			}
		}
	}))
	defer server.Close()
	receiver, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	if _, err := receiver.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
		}
	case <-time.After(time.Minute):
		t.Error("the backup goes on, want it to end")
	}
}
