package httpserver

import (
	"bytes"
	"io"
	"net/http"
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
		_ = req.Body.Close() // a RoundTripper must close it; the handler has read what it needs
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

// answer is an http.ResponseWriter that stores the answer.
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
