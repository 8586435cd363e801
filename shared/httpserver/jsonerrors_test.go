package httpserver

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestRefusalsBeforeAnyHandlerAreInJSON(t *testing.T) {
	config, pool := withTLS(t)
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	plain, _ := serveFor(t, served, ServeOptions{}, defaultTimeouts)
	secure, _ := serveFor(t, served, ServeOptions{TLS: config}, defaultTimeouts)
	dials := map[string]func() (net.Conn, error){
		"plain":    func() (net.Conn, error) { return net.Dial("tcp", plain) },
		"with TLS": func() (net.Conn, error) { return tls.Dial("tcp", secure, &tls.Config{RootCAs: pool}) },
	}
	for _, c := range []struct {
		name   string
		sent   string
		status int
		says   string
	}{
		{"no HTTP", "hello\r\n\r\n", 400, "understood"},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, "understood"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "understood"},
		{"a header's name", "GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n", 400, "understood"},
		{"large headers", "GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", maxHeaderBytes+8192) + "\r\n\r\n", 431, "bytes"},
		{"a long path", "GET /" + strings.Repeat("x", maxHeaderBytes+8192) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431, "bytes"},
		{"another encoding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "chunked"},
		{"another wish", "POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\nx", 417, "100-continue"},
		{"a version to come", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "HTTP/1.1"},
		{"two framings", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "both"},
		{"in another order", "POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-encoding:chunked\r\nA: b\r\ncontent-LENGTH: 0\r\n\r\n", 400, "both"},
		{"with bare ends", "POST / HTTP/1.1\nHost: a\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\r\n\r\n", 400, "both"},
		{"of a GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "both"},
		{"of HTTP/1.0", "POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "both"},
	} {
		for way, dial := range dials {
			t.Run(c.name+"/"+way, func(t *testing.T) { refused(t, dial, c.sent, c.status, c.says) })
		}
	}
	t.Run("HTTP where there is TLS", func(t *testing.T) {
		refused(t, func() (net.Conn, error) { return net.Dial("tcp", secure) }, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "HTTPS")
	})
}

// refused checks that the server answers what is sent with an error body.
func refused(t *testing.T, dial func() (net.Conn, error), sent string, status int, says string) {
	t.Helper()
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(conn, sent)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var body struct {
		Status string
		Errors []struct{ Location, Name, Description string }
	}
	if err != nil || json.Unmarshal(text, &body) != nil || body.Status != "error" || len(body.Errors) != 1 ||
		!strings.Contains(body.Errors[0].Description, says) {
		t.Errorf("got %s, %v; want one error that says %q", text, err, says)
	}
	if resp.StatusCode != status {
		t.Errorf("got status %d, want %d", resp.StatusCode, status)
	}
	for _, h := range []struct{ name, want string }{
		{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"},
	} {
		if got := resp.Header.Get(h.name); got != h.want {
			t.Errorf("%s: got %q, want %q", h.name, got, h.want)
		}
	}
}

// FuzzRefusal checks that only net/http's own refusals are rewritten.
func FuzzRefusal(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"))
	f.Add([]byte("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 417 Expectation Failed\r\n\r\n"))
	f.Fuzz(func(t *testing.T, written []byte) {
		near, far := net.Pipe()
		got := make(chan []byte)
		go func() {
			text, _ := io.ReadAll(far)
			got <- text
		}()
		if n, err := newJSONConn(near).Write(written); err != nil || n != len(written) {
			t.Fatalf("got %d bytes written, %v; want %d", n, err, len(written))
		}
		near.Close()
		text := <-got
		if !bytes.Equal(text, written) && (written[9] < '4' || !bytes.Contains(text, []byte("\r\nContent-Type: application/json\r\n"))) {
			t.Fatalf("got %q, want %q unchanged", text, written)
		}
	})
}
