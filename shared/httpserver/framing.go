package httpserver

import (
	"bytes"
	"strconv"
	"sync/atomic"
)

// framing follows the requests in the bytes that a connection receives, so that it knows
// which lines belong to a header. It looks for headers with both Content-Length and
// Transfer-Encoding. Two servers may disagree on where such a request ends, which allows
// request smuggling (RFC 9112, 11.2). A handler of net/http cannot see that both were present.
//
// For each request that net/http accepts, framing and net/http agree on where it ends. After a request that
// net/http refuses, net/http closes the connection.
type framing struct {
	state int
	left  uint64 // bytes before the next line: the rest of a body, or of a chunk and its line end

	skipped int // number of bytes of empty lines before requests that the last call of follow removed

	start []byte // the start of the current line, up to longestStart bytes
	last  byte   // the last byte of the current line before its line end

	minor       byte   // the last digit of the request's HTTP version
	hasLength   bool   // the header has Content-Length
	hasEncoding bool   // the header has Transfer-Encoding
	isLength    bool   // the last field of the header is Content-Length
	length      uint64 // the value of Content-Length
	unknown     bool   // a Content-Length of the header is not a valid size
	broken      atomic.Bool
}

// States of framing: the kind of the next line.
const (
	requestLine int = iota
	fieldLine
	chunkLine   // the size of a chunk
	trailerLine // a line after the last chunk
	lostState   // the end of the request is not known; net/http will refuse the request
)

// longestStart is the maximum number of bytes of a line that framing keeps. A field Content-Length with a valid number
// is shorter, and so is the size of a chunk.
const longestStart = 300

// maxSize is the size in bytes of the largest body or chunk.
const maxSize = 1 << 62

var (
	contentLength    = []byte("content-length")
	transferEncoding = []byte("transfer-encoding")
	colon, newline   = []byte(":"), []byte("\n")
)

func newFraming() framing { return framing{start: make([]byte, 0, longestStart)} }

// follow reads the next bytes of the connection, and returns the number of bytes before the state lostState. It removes
// empty lines before a request (RFC 9112, 2.2) and moves the bytes after them forward.
//
// It also overwrites a byte of two kinds of requests, so that net/http refuses the request and closes the connection.
// If a header has both Content-Length and Transfer-Encoding, follow overwrites the colon after the second of them. If
// the value of Content-Length is too long or goes on in a second line, follow overwrites a byte of the value.
func (f *framing) follow(p []byte) (followed int) {
	f.skipped = 0
	for followed < len(p) && f.state != lostState {
		if f.isBetween() {
			rest := bytes.TrimLeft(p[followed:], "\r\n")
			empty := len(p) - followed - len(rest)
			f.skipped += empty
			p = p[:followed+copy(p[followed:], rest)]
			if len(rest) == 0 {
				break
			}
		}
		if f.left > 0 {
			n := min(f.left, uint64(len(p)-followed))
			f.left -= n
			followed += int(n)
			continue
		}
		line, _, ended := bytes.Cut(p[followed:], newline)
		f.add(line)
		if followed += len(line); ended {
			followed++
			f.end()
			f.start = f.start[:0]
		}
	}
	return followed
}

// isBetween reports whether the next byte begins a request.
func (f *framing) isBetween() bool { return f.state == requestLine && f.left == 0 && len(f.start) == 0 }

// add processes the next bytes of the current line.
func (f *framing) add(more []byte) {
	had := len(f.start)
	f.start = append(f.start, more[:min(len(more), longestStart-had)]...)
	if text := bytes.TrimRight(more, "\r"); len(text) > 0 {
		f.last = text[len(text)-1]
	}
	if f.state != fieldLine || len(f.start) == had {
		return
	}
	if f.isLength && had == 0 && isBlank(more[0]) { // the value goes on in this line (RFC 9112, section 5.2)
		more[0] = 0
	}
	name, _, found := bytes.Cut(f.start, colon)
	if !found {
		return
	}
	if isLength := bytes.EqualFold(name, contentLength); isLength && len(f.start) == longestStart {
		more[longestStart-had-1] = 0
	}
	if len(name) < had { // an earlier call has already seen the colon, and has judged this name
		return
	}
	f.hasLength = f.hasLength || bytes.EqualFold(name, contentLength)
	f.hasEncoding = f.hasEncoding || bytes.EqualFold(name, transferEncoding)
	if f.hasLength && f.hasEncoding {
		more[len(name)-had] = 0
		f.broken.Store(true)
	}
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// end processes the end of the current line.
func (f *framing) end() {
	isEmpty := len(f.start) == 0 || len(f.start) == 1 && f.start[0] == '\r'
	switch f.state {
	case requestLine:
		if !isEmpty {
			f.state, f.minor, f.length = fieldLine, f.last, 0
			f.hasLength, f.hasEncoding, f.isLength, f.unknown = false, false, false, false
		}
	case fieldLine:
		if isEmpty {
			f.endHeader()
			return
		}
		name, value, _ := bytes.Cut(f.start, colon)
		if f.isLength = bytes.EqualFold(name, contentLength); f.isLength {
			size, ok := sizeOf(bytes.TrimSpace(value), 10)
			f.length, f.unknown = size, f.unknown || !ok
		}
	case chunkLine:
		digits := bytes.TrimLeft(f.start, "0123456789abcdefABCDEF")
		switch size, ok := sizeOf(f.start[:len(f.start)-len(digits)], 16); {
		case !ok:
			f.state = lostState
		case size == 0:
			f.state = trailerLine
		default:
			f.left = size + uint64(len("\r\n"))
		}
	case trailerLine:
		if isEmpty {
			f.state = requestLine
		}
	}
}

// endHeader processes the end of a header. Like net/http it ignores Transfer-Encoding in HTTP/1.0. If a
// Content-Length is not a valid size, the state becomes lostState only here, at the end of the header, so that
// net/http gets the whole header and can refuse it.
func (f *framing) endHeader() {
	if f.unknown {
		f.state = lostState
		return
	}
	if f.hasEncoding && f.minor != '0' {
		f.state = chunkLine
		return
	}
	f.state, f.left = requestLine, f.length
}

// sizeOf returns the number in the digits. ok is false if the number is not a valid size.
func sizeOf(digits []byte, base int) (size uint64, ok bool) {
	size, err := strconv.ParseUint(string(digits), base, 64)
	return size, err == nil && size <= maxSize
}
