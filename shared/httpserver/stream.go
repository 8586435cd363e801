package httpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// Unlimited is a result of Options.TimeoutOf: the request has no deadline.
const Unlimited time.Duration = -1

// longKey is the key under which Long marks a request.
const longKey = "long"

// Long marks a request that waits for events. Its duration is not measured, because it says nothing about the
// service.
func Long(c *gin.Context) { c.Set(longKey, true) }

// ErrAttached is returned by Detach for a connection that also carries other requests (HTTP/2), or whose client
// does not know chunks (HTTP/1.0).
var ErrAttached = errors.New("the connection cannot be detached")

// Detached is an answer that goes on after its handler has returned. The memory of the handler and of the server's
// buffers is then free. So a stream that waits needs only the memory of its goroutine. Detached is an
// http.ResponseWriter whose header was already sent.
type Detached struct {
	conn   net.Conn
	gone   chan struct{} // closed when the client has left
	buffer []byte        // bytes that are not sent yet; nil: no buffer is in use
}

// flushAt is the size at which a buffer is sent without waiting for Flush.
const flushAt = 16 << 10

// chunkHead is the number of bytes that a buffer keeps free for the size of a chunk.
const chunkHead = 6

// buffers holds the buffers of Detached.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, flushAt+4<<10); return &b }}

// Detach sends the status 200 and the header of w, and takes the connection of the request from the server. It
// calls the function `left` once: when the client has left, or after Close. The caller must call Close. After
// ErrAttached, w can be used as before.
func Detach(r *http.Request, w http.ResponseWriter, left func()) (*Detached, error) {
	if r.ProtoMajor != 1 || r.ProtoMinor == 0 {
		return nil, ErrAttached
	}
	conn, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, errors.Join(ErrAttached, err)
	}
	d := &Detached{conn: conn, gone: make(chan struct{})}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	header := w.Header().Clone()
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	header.Set("Transfer-Encoding", "chunked")
	header.Set("Connection", "close")
	head := bufio.NewWriterSize(conn, 2<<10)
	_, _ = head.WriteString("HTTP/1.1 200 OK\r\n") // Flush returns the error of all writes
	_ = header.Write(head)
	_, _ = head.WriteString("\r\n")
	if err := head.Flush(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go d.watch(rest.Reader.Buffered() > 0, left)
	return d, nil
}

// watch waits until the client leaves. A client that sends something on this connection
// does not wait for the end of the answer, so it counts as gone.
func (d *Detached) watch(hasSent bool, left func()) {
	defer close(d.gone)
	defer left()
	if !hasSent {
		_, _ = d.conn.Read(make([]byte, 1)) // any result means that the client has left
	}
}

// Header implements http.ResponseWriter. The header is sent already.
func (d *Detached) Header() http.Header { return http.Header{} }

// WriteHeader implements http.ResponseWriter. The status is sent already.
func (d *Detached) WriteHeader(int) {}

// SetWriteDeadline is for an http.ResponseController.
func (d *Detached) SetWriteDeadline(end time.Time) error { return d.conn.SetWriteDeadline(end) }

// SetReadDeadline is for an http.ResponseController. It does nothing, because reads end when the client leaves.
func (d *Detached) SetReadDeadline(time.Time) error { return nil }

func (d *Detached) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		if d.buffer == nil {
			d.buffer = (*buffers.Get().(*[]byte))[:chunkHead]
		}
		n := min(len(p)-sent, chunkHead+flushAt-len(d.buffer))
		d.buffer = append(d.buffer, p[sent:sent+n]...)
		sent += n
		if len(d.buffer) == chunkHead+flushAt {
			if err := d.FlushError(); err != nil {
				return sent, err
			}
		}
	}
	return sent, nil
}

// FlushError is for an http.ResponseController.
func (d *Detached) FlushError() error {
	if d.buffer == nil {
		return nil
	}
	const digits = "0123456789abcdef"
	size := len(d.buffer) - chunkHead
	for i := chunkHead - 3; i >= 0; i-- {
		d.buffer[i] = digits[size&15]
		size >>= 4
	}
	d.buffer[chunkHead-2], d.buffer[chunkHead-1] = '\r', '\n'
	d.buffer = append(d.buffer, '\r', '\n')
	_, err := d.conn.Write(d.buffer)
	d.release()
	return err
}

// release gives the buffer back.
func (d *Detached) release() {
	if d.buffer != nil {
		buffer := d.buffer
		d.buffer = nil
		buffers.Put(&buffer)
	}
}

