package edge

import (
	"net/http"
	"strconv"
)

// serveHead answers a HEAD request with the headers that the answer to GET would have, compressed or not (RFC 9110,
// 9.3.2). Gzhttp never compresses the answer to a HEAD request. For other requests, it decides by the first bytes
// of the body. So serveHead gives gzhttp a GET request, and a body if the service sets the Content-Length of a long
// answer, or only a tag, as for a large asset. Of other answers that were not made, nobody knows whether they are long.
func (h handler) serveHead(w http.ResponseWriter, r *http.Request) {
	get := *r
	get.Method = http.MethodGet
	h.compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.plain.ServeHTTP(w, r)
		length := w.Header().Get("Content-Length")
		n, _ := strconv.Atoi(length)
		if n >= minCompressed || length == "" && w.Header().Get("ETag") != "" { // a long answer that was not made
			_, _ = w.Write(blank[:])
		}
	})).ServeHTTP(bodiless{w}, &get)
}

// blank is the body that serveHead gives to gzhttp.
var blank [minCompressed]byte

// bodiless sends the headers of an answer, without the body.
type bodiless struct{ http.ResponseWriter }

func (bodiless) Write(p []byte) (int, error) { return len(p), nil }

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w bodiless) Unwrap() http.ResponseWriter { return w.ResponseWriter }
