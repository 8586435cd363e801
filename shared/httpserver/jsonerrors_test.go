package httpserver

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
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
	const twoFramings = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	tooLarge := strings.Repeat("x", maxHeaderBytes+8192)
	for _, c := range []struct {
		name, sent string
		status     int
		says       string
	}{
		{"no HTTP", "hello\r\n\r\n", 400, "understood"},
		{"no Host", "GET / HTTP/1.1\r\n\r\n", 400, "understood"},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "understood"},
		{"a space in a header's name", "GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n", 400, "understood"},
		{"headers over the limit", "GET / HTTP/1.1\r\nHost: a\r\nA: " + tooLarge + "\r\n\r\n", 431, "bytes"},
		{"a path over the limit", "GET /" + tooLarge + " HTTP/1.1\r\nHost: a\r\n\r\n", 431, "bytes"},
		{"an unknown Transfer-Encoding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "chunked"},
		{"an unknown Expect", "POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nContent-Length: 1\r\n\r\nx",
			417, "100-continue"},
		{"an unknown Expect in HTTP/1.0", "GET / HTTP/1.0\r\nExpect: miracles\r\n\r\n", 417, "100-continue"},
		{"an unknown version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "HTTP/1.1"},
		{"two framings", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			400, "both"},
		{"two framings, in another order and case",
			"POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-encoding:chunked\r\nA: b\r\ncontent-LENGTH: 0\r\n\r\n", 400, "both"},
		{"two framings, lines that end in LF",
			"POST / HTTP/1.1\nHost: a\nContent-Length: 4\nTransfer-Encoding: chunked\n\n0\r\n\r\n", 400, "both"},
		{"two framings of a GET", "GET / HTTP/1.1\r\nHost: a\r\n" + twoFramings, 400, "both"},
		{"two framings in HTTP/1.0", "POST / HTTP/1.0\r\n" + twoFramings, 400, "both"},
	} {
		for way, dial := range dials {
			t.Run(c.name+"/"+way, func(t *testing.T) { refused(t, dial, c.sent, c.status, c.says) })
		}
	}
	t.Run("HTTP on the port of HTTPS", func(t *testing.T) {
		dial := func() (net.Conn, error) { return net.Dial("tcp", secure) }
		refused(t, dial, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "HTTPS")
	})
}

