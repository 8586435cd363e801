package httpserver

import (
	"context"
	"errors"
	"io"
	"net/http"
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
