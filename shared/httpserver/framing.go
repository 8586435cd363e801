package httpserver

import (
	"bytes"
	"sync/atomic"
)

// framing looks at what arrives on a connection for a header that has both
// Content-Length and Transfer-Encoding. Two servers may see two ends of such a
// request (RFC 9112, 11.2), and net/http tells no handler of it.
//
// It looks at all lines, those of bodies too, so it need not know where a body
// ends, and nothing hides a header from it. A body that it takes for a header
// is none that we accept: no line of JSON begins with a field's name and a colon.
type framing struct {
	start          []byte // of the line that is arriving, up to longestField bytes
	length, coding bool   // the header has such a field
	broken         atomic.Bool
}

const longestField = len("transfer-encoding:")

var (
	contentLength    = []byte("content-length")
	transferEncoding = []byte("transfer-encoding")
	colon, newline   = []byte(":"), []byte("\n")
)

// spoil overwrites the colon of the second of the two fields, so that net/http
// refuses the request and ends the connection.
func (f *framing) spoil(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, newline)
		p = rest
		had := len(f.start)
		f.start = append(f.start, line[:min(len(line), longestField-had)]...)
		if name, _, found := bytes.Cut(f.start, colon); found && len(name) >= had { // the colon is in line
			f.length = f.length || bytes.EqualFold(name, contentLength)
			f.coding = f.coding || bytes.EqualFold(name, transferEncoding)
			if f.length && f.coding {
				line[len(name)-had] = 0
				f.broken.Store(true)
			}
		}
		if !ended {
			return
		}
		if len(f.start) == 0 || f.start[0] == '\r' { // an empty line ends a header
			f.length, f.coding = false, false
		}
		f.start = f.start[:0]
	}
}
