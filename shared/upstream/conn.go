package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"asset-registry/shared/httpwire"
)

// maxInterim is the number of interim answers (RFC 9110, 15.2) that may come
// before the final one.
const maxInterim = 5

// longAgo is a deadline in the past. It ends every read and write immediately.
var longAgo = time.Unix(1, 0)

// conn is a connection to a server. It carries one request at a time.
type conn struct {
	server *server
	kind   kind
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
	target := r.URL.RequestURI()
	isPlain := c.kind == readings && httpwire.IsTarget(target)
	if isPlain {
		if resp, err := c.read(r, target); resp != nil || err != nil {
			return resp, nil, err
		}
	}
	out := r.WithContext(r.Context()) // a copy, since a RoundTripper must not change its request
	out.Host, out.Body = c.server.addr, body
	if !isPlain {
		if failed = out.Write(c.w); failed == nil {
			failed = c.w.Flush()
		} else if c.w.Flush() == nil { // the connection works: the body could not be read
			return nil, nil, failed
		}
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

// read sends a reading (a GET or HEAD without a body) and returns its answer. If parseAnswer cannot read the answer,
// read returns nil and no error. Then net/http must read the answer. read works as Request.Write and ReadResponse
// do, with fewer copies and allocations.
func (c *conn) read(r *http.Request, target string) (*http.Response, error) {
	buffer := requests.Get().(*[]byte)
	defer requests.Put(buffer)
	*buffer = appendReading((*buffer)[:0], r, target, c.server.addr)
	if _, err := c.net.Write(*buffer); err != nil {
		return nil, err
	}
	if _, err := c.r.Peek(1); err != nil {
		return nil, err
	}
	b, err := c.r.Peek(c.r.Buffered())
	if err != nil {
		return nil, err
	}
	resp, size := parseAnswer(b, r)
	if resp == nil {
		return nil, nil
	}
	_, err = c.r.Discard(size)
	if resp.Body == nil {
		resp.Body = &body{from: c.r, left: resp.ContentLength}
	}
	return resp, err
}

// requests holds buffers for requests.
var requests = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// ours are the header fields that appendReading does not copy from the request, as in Request.Write. It either writes
// them itself, or only a request with a body has them.
var ours = map[string]bool{
	"Host": true, "User-Agent": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true,
}

// appendReading adds the head of a request without a body to b, as Request.Write does.
func appendReading(b []byte, r *http.Request, target, host string) []byte {
	b = append(append(b, r.Method...), ' ')
	b = append(append(b, target...), " HTTP/1.1\r\n"...)
	b = httpwire.AppendField(b, "Host", []string{host})
	agent, set := r.Header["User-Agent"]
	switch {
	case !set:
		agent = defaultAgent
	case len(agent) > 0 && agent[0] == "":
		agent = nil
	}
	b = httpwire.AppendField(b, "User-Agent", agent[:min(len(agent), 1)])
	for name, values := range r.Header {
		if !ours[name] {
			b = httpwire.AppendField(b, name, values)
		}
	}
	return append(b, "\r\n"...)
}

// defaultAgent is the User-Agent that net/http sends by default.
var defaultAgent = []string{"Go-http-client/1.1"}

// difficult are header fields to which net/http reacts. parseAnswer does not accept an answer that has one of them.
var difficult = map[string]bool{"Transfer-Encoding": true, "Trailer": true, "Upgrade": true, "Pragma": true}

const protocol = "HTTP/1.1 "

// parseAnswer parses the head of an answer to a reading. It returns nil if the head is not whole or not plain, or if
// the length of the body is unknown. Otherwise it returns the size of the head, and the same answer as
// http.ReadResponse, with one difference: if bytes of a body follow, the field Body is nil.
func parseAnswer(b []byte, r *http.Request) (resp *http.Response, size int) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return nil, 0
	}
	line, fields, _ := strings.Cut(string(b[:end+2]), "\r\n")
	status, plain := strings.CutPrefix(line, protocol)
	if !plain || len(status) < len("200 ") || status[3] != ' ' || !httpwire.IsPrintable(status) {
		return nil, 0
	}
	code, err := strconv.ParseUint(status[:3], 10, 16)
	if err != nil || code < 200 {
		return nil, 0
	}
	header, plain := httpwire.Fields(fields, difficult)
	if !plain {
		return nil, 0
	}
	resp = &http.Response{
		Status: status, StatusCode: int(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Request: r,
	}
	if resp.ContentLength, plain = lengthOf(header["Content-Length"]); !plain {
		return nil, 0
	}
	switch {
	case r.Method == http.MethodHead:
		resp.Body = http.NoBody
	case code == http.StatusNoContent || code == http.StatusNotModified:
		resp.ContentLength, resp.Body = 0, http.NoBody
	case resp.ContentLength == 0:
		resp.Body = http.NoBody
	case resp.ContentLength < 0: // the body lasts until the connection ends
		return nil, 0
	}
	return resp, end + len("\r\n\r\n")
}

// lengthOf returns the value of Content-Length, or -1 without the header. It returns false if the value is not
// a plain number.
func lengthOf(values []string) (int64, bool) {
	if len(values) == 0 {
		return -1, true
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	return n, len(values) == 1 && err == nil && n >= 0 && values[0][0] != '+'
}

// body reads the body of an answer whose length is known.
type body struct {
	from io.Reader
	left int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left == 0:
		err = io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer. answerBody closes the connection.
func (b *body) Close() error { return nil }
