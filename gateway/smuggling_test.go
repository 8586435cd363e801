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
)

// TestNoRequestHidesInAnother sends what two servers might read differently,
// byte by byte as it is, and holds that the asset service sees exactly the
// requests that the client has got answers for (RFC 9112, 11.2).
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
		post   = "POST /api/2.5/assets HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: " + basic + "\r\n"
		hidden = "GET /api/2.5/assets/hidden HTTP/1.1\r\nHost: a\r\n\r\n"
	)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(hidden))
	for _, c := range []struct {
		name     string
		sent     string
		statuses string   // of the answers, in their order
		seen     []string // by the asset service

	}{
		{"nothing hidden", post + "Content-Length: 2\r\n\r\n{}" + hidden, "201 200", []string{"POST /api/2.5/assets {}", "GET /api/2.5/assets/hidden "}},
		{"a length and chunks, the chunks end first", post + length + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, "400", nil},
		{"a length and chunks, the length ends first", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden), "400", nil},
		{"a length and chunks, after another request", post + "Content-Length: 2\r\n\r\n{}" + post + "Transfer-Encoding: chunked\r\n" + length + "\r\n0\r\n\r\n" + hidden, "201 400", []string{"POST /api/2.5/assets {}"}},
		{"chunks by another name", post + length + "Transfer-Encoding: xchunked\r\n\r\n" + hidden, "400", nil},
		{"chunks twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, "501", nil},
		{"chunks with a blank", post + length + "Transfer-Encoding : chunked\r\n\r\n" + hidden, "400", nil},
		{"chunks after a tab", post + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", "201", []string{"POST /api/2.5/assets "}},
		{"two lengths", post + "Content-Length: 2\r\n" + length + "\r\n{}" + hidden, "400", nil},
		{"the same length twice", post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "201", []string{"POST /api/2.5/assets {}"}},
		{"lengths in a list", post + "Content-Length: 2, 5\r\n\r\n{}" + hidden, "400", nil},
		{"a length with a sign", post + "Content-Length: +2\r\n\r\n{}", "400", nil},
		{"a length below nought", post + "Content-Length: -2\r\n\r\n{}", "400", nil},
		{"a length in hex", post + "Content-Length: 0x2\r\n\r\n{}", "400", nil},
		{"a folded header", post + "Transfer-Encoding:\r\n chunked\r\n" + length + "\r\n" + hidden, "400", nil},
		{"a header folded with a tab", post + "X-A: b\r\n\tContent-Length: 99\r\nContent-Length: 2\r\n\r\n{}", "201", []string{"POST /api/2.5/assets {}"}}, // RFC 9112, 5.2: it is one header
		{"a line that ends in LF", "GET /api/2.5/assets/there HTTP/1.1\nHost: a\n\n" + hidden, "200 200", []string{"GET /api/2.5/assets/there ", "GET /api/2.5/assets/hidden "}},
		{"a bare CR in a header", post + "X-A: b\rContent-Length: 99\r\nContent-Length: 2\r\n\r\n{}", "400", nil},
		{"a nought in a header", post + "X-A: b\x00c\r\nContent-Length: 2\r\n\r\n{}", "400", nil},
		{"a chunk of no number", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", "400", nil},
		{"a chunk that is too long", post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n", "400", nil},
		{"the whole address", "GET http://a/api/2.5/assets/there HTTP/1.1\r\nHost: b\r\n\r\n", "200", []string{"GET /api/2.5/assets/there "}},
		{"the address of another", "GET http://evil.example/api/2.5/assets/there HTTP/1.1\r\nHost: a\r\n\r\n", "200", []string{"GET /api/2.5/assets/there "}},
		{"a body of a reading", "GET /api/2.5/assets/there HTTP/1.1\r\nHost: a\r\n" + length + "\r\n" + hidden, "200", []string{"GET /api/2.5/assets/there "}},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404", nil},
		{"an upgrade to HTTP/2", "GET /api/2.5/assets/there HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "200", []string{"GET /api/2.5/assets/there "}},
		{"a connection through us", "CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n", "404", nil},
		{"a second request in a path", "GET /api/2.5/assets/x%20HTTP/1.1%0d%0aHost:%20a%0d%0a%0d%0aGET%20/hidden HTTP/1.1\r\nHost: a\r\n\r\n", "404", nil},
		{"a request before its answer", "GET /api/2.5/assets/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /api/2.5/assets/2 HTTP/1.1\r\nHost: a\r\n\r\n", "200 200", []string{"GET /api/2.5/assets/1 ", "GET /api/2.5/assets/2 "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			mu.Lock()
			seen = nil
			mu.Unlock()
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, c.sent)
			var statuses []string
			for reader := bufio.NewReader(conn); ; {
				conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // then no more answers come
				resp, err := http.ReadResponse(reader, nil)
				if err != nil {
					break
				}
				if kind := resp.Header.Get("Content-Type"); kind != "application/json" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("answered %d with %v", resp.StatusCode, resp.Header)
				}
				statuses = append(statuses, fmt.Sprint(resp.StatusCode))
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Close {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(statuses, " "); got != c.statuses || strings.Join(seen, "|") != strings.Join(c.seen, "|") {
				t.Errorf("got %s, want %s; the asset service has seen %q, want %q", got, c.statuses, seen, c.seen)
			}
		})
	}
}
