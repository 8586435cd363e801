package lean

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"asset-registry/shared/httpwire"
)

var endOfHead = []byte("\r\n\r\n")

const endOfRequestLine = " HTTP/1.1\r\n"

// parse reads the first request of b into r, which must be new. It returns the size of the request's head. It returns
// 0 if a part of the head is missing, or if the request is not simple. A request is simple if
//
//   - its first line is GET or HEAD, a path, and HTTP/1.1, with single spaces,
//   - each further line ends with CR LF, and has a name, a colon, and a value of printable ASCII,
//   - it has one Host, of the characters of names, addresses and ports,
//   - and it has none of the fields that net/http itself acts on (the list `difficult`).
//
// The request equals the one that net/http's server makes.
func parse(b []byte, r *http.Request) (size int) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		return 0
	}
	size = end + len(endOfHead)
	head := string(b[:end+2])
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.Body = "HTTP/1.1", 1, 1, http.NoBody
	fields, ok := parseRequestLine(r, head)
	if !ok {
		return 0
	}
	r.Header, ok = httpwire.Fields(fields, difficult)
	if !ok {
		return 0
	}
	hosts := r.Header["Host"]
	if len(hosts) != 1 || !httpwire.IsHost(hosts[0]) {
		return 0
	}
	r.Host = hosts[0]
	delete(r.Header, "Host")
	return size
}

// parseRequestLine reads the first line of head, and sets the fields of r from it. It returns the other lines of head.
// The result `ok` is false if the line is not simple.
func parseRequestLine(r *http.Request, head string) (fields string, ok bool) {
	method, rest, _ := strings.Cut(head, " ")
	if method != http.MethodGet && method != http.MethodHead {
		return "", false
	}
	target, _, _ := strings.Cut(rest, " ")
	if !httpwire.IsTarget(target) || !strings.HasPrefix(rest[len(target):], endOfRequestLine) {
		return "", false
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || u.Host != "" {
		return "", false
	}
	r.Method, r.RequestURI, r.URL = method, target, u
	return rest[len(target)+len(endOfRequestLine):], true
}

// difficult are the header fields that change how net/http reads or handles a request. The field Connection is not
// among them, because httpwire.Fields checks its value.
var difficult = map[string]bool{
	"Content-Length": true, "Expect": true, "Http2-Settings": true, "Pragma": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
}
