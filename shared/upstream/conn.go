package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"
)

// progress says how far a request without an answer got.
type progress int32

const (
	notSent      progress = iota // no connection could be made
	foundClosed                  // the server had closed the connection before
	sentOnReused                 // sent on a connection that the server may have closed before
	sentOnNew
)

// errNoFinalAnswer is returned for a server that switches to another protocol.
var errNoFinalAnswer = errors.New("the server sent no final answer")

// exchange sends a request and returns the answer as soon as its header was read. Without an answer it returns how far
// the request got.
func (s *server) exchange(r *http.Request, body io.ReadCloser) (*http.Response, progress, error) {
	s.busy.Add(1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	b := &answerBody{server: s, cancel: cancel, release: context.AfterFunc(r.Context(), cancel)}
	var at atomic.Int32
	out := r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) {
			switch {
			case progress(at.Load()) > foundClosed: // the pool decides whether the request is repeated, not the transport
				cancel()
				c.Conn.Close()
			case c.Reused && !isOpen(c.Conn):
				at.Store(int32(foundClosed))
				c.Conn.Close()
			case c.Reused:
				at.Store(int32(sentOnReused))
			default:
				at.Store(int32(sentOnNew))
			}
		},
		GotFirstResponseByte: func() { at.Store(int32(sentOnNew)) },
	}))
	to := *r.URL
	to.Scheme, to.Host = s.from.scheme(), s.addr
	out.URL, out.Host, out.Body = &to, s.addr, body
	transport := s.transport
	if hasBody(r) {
		out.Body = requestBody{body, &at, b}
		if r.GetBody == nil { // the body cannot be sent a second time, so no connection may be found closed
			transport = s.once
		}
	}
	resp, err := transport.RoundTrip(out)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		err = errNoFinalAnswer
	}
	if err == nil {
		if b.ReadCloser = resp.Body; resp.Body == http.NoBody {
			b.end()
		} else {
			resp.Body = b
		}
		return resp, sentOnNew, nil
	}
	b.end()
	got := progress(at.Load())
	if ended := r.Context().Err(); ended != nil {
		return nil, got, ended
	}
	if got == foundClosed || got == sentOnReused {
		s.transport.CloseIdleConnections() // the other idle connections are probably stale too
		return nil, got, staleConnError{err}
	}
	return nil, got, err
}

// errAnswered is the error of a read of a body after the answer, when the body may belong to nobody any more.
var errAnswered = errors.New("the request has got its whole answer")

// requestBody is the body of a request. It stays open until a connection is there, because another server may get it.
// The transport may read it in another goroutine, even when the answer has come early.
type requestBody struct {
	io.ReadCloser
	at     *atomic.Int32
	answer *answerBody
}

func (b requestBody) Read(p []byte) (int, error) {
	if b.answer.ended.Load() {
		return 0, errAnswered
	}
	return b.ReadCloser.Read(p)
}

func (b requestBody) Close() error {
	if progress(b.at.Load()) == notSent {
		return nil
	}
	return b.ReadCloser.Close()
}

// isOpen reports whether an idle connection is still open, and the server has sent
// nothing on it. It does not block.
func isOpen(plain net.Conn) bool {
	if secure, ok := plain.(interface{ NetConn() net.Conn }); ok {
		plain = secure.NetConn()
	}
	raw, err := plain.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	var open bool
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN
	})
	return err == nil && open
}

// answerBody is the body of an answer. Its end ends the request.
type answerBody struct {
	io.ReadCloser
	server  *server
	cancel  context.CancelFunc
	release func() bool // detaches the request's context; returns false if the context has ended
	timer   *time.Timer // ends the request; nil: Outlast was not called
	ended   atomic.Bool
}

// Outlast replaces the deadline of the request's context by the deadline `end`, for the rest of the body. If the
// context has ended, Outlast does nothing.
func (b *answerBody) Outlast(end time.Time) {
	if b.timer != nil {
		b.timer.Reset(time.Until(end))
	} else if b.release() {
		b.timer = time.AfterFunc(time.Until(end), b.cancel)
	}
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

// Close ends the answer. Unless the body was read to its end, it closes the
// connection.
func (b *answerBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

func (b *answerBody) end() {
	if b.ended.Swap(true) {
		return
	}
	b.release()
	b.cancel()
	b.server.busy.Add(-1)
}
