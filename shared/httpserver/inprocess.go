package httpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// InProcess returns a transport that calls handler directly, for services that
// share a process. It holds the whole answer in memory.
func InProcess(handler http.Handler) http.RoundTripper { return inProcess{handler} }

type inProcess struct{ handler http.Handler }

func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	served := req.Clone(req.Context())
	served.RequestURI = req.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody
	}
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(answer, served)
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper must close the body; the handler no longer needs it
	}
	return &http.Response{
		Status:        http.StatusText(answer.status),
		StatusCode:    answer.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        answer.header,
		Body:          io.NopCloser(&answer.body),
		ContentLength: int64(answer.body.Len()),
		Request:       req,
	}, nil
}

// answer is an http.ResponseWriter that keeps the whole answer in memory.
type answer struct {
	header  http.Header
	status  int
	written bool
	body    bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.written {
		a.status, a.written = status, true
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.written = true
	return a.body.Write(p)
}

// InProcessStream returns a transport that calls handler directly and passes the answer on as it comes. When the body
// of the answer is closed before the handler has returned, the context of the handler ends and its writes fail.
func InProcessStream(handler http.Handler) http.RoundTripper { return inProcessStream{handler} }

type inProcessStream struct{ handler http.Handler }

func (t inProcessStream) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	served := req.Clone(ctx)
	served.RequestURI, served.Body = req.URL.RequestURI(), http.NoBody
	body, pipe := io.Pipe()
	w := &streamWriter{header: http.Header{}, pipe: pipe, begun: make(chan struct{})}
	go func() {
		defer cancel()
		var failed error
		defer func() {
			if p := recover(); p != nil { // a panic cuts the answer off, as in net/http
				failed = io.ErrUnexpectedEOF
			}
			w.WriteHeader(http.StatusOK)
			pipe.CloseWithError(failed)
		}()
		t.handler.ServeHTTP(w, served)
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		_ = body.Close() // from here on the handler's writes fail
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: streamBody{body, cancel}, ContentLength: -1, Request: req,
	}, nil
}

// streamBody ends the handler when it is closed.
type streamBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b streamBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// streamWriter is an http.ResponseWriter that passes the answer on to the caller as it comes.
type streamWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed once the fields `status` and `sent` are set
	status int
	sent   http.Header
}

func (w *streamWriter) Header() http.Header { return w.header }

func (w *streamWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *streamWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.pipe.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = context.Canceled
	}
	return n, err
}

// SetWriteDeadline is for an http.ResponseController. It does nothing: a write ends when the body is closed.
func (w *streamWriter) SetWriteDeadline(time.Time) error { return nil }

// Flush implements http.Flusher. Each Write passes its bytes on without delay, so Flush only sends the headers.
func (w *streamWriter) Flush() { w.WriteHeader(http.StatusOK) }
