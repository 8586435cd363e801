package rawsocket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// pair returns the two ends of a connection.
func pair(t testing.TB) (near, far *Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dialed.Close()
		accepted.Close()
	})
	return New(dialed).(*Conn), New(accepted).(*Conn)
}

// TestConn runs the suite of the Go project for connections: deadlines, closing, and use by many
// goroutines.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (near, far net.Conn, stop func(), err error) {
		near, far = pair(t)
		return near, far, func() { near.Close(); far.Close() }, nil
	})
}

func TestABodyLargerThanTheSocketsArrivesWhole(t *testing.T) {
	near, far := pair(t)
	for _, size := range []int{1, maxWrite, maxWrite + 1, 16 << 20} {
		sent := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
		failed := make(chan error, 1)
		go func() {
			for rest := sent; len(rest) > 0; {
				n, err := near.Write(rest[:min(len(rest), max(size/3, 1))])
				if err != nil {
					failed <- err
					return
				}
				rest = rest[n:]
			}
			failed <- nil
		}()
		got := make([]byte, size)
		if _, err := io.ReadFull(far, got); err != nil {
			t.Fatalf("%d bytes: read: got %v, want nil", size, err)
		}
		if err := <-failed; err != nil {
			t.Errorf("%d bytes: write: got %v, want nil", size, err)
		}
		if !bytes.Equal(got, sent) {
			t.Errorf("%d bytes: got other bytes than were sent", size)
		}
	}
}

// TestErrorsAreThoseOfNet compares the errors with those of net for the same faults.
func TestErrorsAreThoseOfNet(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(near, far *Conn)
		want  error
	}{
		{"the peer closes", func(_, far *Conn) { far.Close() }, io.EOF},
		{"a reset", func(_, far *Conn) { far.SetLinger(0); far.Close() }, syscall.ECONNRESET},
		{"closed here", func(near, _ *Conn) { near.Close() }, net.ErrClosed},
		{"a deadline", func(near, _ *Conn) { near.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts := map[bool]string{}
			for _, raw := range []bool{false, true} {
				near, far := pair(t)
				reader := io.Reader(near.TCPConn)
				if raw {
					reader = near
				}
				c.fault(near, far)
				_, err := reader.Read(make([]byte, 1))
				if !errors.Is(err, c.want) {
					t.Errorf("raw %t: got %v, want %v", raw, err, c.want)
				}
				if failure, is := errors.AsType[*net.OpError](err); is {
					texts[raw] = failure.Op + " " + failure.Net + " " + failure.Err.Error()
				}
			}
			if texts[true] != texts[false] {
				t.Errorf("got the error %q, want that of net, %q", texts[true], texts[false])
			}
		})
	}
}

func TestAFullSocketWaitsForTheReader(t *testing.T) {
	near, far := pair(t)
	if err := near.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for {
		n, err := near.Write(make([]byte, maxWrite))
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatalf("got %v, want the end of the deadline", err)
		}
	}
	near.CloseWrite()
	if got, err := io.Copy(io.Discard, far); got != int64(sent) || err != nil {
		t.Errorf("got %d bytes, %v; want the %d that were written", got, err, sent)
	}
}
