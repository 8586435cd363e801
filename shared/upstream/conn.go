package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// maxInterim is the number of interim answers (RFC 9110, 15.2) that may come
// before the final one.
const maxInterim = 5

// longAgo is a deadline in the past. It ends every read and write immediately.
var longAgo = time.Unix(1, 0)

// conn is a connection to a server. It carries one request at a time.
type conn struct {
	server *server
	net    net.Conn
	r      *bufio.Reader
	w      *bufio.Writer
	since  time.Time // when the connection became idle
}

// exchange sends a request and returns the answer as soon as its header was
// read. If it fails, the result `answering` reports whether a part of an answer came.
func (c *conn) exchange(r *http.Request, body io.ReadCloser) (_ *http.Response, answering bool, err error) {
	ctx := r.Context()
	release := context.AfterFunc(ctx, func() { c.net.SetDeadline(longAgo) })
	resp, failed, err := c.send(r, body)
	if err == nil && failed != nil {
		resp.Close = true
	}
	if err != nil {
		answering = c.r.Buffered() > 0
		release()
		c.net.Close()
		if ended := ctx.Err(); ended != nil {
			err = ended
		} else if failed != nil {
			err = failed
		}
		return nil, answering, err
	}
	b := &answerBody{ReadCloser: resp.Body, conn: c, release: release, last: resp.Close}
	if resp.ContentLength == 0 || resp.Body == http.NoBody {
		b.finish()
		resp.Body = http.NoBody
		return resp, true, nil
	}
	resp.Body = b
	return resp, true, nil
}

// send writes a request and reads the head of its answer. The result `failed` is the error of writing. After such an
// error, send still reads an answer, because the server may have refused the body early. But if the body of the request
// could not be read, send returns immediately, because no answer will come.
func (c *conn) send(r *http.Request, body io.ReadCloser) (resp *http.Response, failed, err error) {
	out := r.WithContext(r.Context()) // a copy, since a RoundTripper must not change its request
	out.Host, out.Body = c.server.addr, body
	if failed = out.Write(c.w); failed == nil {
		failed = c.w.Flush()
	} else if c.w.Flush() == nil { // the connection works: the body could not be read
		return nil, nil, failed
	}
	resp, err = c.readFinal(out)
	return resp, failed, err
}

// errNoFinalAnswer is returned for a server that sends too many interim answers
// or switches to another protocol.
var errNoFinalAnswer = errors.New("the server sent no final answer")

// readFinal reads answers until one is final.
func (c *conn) readFinal(r *http.Request) (*http.Response, error) {
	for range maxInterim {
		resp, err := http.ReadResponse(c.r, r)
		if err != nil || resp.StatusCode >= http.StatusOK {
			return resp, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	return nil, errNoFinalAnswer
}

// isOpen reports whether an idle connection is still open, and the server has sent
// nothing on it. It does not block.
func (c *conn) isOpen() bool {
	plain := c.net
	if secure, ok := plain.(interface{ NetConn() net.Conn }); ok {
		plain = secure.NetConn()
	}
	raw, err := plain.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	var open bool
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN
		return true
	})
	return err == nil && open
}

// answerBody is the body of an answer. Its end frees the connection.
type answerBody struct {
	io.ReadCloser
	conn    *conn
	release func() bool // detaches the request's context; returns false if the context has ended
	last    bool        // the server closes the connection after this answer
	timed   bool        // the method Outlast has set a deadline on the connection
	ended   bool
}

// Outlast replaces the deadline of the request's context by the deadline `end`, for the rest of the body. If the
// context has ended, Outlast does nothing.
func (b *answerBody) Outlast(end time.Time) {
	if b.ended || !b.release() {
		return
	}
	b.release, b.timed = func() bool { return true }, true
	_ = b.conn.net.SetDeadline(end) // an error means that the connection is broken, and then Read fails too
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.finish()
	case err != nil:
		b.abort()
	}
	return n, err
}

// Close ends the answer. Unless the body was read to its end, it closes the
// connection.
func (b *answerBody) Close() error {
	b.abort()
	return nil
}

// finish gives back the connection of a body that was read to its end.
func (b *answerBody) finish() {
	if b.ended {
		return
	}
	if b.detach() && !b.last && b.conn.r.Buffered() == 0 {
		b.conn.server.keep(b.conn)
		return
	}
	b.conn.net.Close()
}

// abort closes the connection of a body that was not read to its end.
func (b *answerBody) abort() {
	if b.ended {
		return
	}
	b.detach()
	b.conn.net.Close()
}

// detach ends the answer's use of the connection. It returns false if the connection still has a deadline.
func (b *answerBody) detach() bool {
	b.ended = true
	b.conn.server.busy.Add(-1)
	cleared := !b.timed || b.conn.net.SetDeadline(time.Time{}) == nil
	return b.release() && cleared
}