// Close ends the connection. If whole is true, Close first ends the answer, so that the client knows that
// the answer is complete.
func (d *Detached) Close(whole bool) {
	if whole && d.FlushError() == nil {
		_, _ = d.conn.Write([]byte("0\r\n\r\n")) // the client may have left
	}
	d.release()
	_ = d.conn.Close() // nothing can be done about an error
	<-d.gone
}

var _ http.ResponseWriter = (*Detached)(nil)

// Pace is the least speed at which a client must read a large answer, or send a large body.
type Pace struct {
	Bytes  int           // bytes that the client must read or send in the time Within
	Within time.Duration // the time for Bytes; a slower client is cut off
	All    time.Duration // the time for the whole answer or body
}

// DefaultPace is 64 KiB in 10 s, and 60 s for the whole answer.
var DefaultPace = Pace{Bytes: 64 << 10, Within: 10 * time.Second, All: defaultTimeouts.write}

// errCrowdedOut is the error for an answer that was cut off. The deadline of its request had passed while it was being
// sent, and other answers needed the memory.
var errCrowdedOut = errors.New("the answer took too long, and others need its memory")

// Sender sends a large answer and cuts off a client that is slower than a Pace.
type Sender struct {
	progress
	w       http.ResponseWriter
	control *http.ResponseController
	pace    Pace
	end     time.Time // deadline of the whole answer
	left    int       // bytes until the next deadline is set
}

// NewSender returns a sender that writes to w. The time for the whole answer
// begins now.
func NewSender(w http.ResponseWriter, pace Pace) *Sender {
	s := &Sender{w: w, control: http.NewResponseController(w), pace: pace, end: time.Now().Add(pace.All)}
	s.to = w
	return s
}

// Write sends a part of the answer. It returns an error if the client left or is
// too slow.
func (s *Sender) Write(p []byte) (sent int, err error) {
	for len(p) > 0 {
		if s.left == 0 {
			// Only a connection has deadlines; a test's recorder fails here.
			_ = s.control.SetWriteDeadline(earlier(time.Now().Add(s.pace.Within), s.end))
			s.left = s.pace.Bytes
		}
		n, err := s.WriteNow(p[:min(len(p), s.left)])
		sent += n
		s.left -= n
		if err != nil {
			return sent, err
		}
		p = p[n:]
	}
	return sent, nil
}

// WriteNow sends a small answer. It sets no deadline.
func (s *Sender) WriteNow(p []byte) (sent int, err error) {
	s.await()
	defer s.taken()
	return s.w.Write(p)
}

// SendAll sends a whole answer. After ctx is done, it goes on as long as isCrowded returns false. This result means
// that other requests do not need the memory.
func (s *Sender) SendAll(ctx context.Context, body []byte, isCrowded func() bool) error {
	for len(body) > 0 {
		n, err := s.Write(body[:min(len(body), s.pace.Bytes)])
		if err != nil {
			return err
		}
		body = body[n:]
		if ctx.Err() != nil && isCrowded() {
			return errCrowdedOut
		}
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// UploadPace is 64 KiB in 10 s, and 24 h for a whole body.
var UploadPace = Pace{Bytes: 64 << 10, Within: 10 * time.Second, All: 24 * time.Hour}

// DownloadPace is the pace of a file that a client reads: 64 KiB in 10 s, and 24 h for the whole file.
var DownloadPace = UploadPace

// Receiver reads a large body and cuts off a client that sends more slowly than a Pace. The server's time limits for a
// request do not apply to the body. Read returns os.ErrDeadlineExceeded for a client that is too slow.
type Receiver struct {
	from    io.Reader
	control *http.ResponseController
	pace    Pace
	end     time.Time // deadline of the whole body
	left    int       // bytes until the next deadline is set
}

// NewReceiver returns a reader of the body of a request that w answers. The time for the
// whole body begins now.
func NewReceiver(w http.ResponseWriter, body io.Reader, pace Pace) *Receiver {
	return &Receiver{from: body, control: http.NewResponseController(w), pace: pace, end: time.Now().Add(pace.All)}
}

func (r *Receiver) Read(p []byte) (int, error) {
	if r.left == 0 {
		// Only a connection has deadlines; a test's recorder fails here. The answer has the usual time, counted
		// from the end of the body.
		by := earlier(time.Now().Add(r.pace.Within), r.end)
		_ = r.control.SetReadDeadline(by)
		_ = r.control.SetWriteDeadline(by.Add(defaultTimeouts.write))
		r.left = r.pace.Bytes
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}
