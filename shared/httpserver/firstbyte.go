package httpserver

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
)

// firstByte is the writer of an answer. It measures the time until the answer begins. It leaves out the time for the
// rest of the answer and the time for the request's body, because these depend on the client's connection.
type firstByte struct {
	gin.ResponseWriter
	progress
	isTimed bool // the handler has set a time limit for writes
	isH2    bool
	begun   time.Time
	until   time.Duration // time from begun to the first byte; 0: the answer has not begun
	body    *awaitedBody  // the body of the request; nil: the request has none
}

// awaitFirst makes the request's writer a firstByte.
func awaitFirst(c *gin.Context, begun time.Time) *firstByte {
	w := &firstByte{ResponseWriter: c.Writer, begun: begun, isH2: c.Request.ProtoMajor == 2}
	w.progress.to = c.Writer
	if c.Request.Body != nil && c.Request.Body != http.NoBody {
		w.body = &awaitedBody{ReadCloser: c.Request.Body}
		c.Request.Body = w.body
	}
	c.Writer = w
	return w
}

// took returns the time until the answer began, or until now if it has not begun. The time for which reads of
// the body waited does not count.
func (w *firstByte) took() time.Duration {
	w.note()
	return w.until
}

func (w *firstByte) note() {
	if w.until != 0 {
		return
	}
	until := time.Since(w.begun)
	if w.body != nil {
		until -= time.Duration(w.body.waited.Load())
	}
	w.until = max(until, 1)
	if w.isH2 && !w.isTimed {
		// A stream whose window is shut ends as a connection does whose peer takes nothing.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(takeWithin))
	}
}

// SetWriteDeadline is for an http.ResponseController.
func (w *firstByte) SetWriteDeadline(end time.Time) error {
	w.isTimed = true
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(end)
}

func (w *firstByte) Write(p []byte) (int, error) {
	w.note()
	w.await()
	defer w.taken()
	return w.ResponseWriter.Write(p)
}

func (w *firstByte) WriteString(s string) (int, error) {
	w.note()
	w.await()
	defer w.taken()
	return w.ResponseWriter.WriteString(s)
}

func (w *firstByte) WriteHeaderNow() {
	w.note()
	w.ResponseWriter.WriteHeaderNow()
}

func (w *firstByte) Flush() {
	w.note()
	w.await()
	defer w.taken()
	w.ResponseWriter.Flush()
}

// Unwrap is for an http.ResponseController.
func (w *firstByte) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// awaitedBody is the body of a request. It adds up the time that its reads take.
type awaitedBody struct {
	io.ReadCloser
	waited atomic.Int64 // ns; atomic, because a transport reads in another goroutine
}

func (b *awaitedBody) Read(p []byte) (int, error) {
	begun := time.Now()
	n, err := b.ReadCloser.Read(p)
	b.waited.Add(int64(time.Since(begun)))
	return n, err
}

// Unwrap lets refuseBody find the body below.
func (b *awaitedBody) Unwrap() io.ReadCloser { return b.ReadCloser }