// refused sends bytes and checks that the server answers with a JSON error. The error must have the status, and
// contain the text in the argument `says`.
func refused(t *testing.T, dial func() (net.Conn, error), sent string, status int, says string) {
	t.Helper()
	conn, err := dial()
	expect.OK(t, err)
	defer conn.Close()
	go io.WriteString(conn, sent)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	expect.OK(t, err)
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
	expect.Equal(t, resp.StatusCode, status, "status")
	for _, h := range []struct{ name, want string }{
		{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"},
	} {
		expect.Equal(t, resp.Header.Get(h.name), h.want, "%s", h.name)
	}
}

// TestRefusalsHaveTheHeadersOfTheServer sends requests that the HTTP server itself refuses.
// Promises: cors-refusals
func TestRefusalsHaveTheHeadersOfTheServer(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	addr, _ := serveFor(t, served, ServeOptions{Refusals: http.Header{"X-Of": {"us"}, "Vary": {"Origin"}}}, defaultTimeouts)
	for _, c := range []struct{ name, sent string }{
		{"400", "GET / HTTP/1.1\r\norigin: https://a.example\r\nA b: c\r\n\r\n"},
		{"417", "GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n"},
		{"431", "GET / HTTP/1.1\r\nHost: a\r\nA: " + strings.Repeat("x", maxHeaderBytes+8192) + "\r\n\r\n"},
		{"431", "GET /" + strings.Repeat("x", maxHeaderBytes+40<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"431", "GET / HTTP/1.1\r\nA: " + strings.Repeat("x", maxHeaderBytes+8192)}, // no more bytes come
		{"400", "GET\r\nHost: a\r\n" + strings.Repeat("D: efgh\r\n", 1000) + "\r\n"},
		{"501", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"},
		{"505", "GET / HTTP/3.0\r\nHost: a\r\nOrigin: null\r\n\r\n"},
		{"505", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	} {
		conn := connect(t, addr)
		go io.WriteString(conn, c.sent)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		expect.Must(t, err, "%s", c.name)
		_, err = io.Copy(io.Discard, resp.Body)
		if got := resp.Header.Get("X-Of"); err != nil || got != "us" || !strings.HasPrefix(resp.Status, c.name) ||
			resp.Header.Get("Vary") != "Origin" {
			t.Errorf("%s: got %s, %v and %q; want the server's headers", c.name, resp.Status, err, got)
		}
	}
}

// TestLongHeadsOverTLS sends heads below and above the limit over HTTP/2 and HTTP/1.1. Each refusal must be JSON and
// have the server's headers. net/http's own answer to HTTP/2 would be HTML without the headers of the server.
func TestLongHeadsOverTLS(t *testing.T) {
	config, pool := withTLS(t)
	config.NextProtos = []string{"h2", "http/1.1"}
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	addr, _ := serveFor(t, served, ServeOptions{TLS: config, Refusals: http.Header{"X-Of": {"us"}}}, defaultTimeouts)
	for _, major := range []int{1, 2} {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: major == 2,
		}}
		for _, c := range []struct {
			path, value string
			status      int
		}{
			{"", strings.Repeat("x", maxHeaderBytes-600), 200},
			{"", strings.Repeat("x", maxHeaderBytes), 431},
			{"", strings.Repeat("x", 3*maxHeaderBytes-2000), 431},
			{strings.Repeat("y", maxHeaderBytes/2), strings.Repeat("x", maxHeaderBytes/2), 431},
		} {
			r, err := http.NewRequest("GET", "https://"+addr+"/"+c.path, nil)
			expect.OK(t, err)
			r.Header.Set("A", c.value)
			resp, err := client.Do(r)
			expect.Must(t, err, "HTTP/%d, %d bytes", major, len(c.value))
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != c.status || resp.ProtoMajor != major {
				t.Errorf("HTTP/%d, %d bytes: got %s %s, %v; want %d", major, len(c.value), resp.Proto, resp.Status, err, c.status)
			}
			if c.status == 431 && (resp.Header.Get("X-Of") != "us" || !json.Valid(text)) {
				t.Errorf("HTTP/%d, %d bytes: got %v %s; want JSON and the headers of the server", major, len(c.value),
					resp.Header, text)
			}
		}
	}
}

// TestEmptyLinesBeforeARequestAreSkipped sends empty lines before and between requests. Some clients send an
// empty line after a body (RFC 9112, 2.2). All requests must be answered.
func TestEmptyLinesBeforeARequestAreSkipped(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Method)
		io.Copy(w, r.Body)
	})
	const get, put = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\r\n"
	const chunked = "PATCH / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
	sent := "\r\n" + get + "\r\n\n" + put + "\r\n" + chunked + "\r\n\r\n" + get + "\n" + put
	want := []string{"GET", "PUT\r\n", "PATCHab", "GET", "PUT\r\n"}
	addr, _ := serveFor(t, echo, ServeOptions{}, defaultTimeouts)
	for _, size := range []int{1, 2, 3, 7, len(sent)} {
		conn := connect(t, addr)
		go func() {
			for rest := sent; rest != ""; rest = rest[min(size, len(rest)):] {
				if _, err := io.WriteString(conn, rest[:min(size, len(rest))]); err != nil {
					return
				}
			}
		}()
		reader := bufio.NewReader(conn)
		for i := range want {
			resp, err := http.ReadResponse(reader, nil)
			expect.Must(t, err, "pieces of %d bytes, answer %d", size, i)
			text, err := io.ReadAll(resp.Body)
			if err != nil || string(text) != want[i] {
				t.Fatalf("pieces of %d bytes, answer %d: got %s %q, %v; want %q", size, i, resp.Status, text, err, want[i])
			}
		}
	}
}

func TestARefusalFollowsAnAnswer(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })
	addr, _ := serveFor(t, served, ServeOptions{}, defaultTimeouts)
	conn := connect(t, addr)
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"+
		"GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n")
	reader := bufio.NewReader(conn)
	for _, want := range []struct {
		status int
		text   string
	}{{200, "served"}, {200, "served"}, {417, `{"status":"error"`}} {
		resp, err := http.ReadResponse(reader, nil)
		expect.OK(t, err)
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want.status || !strings.HasPrefix(string(text), want.text) {
			t.Errorf("got %d %q, %v; want %d %q", resp.StatusCode, text, err, want.status, want.text)
		}
	}
}
