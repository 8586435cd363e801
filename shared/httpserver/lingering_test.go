package httpserver

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// TestABodyThatHasArrivedIsInTime checks that the read timeout does not count after the body has arrived. A handler may
// then take longer, and the connection stays usable.
func TestABodyThatHasArrivedIsInTime(t *testing.T) {
	short := defaultTimeouts
	short.read = 100 * time.Millisecond
	addr, _ := serveFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		expect.ErrOf(t, nil, "")(io.Copy(io.Discard, r.Body))
		select {
		case <-r.Context().Done():
			t.Error("got a cancelled request, want it to go on")
		case <-time.After(3 * short.read):
		}
	}), ServeOptions{}, short)
	conn := connect(t, addr)
	reader := bufio.NewReader(conn)
	for _, rest := range []string{
		"\r\n", "Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "\r\n",
	} {
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+rest)
		resp, err := http.ReadResponse(reader, nil)
		if err != nil || resp.StatusCode != 200 || resp.Close {
			t.Fatalf("got %v, %v; want 200 on an open connection", resp, err)
		}
	}
}

// TestARefusedBodyIsTaken checks that a client that sends its whole body before it
// reads still gets the refusal.
func TestARefusedBodyIsTaken(t *testing.T) {
	engine := newEngine(io.Discard, nil)
	refuse := func(c *gin.Context) error { return fault.New(fault.TooLarge, fault.Body, "data", "no") }
	engine.POST("/unread", Handle(refuse))
	engine.POST("/begun", Handle(func(c *gin.Context) error {
		if _, err := io.ReadFull(c.Request.Body, make([]byte, 9)); err != nil {
			return err
		}
		return refuse(c)
	}))
	addr, _ := serveFor(t, engine, ServeOptions{}, defaultTimeouts)
	const size = 10_000_000
	large := strings.Repeat(" ", size)
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, large)
	for _, c := range []struct {
		name               string
		path, header, body string
		goesOn             bool // the connection stays open
	}{
		{"a body with a Content-Length", "/unread", fmt.Sprintf("Content-Length: %d", size), large, false},
		{"a chunked body", "/unread", "Transfer-Encoding: chunked", chunks, false},
		{"a chunked body that the handler began to read", "/begun", "Transfer-Encoding: chunked", chunks, false},
		{"a body after 100 Continue", "/begun", "Expect: 100-continue\r\nTransfer-Encoding: chunked", chunks, false},
		{"a small body", "/unread", "Content-Length: 5", "12345", true},
		{"a malformed body", "/unread", "Transfer-Encoding: chunked", "x\r\n", false},
		{"a body that never comes", "/unread", fmt.Sprintf("Content-Length: %d", size), "", false},
		{"a body that waits for 100 Continue", "/unread",
			fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d", size), "", false},
		{"a Content-Length over maxRest", "/unread", fmt.Sprintf("Content-Length: %d", maxRest+1), "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, addr)
			expect.Get(io.WriteString(conn, "POST "+c.path+" HTTP/1.1\r\nHost: a\r\n"+c.header+"\r\n\r\n"+c.body))(t)
			reader := bufio.NewReader(conn)
			resp, err := http.ReadResponse(reader, nil)
			if err == nil && resp.StatusCode == http.StatusContinue {
				resp, err = http.ReadResponse(reader, nil)
			}
			expect.OK(t, err)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 413 || resp.Close == c.goesOn {
				t.Fatalf("got %d %v, %v; want 413, open connection: %t", resp.StatusCode, resp.Header, err, c.goesOn)
			}
			if !c.goesOn {
				if more, err := io.ReadAll(reader); len(more) > 0 || err != nil {
					t.Errorf("after the answer: got %q, %v; want the end", more, err)
				}
				return
			}
			io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
			if next, err := http.ReadResponse(reader, nil); err != nil || next.StatusCode != 200 {
				t.Errorf("next request: got %v, %v; want 200", next, err)
			}
		})
	}
}

// serveBothWays serves with and without TLS, and returns functions that connect.
func serveBothWays(t *testing.T, handler http.Handler, p timeouts) map[string]func() net.Conn {
	t.Helper()
	config, pool := withTLS(t)
	plain, _ := serveFor(t, handler, ServeOptions{}, p)
	secure, _ := serveFor(t, handler, ServeOptions{TLS: config}, p)
	return map[string]func() net.Conn{
		"plain": func() net.Conn { return connect(t, plain) },
		"with TLS": func() net.Conn {
			conn := tls.Client(connect(t, secure), &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
			t.Cleanup(func() { conn.Close() })
			return conn
		},
	}
}

// TestARefusalWaitsForNoBody checks that an answer does not wait for a body that
// does not come. The read timeout is an hour.
func TestARefusalWaitsForNoBody(t *testing.T) {
	engine := newEngine(io.Discard, nil)
	engine.POST("/fault", Handle(func(*gin.Context) error {
		return fault.New(fault.Unauthorized, fault.Header, "Authorization", "no")
	}))
	engine.GET("/large", func(c *gin.Context) { c.String(http.StatusOK, strings.Repeat("x", 1<<20)) })
	endless := defaultTimeouts
	endless.read = time.Hour
	const next = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
	for way, dial := range serveBothWays(t, engine, endless) {
		for _, c := range []struct {
			name    string
			request string
			status  int
			then    string // bytes to send after the answer
			goesOn  bool   // a second answer comes
		}{
			{"a POST of a route", "POST /fault", 401, "", false},
			{"an unknown path", "PATCH /nowhere", 404, "", false},
			{"a refused GET", "GET /fault", 403, "", false},
			{"a GET", "GET /livez", 200, "", false},
			{"a GET with a large answer", "GET /large", 200, "", false},
			{"a body after the answer", "POST /fault", 401, strings.Repeat("x", 100) + next, true},
			{"a request instead of the body", "POST /fault", 401, next, false},
		} {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				conn := dial()
				conn.SetDeadline(time.Now().Add(time.Minute)) // ends the test if the server does not answer
				io.WriteString(conn, c.request+" HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n")
				reader := bufio.NewReader(conn)
				resp, err := http.ReadResponse(reader, nil)
				expect.OK(t, err)
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != c.status {
					t.Fatalf("got %d, %v; want %d", resp.StatusCode, err, c.status)
				}
				io.WriteString(conn, c.then)
				second, err := http.ReadResponse(reader, nil)
				if goesOn := err == nil && second.StatusCode == http.StatusOK; goesOn != c.goesOn {
					t.Errorf("second answer: got %v, %v; want one: %t", second, err, c.goesOn)
				}
			})
		}
	}
}
