package httpserver

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Pace is how fast a client must take a large answer.
type Pace struct {
	Bytes  int           // of the answer, that must be taken
	Within time.Duration // so long, or the client is cut off
	All    time.Duration // for the whole answer
}

// DefaultPace is that of all services: 64 KiB in 10 s, and 60 s for all.
var DefaultPace = Pace{Bytes: 64 << 10, Within: 10 * time.Second, All: usual.write}

// ErrCrowdedOut is returned for an answer that took longer than its request may
// while others needed its memory.
var ErrCrowdedOut = errors.New("the answer took too long, and others need its memory")

// Sender sends a large answer at the client's pace, but no slower than Pace.
type Sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	pace    Pace
	end     time.Time // of the time for all
	left    int       // bytes until the next deadline
}

// NewSender returns a sender of what is written to it.
func NewSender(w http.ResponseWriter, pace Pace) *Sender {
	return &Sender{w: w, control: http.NewResponseController(w), pace: pace, end: time.Now().Add(pace.All)}
}

// Write sends a part of the answer. It returns an error when the client has
// gone or is too slow.
func (s *Sender) Write(p []byte) (sent int, err error) {
	for len(p) > 0 {
		if s.left == 0 {
			// Nothing but a connection has deadlines; a recorder of tests needs none.
			_ = s.control.SetWriteDeadline(earlier(time.Now().Add(s.pace.Within), s.end))
			s.left = s.pace.Bytes
		}
		n, err := s.w.Write(p[:min(len(p), s.left)])
		sent += n
		s.left -= n
		if err != nil {
			return sent, err
		}
		p = p[n:]
	}
	return sent, nil
}

// SendAll sends a whole answer. Past the context's deadline it goes on only
// while nobody else needs the memory: isCrowded reports that.
func (s *Sender) SendAll(ctx context.Context, body []byte, isCrowded func() bool) error {
	for len(body) > 0 {
		n, err := s.Write(body[:min(len(body), s.pace.Bytes)])
		if err != nil {
			return err
		}
		body = body[n:]
		if ctx.Err() != nil && isCrowded() {
			return ErrCrowdedOut
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
