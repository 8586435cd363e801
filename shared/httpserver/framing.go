package httpserver

import (
	"bytes"
	"sync/atomic"
)

// framing looks for headers with both Content-Length and Transfer-Encoding in
// the bytes that a connection receives. Two servers may disagree on where such a
// request ends, which allows request smuggling (RFC 9112, 11.2). net/http hides
// this from handlers.
//
// framing checks all lines, those of bodies too. So it need not know where a
// body ends, and no header can hide from it. A body with such lines is not one
// that we accept: no line of JSON begins with a field's name and a colon.
type framing struct {
	start       []byte // of the current line, up to longestField bytes
	hasLength   bool   // the header has Content-Length
	hasEncoding bool   // the header has Transfer-Encoding
	broken      atomic.Bool
}

const longestField = len("transfer-encoding:")

var (
	contentLength    = []byte("content-length")
	transferEncoding = []byte("transfer-encoding")
	colon, newline   = []byte(":"), []byte("\n")
)

// spoil overwrites the colon of the second of the two fields. So net/http
// refuses the request and closes the connection.
func (f *framing) spoil(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, newline)
		p = rest
		had := len(f.start)
		f.start = append(f.start, line[:min(len(line), longestField-had)]...)
		if name, _, found := bytes.Cut(f.start, colon); found && len(name) >= had { // the colon is in line
			f.hasLength = f.hasLength || bytes.EqualFold(name, contentLength)
			f.hasEncoding = f.hasEncoding || bytes.EqualFold(name, transferEncoding)
			if f.hasLength && f.hasEncoding {
				line[len(name)-had] = 0
				f.broken.Store(true)
			}
		}
		if !ended {
			return
		}
		if len(f.start) == 0 || f.start[0] == '\r' { // an empty line ends a header
			f.hasLength, f.hasEncoding = false, false
		}
		f.start = f.start[:0]
	}
}
