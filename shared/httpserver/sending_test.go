package httpserver

import (
	"bytes"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

// pipes is a listener whose connections a test makes.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// openShut opens a stream of HTTP/2 with a window of zero. It returns a channel that gets the type of each frame about the
// stream; a reset is 3.
func openShut(t *testing.T, handler http.Handler) (frames chan byte) {
	t.Helper()
	client, server := net.Pipe()
	listener := make(pipes, 1)
	listener <- server
	s := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(listener) }() // it ends with ErrServerClosed
	t.Cleanup(func() {
		close(listener)
		client.Close()
		s.Close()
	})
	time.AfterFunc(time.Hour, func() { client.Close() }) // a stream that does not end fails the test
	frames = make(chan byte, 16)
	go func() {
		for {
			head := make([]byte, 9)
			if _, err := io.ReadFull(client, head); err != nil {
				close(frames)
				return
			}
			_, _ = io.CopyN(io.Discard, client, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
			if binary.BigEndian.Uint32(head[5:]) == 1 {
				frames <- head[3]
			}
		}
	}()
	const settings = "\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x04\x00\x00\x00\x00" // the initial window is 0
	const get = "\x00\x00\x06\x01\x05\x00\x00\x00\x01" + "\x82\x86\x84\x41\x01x"         // GET http://x/
	expect.Get(io.WriteString(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings+get))(t)
	return frames
}

// TestAStreamWithAShutWindowEnds answers streams whose windows are shut, with little and with much, at a pace and without
// one. None is open after 15 s, and an answer that only waits for its client ends after a second while many are open.
// Promises: stuck-streams
func TestAStreamWithAShutWindowEnds(t *testing.T) {
	const little, much = 100, 1 << 20
	for _, c := range []struct {
		name    string
		size    int
		isPaced bool
		open    int64
		within  time.Duration
	}{
		{"little", little, false, 0, takeWithin}, {"much", much, false, 0, takeWithin}, {"at a pace", much, true, 0, takeWithin},
		{"little beside many", little, false, manyStreams, takeSoon},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				openStreams.Add(c.open)
				defer openStreams.Add(-c.open)
				engine := NewEngine(Options{
					Name: "test", Log: slog.New(slog.DiscardHandler), Timeout: time.Minute, Edge: true,
					Telemetry: telemetry.New(tracenoop.NewTracerProvider(), noop.NewMeterProvider(), 0),
				})
				engine.GET("/", Handle(func(g *gin.Context) error {
					var to io.Writer = g.Writer
					if c.isPaced {
						to = NewSender(g.Writer, DefaultPace)
					}
					_, _ = to.Write(bytes.Repeat([]byte("x"), c.size)) // it fails when the stream ends
					return nil
				}))
				begun := time.Now()
				for frame := range openShut(t, ending(engine)) {
					if frame == 3 {
						break
					}
				}
				if took := time.Since(begun); took > c.within {
					t.Errorf("got the end after %v, want it within %v", took, c.within)
				}
			})
		})
	}
}
