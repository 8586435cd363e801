package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestNoRequestHidesInAnother sends bytes that two servers might read differently. The asset service must get
// exactly the requests for which the client gets answers (RFC 9112, section 11.2).
func TestNoRequestHidesInAnother(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := startOnWire(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		io.WriteString(w, "{}")
	}), http.HandlerFunc(known), nil)
	addr := serve(t, s)
	const (
		post = "POST /api/2.5/assets HTTP/1.1\r\nHost: a\r\n" +
			"Content-Type: application/json\r\nAuthorization: " + basic + "\r\n"
		hidden = "GET /api/2.5/assets/hidden HTTP/1.1\r\nHost: a\r\n\r\n"
	)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(hidden))
	for _, c := range []struct {
		name     string
		sent     string
		statuses string   // statuses of the answers, in order
		seen     []string // requests that the asset service got

	}{
		{"two requests in a row", post + "Content-Length: 2\r\n\r\n{}" + hidden,
			"201 200", []string{"POST /api/2.5/assets {}", "GET /api/2.5/assets/hidden "}},
		{"a length and chunks, the length ends first",
			post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" +
				fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden),
			"400", nil},
		{"a length and chunks, after another request",
			post + "Content-Length: 2\r\n\r\n{}" + post + "Transfer-Encoding: chunked\r\n" + length + "\r\n0\r\n\r\n" + hidden,
			"201 400", []string{"POST /api/2.5/assets {}"}},
		{"two Transfer-Encodings",
			post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, "501", nil},
		{"a space before the colon", post + length + "Transfer-Encoding : chunked\r\n\r\n" + hidden, "400", nil},
		{"a tab after the colon", post + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n",
			"201", []string{"POST /api/2.5/assets "}},
		{"two different lengths", post + "Content-Length: 2\r\n" + length + "\r\n{}" + hidden, "400", nil},
		{"the same length twice", post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
			"201", []string{"POST /api/2.5/assets {}"}},
		{"a list of lengths", post + "Content-Length: 2, 5\r\n\r\n{}" + hidden, "400", nil},
		{"a length with a plus sign", post + "Content-Length: +2\r\n\r\n{}", "400", nil},
		{"a negative length", post + "Content-Length: -2\r\n\r\n{}", "400", nil},
		{"a length in hexadecimal", post + "Content-Length: 0x2\r\n\r\n{}", "400", nil},
		{"a folded header", post + "Transfer-Encoding:\r\n chunked\r\n" + length + "\r\n" + hidden, "400", nil},
		// RFC 9112, section 5.2: the two lines are one header, X-A.
		{"a header folded with a tab", post + "X-A: b\r\n\tContent-Length: 99\r\nContent-Length: 2\r\n\r\n{}",
			"201", []string{"POST /api/2.5/assets {}"}},
		{"lines that end in LF", "GET /api/2.5/assets/there HTTP/1.1\nHost: a\n\n" + hidden,
			"200 200", []string{"GET /api/2.5/assets/there ", "GET /api/2.5/assets/hidden "}},
		{"a bare CR in a header", post + "X-A: b\rContent-Length: 99\r\nContent-Length: 2\r\n\r\n{}", "400", nil},
		{"a zero byte in a header", post + "X-A: b\x00c\r\nContent-Length: 2\r\n\r\n{}", "400", nil},
		{"a chunk size that is no number", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "400", nil},
		{"a chunk size that overflows",
			post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n", "400", nil},
		{"an absolute URL", "GET http://a/api/2.5/assets/there HTTP/1.1\r\nHost: b\r\n\r\n",
			"200", []string{"GET /api/2.5/assets/there "}},
		{"an absolute URL of another host", "GET http://evil.example/api/2.5/assets/there HTTP/1.1\r\nHost: a\r\n\r\n",
			"200", []string{"GET /api/2.5/assets/there "}},
		{"a GET with a body", "GET /api/2.5/assets/there HTTP/1.1\r\nHost: a\r\n" + length + "\r\n" + hidden,
			"200", []string{"GET /api/2.5/assets/there "}},
		{"an upgrade to HTTP/2", "GET /api/2.5/assets/there HTTP/1.1\r\nHost: a\r\n" +
			"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
			"200", []string{"GET /api/2.5/assets/there "}},
		{"CONNECT", "CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n", "404", nil},
		{"an escaped request in a path", "GET /api/2.5/assets/x%20HTTP/1.1%0d%0aHost:%20a%0d%0a%0d%0aGET%20/hidden " +
			"HTTP/1.1\r\nHost: a\r\n\r\n", "404", nil},
		{"pipelined requests", "GET /api/2.5/assets/1 HTTP/1.1\r\nHost: a\r\n\r\n" +
			"GET /api/2.5/assets/2 HTTP/1.1\r\nHost: a\r\n\r\n",
			"200 200", []string{"GET /api/2.5/assets/1 ", "GET /api/2.5/assets/2 "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mu.Lock()
			seen = nil
			mu.Unlock()
			conn, err := net.Dial("tcp", addr)
			expect.OK(t, err)
			defer conn.Close()
			io.WriteString(conn, c.sent)
			var statuses []string
			for reader := bufio.NewReader(conn); ; {
				conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // long enough for all answers
				resp, err := http.ReadResponse(reader, nil)
				if err != nil {
					break
				}
				kind := resp.Header.Get("Content-Type")
				if kind != "application/json" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("got %d with %v, want JSON and nosniff", resp.StatusCode, resp.Header)
				}
				statuses = append(statuses, fmt.Sprint(resp.StatusCode))
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Close {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(statuses, " "); got != c.statuses || strings.Join(seen, "|") != strings.Join(c.seen, "|") {
				t.Errorf("got the statuses %s, want %s; got %q at the asset service, want %q", got, c.statuses, seen, c.seen)
			}
		})
	}
}
