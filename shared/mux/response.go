package mux

import (
	"net/http"
	"strconv"
	"time"

	"asset-registry/shared/httpwire"
)

// response is an http.ResponseWriter whose answer goes out in frames. An answer of at most
// maxBody bytes goes out in one piece when the handler returns.
type response struct {
	r      *http.Request
	out    *outbound
	header http.Header

	status int    // 0: the handler has not set it
	head   []byte // status and fields, as they were when the status was set; nil: sent
	begun  bool   // the head was sent
	known  bool   // the handler has told the length
	body   []byte // that was not sent
	size   int64  // of the whole body
	failed error
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Interim answers are not carried.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status = status
	w.head = append(strconv.AppendInt(nil, int64(status), 10), "\r\n"...)
	for name, values := range w.header {
		if !notCarried[name] && !(name == "Content-Type" && status == http.StatusNotModified) { // as net/http
			w.head = httpwire.AppendField(w.head, name, values)
		}
	}
	w.known = w.header.Get("Content-Length") != ""
}

// notCarried are the fields about a connection (RFC 9110, section 7.6.1).
var notCarried = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
}

func hasBody(method string, status int) bool {
	return method != http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.size += int64(len(p))
	if w.r.Method == http.MethodHead {
		return len(p), nil
	}
	if !hasBody(w.r.Method, w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if len(w.body)+len(p) > maxBody {
		w.send(false)
		w.keep(w.out.send(nil, p))
	} else {
		w.body = append(w.body, p...)
	}
	if w.failed != nil {
		return 0, w.failed
	}
	return len(p), nil
}

func (w *response) keep(err error) {
	if w.failed == nil {
		w.failed = err
	}
}

// send sends the head, unless it was sent, and what is kept of the body. With final it
// ends the answer.
func (w *response) send(final bool) {
	if w.failed != nil {
		return
	}
	var first func(b []byte) []byte
	if !w.begun {
		w.begun = true
		if final && !w.known && (hasBody(w.r.Method, w.status) || w.size > 0 && w.r.Method == http.MethodHead) {
			w.head = append(strconv.AppendInt(append(w.head, "Content-Length: "...), w.size, 10), "\r\n"...)
		}
		head := w.head
		w.head = nil
		first = func(b []byte) []byte { return appendFrame(b, w.out.stream, headFrame, head) }
	}
	if final && len(w.body) <= maxBody && w.out.tryTake(len(w.body)) { // the usual case: all at once
		w.keep(w.out.out.put(func(b []byte) []byte {
			if first != nil {
				b = first(b)
			}
			if len(w.body) > 0 {
				b = appendFrame(b, w.out.stream, bodyFrame, w.body)
			}
			return appendFrame(b, w.out.stream, endFrame, "")
		}))
		return
	}
	w.keep(w.out.send(first, w.body))
	w.body = w.body[:0]
	if final && w.failed == nil {
		w.keep(w.out.out.put(func(b []byte) []byte { return appendFrame(b, w.out.stream, endFrame, "") }))
	}
}

// SetWriteDeadline is for an http.ResponseController. It bounds how long a write waits for
// the other side.
func (w *response) SetWriteDeadline(end time.Time) error {
	w.out.setDeadline(end)
	return nil
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is for an http.ResponseController.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	w.send(false)
	return w.failed
}

func (w *response) finish() {
	w.WriteHeader(http.StatusOK)
	w.send(true)
}
