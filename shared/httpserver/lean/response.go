package lean

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"asset-registry/shared/httpwire"
)

// maxBuffered is the number of bytes of an answer that are kept before they are sent. An answer with at most
// maxBuffered bytes is sent with one write, and with its length.
const maxBuffered = 16 << 10

// unknown is the length of an answer whose handler has not set Content-Length.
const unknown = -1

// buffers holds the memory of ended answers, for later answers.
var buffers = sync.Pool{New: func() any {
	return &buffer{head: make([]byte, 0, 8<<10), header: make(http.Header, 16)}
}}

// buffer is the memory of an answer. body is allocated only when an answer needs it.
type buffer struct {
	head, body []byte
	header     http.Header
}

// response is an http.ResponseWriter. It behaves like the response of net/http, with three differences. It
// sends no interim answers (1xx). Trailers must begin with http.TrailerPrefix. It ignores a handler's
// Transfer-Encoding.
type response struct {
	conn   *conn
	r      *http.Request
	rest   []byte  // what the client has sent after the request
	buffer *buffer // nil once the answer has ended
	header http.Header

	status  int   // 0: the handler has not set it
	length  int64 // length of the body, as the handler has set it, or unknown
	written int64 // bytes of the body
	begun   bool  // the head is whole, and cannot change any more
	chunked bool
	closing bool  // the connection ends after the answer
	failed  error // the error of a write

	// These say which fields the header had when WriteHeader was called. The field `sized` is true for each
	// Content-Length, even one that is not a number.
	typed, encoded, dated, trails, sized bool

	head []byte // the part of the head that is not sent yet; while begun is false, it ends with the handler's fields
	body []byte // the part of the body that is not sent yet
}

func newResponse(c *conn, r *http.Request, rest []byte) *response {
	b := buffers.Get().(*buffer)
	return &response{
		conn: c, r: r, rest: rest, length: unknown, buffer: b, header: b.header, head: b.head[:0], body: b.body[:0],
	}
}

// free gives the memory back for other answers. This is safe, because a handler that has returned must not use
// the header any more (http.ResponseWriter).
func (w *response) free() {
	b := w.buffer
	small := cap(w.head) <= 2*maxBuffered && cap(w.body) <= 2*maxBuffered && len(w.header) <= maxFields
	if small && w.conn.hijacked == nil {
		clear(w.header)
		b.head, b.body = w.head, w.body
		buffers.Put(b)
	}
	w.buffer, w.header, w.head, w.body = nil, nil, nil, nil
}

// maxFields is the largest number of fields of a header that is reused.
const maxFields = 64

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic("lean: invalid status " + strconv.Itoa(status))
	}
	if w.status != 0 || status < 200 || w.conn.hijacked != nil {
		return
	}
	w.status = status
	w.head = appendStatus(append(w.head, "HTTP/1.1 "...), status)
	for name, values := range w.header {
		if w.note(name, values) {
			w.head = httpwire.AppendField(w.head, name, values)
		}
	}
}

// note records what a field of the handler's header says about the answer. It reports whether the field is
// sent unchanged.
func (w *response) note(name string, values []string) (isSent bool) {
	first := ""
	if len(values) > 0 {
		first = values[0]
	}
	switch name {
	case "Content-Length":
		w.sized = true
		if n, err := strconv.ParseInt(first, 10, 64); err == nil && n >= 0 && hasBody(w.status) {
			w.length = n
		}
		return false // the method `begin` decides whether this field is sent
	case "Transfer-Encoding":
		w.encoded = first != ""
		return false // the method `begin` decides whether this field is sent
	case "Content-Type":
		w.typed = true
		return w.status != http.StatusNotModified // as in net/http (RFC 9110, section 15.4.5)
	case "Content-Encoding":
		w.typed = w.typed || first != ""
	case "Date":
		w.dated = true
	case "Connection":
		w.closing = first == "close"
	default:
		if strings.HasPrefix(name, http.TrailerPrefix) {
			w.trails = true
			return false
		}
	}
	return true
}

