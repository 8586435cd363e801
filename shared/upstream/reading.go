package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"asset-registry/shared/httpwire"
)

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
