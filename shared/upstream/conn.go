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

// maxInterim bounds the interim answers (RFC 9110, 15.2) before the final one.
const maxInterim = 5

// longAgo is a deadline that ends what is under way on a connection.
var longAgo = time.Unix(1, 0)

// conn is a connection to a server, which one request at a time uses.
type conn struct {
	server *server
	net    net.Conn
	r      *bufio.Reader
	w      *bufio.Writer
	since  time.Time // idle since then
}

// exchange sends a request and returns the answer's beginning. Without one,
// answering tells whether the server had begun to answer.
func (c *conn) exchange(r *http.Request, body io.ReadCloser) (_ *http.Response, answering bool, err error) {
	ctx := r.Context()
	// The context's end ends reading and writing.
	release := context.AfterFunc(ctx, func() { c.net.SetDeadline(longAgo) })
	out := r.WithContext(ctx) // a copy: the request is its sender's
	out.Host, out.Body = c.server.addr, body
	failed := out.Write(c.w)
	if failed == nil {
		failed = c.w.Flush()
	}
	// A server may refuse a body before it has read it, and say why.
	resp, err := c.read(out)
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
		b.end(true)
		resp.Body = http.NoBody
		return resp, true, nil
	}
	resp.Body = b
	return resp, true, nil
}

// errNoFinalAnswer is of a server that answers with interim answers only, or
// wants to speak another protocol.
var errNoFinalAnswer = errors.New("the server has not answered the request")

func (c *conn) read(r *http.Request) (*http.Response, error) {
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

// alive tells whether an idle connection is as it was left: the server has
// neither closed it nor said anything.
func (c *conn) alive() bool {
	plain := c.net
	if secure, ok := plain.(interface{ NetConn() net.Conn }); ok {
		plain = secure.NetConn()
	}
	raw, err := plain.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	var alive bool
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		alive = err == syscall.EAGAIN
		return true
	})
	return err == nil && alive
}

// answerBody gives the connection back when it was read to its end.
type answerBody struct {
	io.ReadCloser
	conn    *conn
	release func() bool
	last    bool // the server closes the connection after this answer
	timed   bool // the connection has a deadline
	ended   bool
}

// Outlast lets the rest of the answer be read until end, also after the
// deadline of the request's context.
func (b *answerBody) Outlast(end time.Time) {
	if b.ended || !b.release() { // the context has ended already
		return
	}
	b.release, b.timed = func() bool { return true }, true
	_ = b.conn.net.SetDeadline(end) // of a connection that is broken, reading tells
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.end(err == io.EOF)
	}
	return n, err
}

// Close ends an answer that may not have been read to its end.
func (b *answerBody) Close() error {
	b.end(false)
	return nil
}

// end frees the connection, for others if all was read.
func (b *answerBody) end(whole bool) {
	if b.ended {
		return
	}
	b.ended = true
	b.conn.server.busy.Add(-1)
	if b.timed && b.conn.net.SetDeadline(time.Time{}) != nil {
		whole = false
	}
	if b.release() && whole && !b.last && b.conn.r.Buffered() == 0 {
		b.conn.server.keep(b.conn)
		return
	}
	b.conn.net.Close()
}