func appendStatus(b []byte, status int) []byte {
	b = append(strconv.AppendInt(b, int64(status), 10), ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else { // net/http sends this text, too
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// hasBody reports whether an answer of this status can have a body.
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

func (w *response) Write(p []byte) (int, error) { return write(w, p) }

func (w *response) WriteString(s string) (int, error) { return write(w, s) }

func write[T []byte | string](w *response, p T) (int, error) {
	if w.conn.hijacked != nil {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !hasBody(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length != unknown && w.written > w.length {
		return 0, http.ErrContentLength // the method `finish` closes the connection
	}
	if w.r.Method == http.MethodHead {
		w.body = append(w.body, p[:min(len(p), max(sniffed-len(w.body), 0))]...) // kept only to detect the media type
		return len(p), nil
	}
	if len(w.body)+len(p) > maxBuffered {
		w.send([]byte(p), false)
	} else {
		w.body = append(w.body, p...)
	}
	if w.failed != nil {
		return 0, w.failed
	}
	return len(p), nil
}

// ReadFrom implements io.ReaderFrom. If from is an *io.LimitedReader of a file, and the answer has a
// type and a length, the connection sends the file without a copy in this process. A small file is
// copied, and goes with the header in one write.
func (w *response) ReadFrom(from io.Reader) (int64, error) {
	limited, isLimited := from.(*io.LimitedReader)
	to, canTake := w.conn.net.(io.ReaderFrom)
	isPlain := w.conn.hijacked == nil && w.typed && w.length != unknown && w.r.Method != http.MethodHead
	if !canTake || !isLimited || !isPlain || limited.N <= maxBuffered || limited.N > w.length-w.written {
		return io.Copy(struct{ io.Writer }{w}, from)
	}
	w.send(nil, false)
	if w.failed != nil {
		return 0, w.failed
	}
	n, err := to.ReadFrom(from)
	w.written, w.failed = w.written+n, err
	return n, err
}

// Sent returns how many bytes of the body were written.
func (w *response) Sent() int64 { return w.written }

// sniffed is the number of bytes that http.DetectContentType reads.
const sniffed = 512

// begin completes the head: it decides how the body is framed. The argument `first` has the first bytes of the body.
// If final is true, the handler has returned, and no more of the body follows.
func (w *response) begin(first []byte, final bool) {
	if w.begun {
		return
	}
	w.begun = true
	isHead, allowed := w.r.Method == http.MethodHead, hasBody(w.status)
	if allowed && !w.typed && !w.encoded && len(first) > 0 {
		w.head = httpwire.AppendField(w.head, "Content-Type", []string{http.DetectContentType(first)})
	}
	// As in net/http, an answer is chunked if the handler's Content-Length is not a number.
	if allowed && final && !w.sized && !w.trails && !w.encoded && (!isHead || w.written > 0) {
		w.length = w.written
	}
	switch {
	case !allowed:
	case w.length != unknown:
		w.head = append(strconv.AppendInt(append(w.head, "Content-Length: "...), w.length, 10), "\r\n"...)
	case !isHead:
		w.chunked = true
		w.head = append(w.head, "Transfer-Encoding: chunked\r\n"...)
	}
	if !w.dated {
		w.head = append(append(append(w.head, "Date: "...), date()...), "\r\n"...)
	}
	w.head = append(w.head, "\r\n"...)
}

// send sends the buffered bytes, and then p. If final is true, send also ends the answer.
func (w *response) send(p []byte, final bool) {
	first := w.body
	if len(first) == 0 {
		first = p
	}
	w.begin(first, final)
	b, size := w.head, len(w.body)+len(p)
	if w.r.Method == http.MethodHead {
		size = 0
	}
	if size > 0 {
		if w.chunked {
			b = append(strconv.AppendInt(b, int64(size), 16), "\r\n"...)
		}
		b = append(b, w.body...)
		if len(p) > maxBuffered {
			w.write(b)
			w.write(p)
			b = b[:0]
		} else {
			b = append(b, p...)
		}
		if w.chunked {
			b = append(b, "\r\n"...)
		}
	}
	if final && w.chunked {
		b = append(w.appendTrailers(append(b, "0\r\n"...)), "\r\n"...)
	}
	w.write(b)
	w.head, w.body = b[:0], w.body[:0]
}

// write sends b, unless an earlier write failed.
func (w *response) write(b []byte) {
	if w.failed == nil && len(b) > 0 {
		_, w.failed = w.conn.net.Write(b)
	}
}

func (w *response) appendTrailers(b []byte) []byte {
	for name, values := range w.header {
		if trailer, is := strings.CutPrefix(name, http.TrailerPrefix); is {
			b = httpwire.AppendField(b, trailer, values)
		}
	}
	return b
}

// finish ends the answer after the handler has returned. It returns false if no other
// request can follow.
func (w *response) finish() (open bool) {
	if w.conn.hijacked != nil {
		return false
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.send(nil, true)
	isWhole := w.length == unknown || w.r.Method == http.MethodHead || w.written == w.length
	return w.failed == nil && !w.closing && isWhole
}

func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends the buffered bytes. An http.ResponseController calls it.
func (w *response) FlushError() error {
	if w.conn.hijacked != nil {
		return http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.send(nil, false)
	return w.failed
}

// EnableFullDuplex is for an http.ResponseController. It does nothing, because no request has a body.
func (w *response) EnableFullDuplex() error { return nil }

// SetReadDeadline is for an http.ResponseController. A handler that removes the deadline may wait for a long time. So
// SetReadDeadline then ends the context of the request if the client has left already.
func (w *response) SetReadDeadline(end time.Time) error {
	w.conn.readBy = time.Time{} // so that the loop sets its own deadline again
	if end.IsZero() {
		w.conn.watch.lookNow()
	}
	return w.conn.net.SetReadDeadline(end)
}

// SetWriteDeadline is for an http.ResponseController.
func (w *response) SetWriteDeadline(end time.Time) error {
	if end.After(time.Now()) { // otherwise the connection ends; another goroutine may have called this
		w.conn.writeBy = time.Time{} // so that extendWrite sets its own deadline again
	}
	return w.conn.net.SetWriteDeadline(end)
}

// date returns the value of the header field Date for the present time.
func date() string {
	now := time.Now()
	d := today.Load()
	if d == nil || d.second != now.Unix() {
		d = &dated{now.Unix(), now.UTC().Format(http.TimeFormat)}
		today.Store(d)
	}
	return d.text
}

type dated struct {
	second int64
	text   string
}

var today atomic.Pointer[dated]
