package e2e

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// testOnWire sends bytes that no client library would send (docs/contract.md, "Framing"). The function `dial` must
// connect directly to the registry, because a load balancer would change or refuse some of these bytes.
func testOnWire(t *testing.T, dial func() (net.Conn, error)) {
	const next = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
	post := "POST /api/2.5/assets HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	keyed := post + "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("broker:")) + "\r\n"
	for _, c := range []struct {
		name   string
		sent   string
		status int
		last   bool // whether the registry closes the connection after this answer
	}{
		{"a length and chunks", keyed + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next, 400,
			true},
		{"chunks and a length without a key",
			post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" +
				next, 400, true},
		{"no key and a missing body", post + "Content-Length: 100\r\n\r\n", 401, false},
		{"another media type and a missing body", strings.Replace(keyed, "application/json", "text/plain", 1) +
			"Content-Length: 100\r\n\r\n", 415, false},
		{"a compressed body that is missing", keyed + "Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n", 415,
			false},
		{"an unknown asset and a missing body",
			"PATCH /api/2.5/assets/none HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n",
			404, false},
		{"an unknown path and a missing body",
			"PUT /api/2.5/nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", 404,
			false},
		{"a GET with a missing body", "GET /api/2.5/assets HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", 200,
			false},
		{"another server's cookie and a missing body", keyed + "Cookie: SERVER_ID=gone\r\nContent-Length: 100\r\n\r\n",
			412, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// The registry waits for a body for 30 s, but these answers must come without the body.
			conn.SetDeadline(time.Now().Add(20 * time.Second))
			io.WriteString(conn, c.sent)
			reader := bufio.NewReader(conn)
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status {
				t.Fatalf("got %d %s, %v, want %d", resp.StatusCode, text, err, c.status)
			}
			if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("got Content-Type %q, want application/json", kind)
			}
			if !c.last {
				return
			}
			if more, err := io.ReadAll(reader); err != nil || len(more) > 0 || !resp.Close {
				t.Errorf("after the answer: got %q, %v, want the end of the connection", more, err)
			}
		})
	}
}
