package httpserver

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// likeHTTP are texts that look like a part of an answer or of a request. A broker may
// write such texts into an asset.
var likeHTTP = []string{
	"HTTP/1.1 417 ",
	"HTTP/1.0 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request",
	"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n" +
		"Connection: close\r\n\r\n431 Request Header Fields Too Large",
	"HTTP/1.1 501 Not Implemented\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"Unsupported transfer encoding",
	"HTTP/1.1 505 HTTP Version Not Supported: unsupported protocol version\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n505 HTTP Version Not Supported",
	"HTTP/1.1 100 Continue\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	string(refusal(http.StatusBadRequest, fault.Detail{Location: fault.Header, Name: "request", Description: "No."}, nil)),
	"0\r\n\r\n", "1000\r\n", "\r\n0\r\n\r\n", "\r\n\r\n", "\n",
	"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	"transfer-encoding:chunked\ncontent-length:0\n\n",
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"id: 1\ndata: {}\n\n", "event: bookmark\ndata: {\"offset\":\"1\"}\n\n", ":\n\n",
}

// chunks returns a body in chunks of size bytes.
func chunks(body []byte, size int) []byte {
	var b bytes.Buffer
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return append(b.Bytes(), "0\r\n\r\n"...)
}

// request is the bytes that a client sends.
type request struct {
	sent   []byte
	closes bool // the connection ends after the answer
}

// requestsFor returns requests whose answers all have the same body. The server answers a POST with the
// request's body, and a GET with text. If isSized is false, the server does not send the length of an answer, so a
// connection of HTTP/1.0 ends after the answer.
func requestsFor(text []byte, size int, isSized bool) map[string]request {
	const get, post = "GET / HTTP/1.1\r\nHost: a\r\n", "POST / HTTP/1.1\r\nHost: a\r\n"
	sized := append(fmt.Appendf(nil, post+"Content-Length: %d\r\n\r\n", len(text)), text...)
	chunked := append([]byte(post+"Transfer-Encoding: chunked\r\n\r\n"), chunks(text, size)...)
	return map[string]request{
		"GET":                          {[]byte(get + "\r\n"), false},
		"GET, closing":                 {[]byte(get + "Connection: close\r\n\r\n"), true},
		"GET with Pragma":              {[]byte(get + "Pragma: no-cache\r\n\r\n"), false},
		"GET of HTTP/1.0":              {[]byte("GET / HTTP/1.0\r\n\r\n"), true},
		"GET of HTTP/1.0, kept alive":  {[]byte("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), !isSized},
		"POST with a length":           {sized, false},
		"POST with a length and CRLFs": {append(bytes.Clone(sized), "\r\n"...), false},
		"POST in chunks":               {chunked, false},
		"POST in chunks with trailers": {append(bytes.TrimSuffix(bytes.Clone(chunked), []byte("\r\n")),
			"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"...), false},
	}
}

// way is a kind of connection of HTTP/1.
type way struct {
	name string
	dial func() (net.Conn, error)
}

// sayText is a handler that answers with a text in pieces. It sends each piece without delay, so that each
// piece begins a write to the socket. A POST is answered with its body.
type sayText struct {
	text  []byte
	size  int // size of a piece
	sized bool
}

func (s sayText) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := s.text
	if r.Method == http.MethodPost {
		var err error
		if text, err = io.ReadAll(r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if s.sized {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	}
	for len(text) > 0 {
		n := min(s.size, len(text))
		w.Write(text[:n]) // the test notices if bytes are missing
		if s.size < len(s.text) {
			http.NewResponseController(w).Flush()
		}
		text = text[n:]
	}
}

// serveTexts starts servers. They pass each request to *handler, which the test may change at any time. serveTexts
// returns the ways to connect to the servers, a pool for TLS, and the address for HTTP/2.
func serveTexts(t testing.TB, handler *http.Handler) ([]way, *x509.CertPool, string) {
	t.Helper()
	config, pool := withTLS(t)
	config.NextProtos = []string{"h2", "http/1.1"}
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler).ServeHTTP(w, r) })
	plain, _ := serveFor(t, served, ServeOptions{}, defaultTimeouts)
	secure, _ := serveFor(t, served, ServeOptions{TLS: config}, defaultTimeouts)
	return []way{
		{"plain", func() (net.Conn, error) { return net.Dial("tcp", plain) }},
		{"TLS", func() (net.Conn, error) {
			return tls.Dial("tcp", secure, &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}})
		}},
	}, pool, secure
}

// sayTwice sends two requests on a new connection. It sends both before it reads an answer. It checks that each
// answer has exactly the wanted body, and that no byte follows. If the connection ends after the first answer, it
// sends only the first request.
func sayTwice(t testing.TB, dial func() (net.Conn, error), first, last request, want []byte) {
	t.Helper()
	conn, err := dial()
	expect.OK(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	sent, answers := first.sent, 1
	// If the connection ends after the first answer, the second request is not sent: a server that closes a connection
	// with unread bytes resets it.
	if !first.closes {
		sent, answers = append(bytes.Clone(sent), last.sent...), 2
	}
	go conn.Write(sent)
	reader := bufio.NewReader(conn)
	for i := range answers {
		resp, err := http.ReadResponse(reader, nil)
		expect.FatalIf(t, err != nil, "answer %d: got %v, want an answer with %d bytes", i+1, err, len(want))
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(got, want) {
			t.Fatalf("answer %d: got %d, %v and %d bytes, want 200 and %d bytes\ngot  %.300q\nwant %.300q",
				i+1, resp.StatusCode, err, len(got), len(want), got, want)
		}
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // so that the server ends the connection too
		if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
			t.Fatalf("after the answers: got %.300q, %v; want the end", rest, err)
		}
	}
}

// TestTextsLikeHTTPStayWhole sends each text through each kind of request and connection.
// The text must arrive unchanged.
// Promises: texts
func TestTextsLikeHTTPStayWhole(t *testing.T) {
	var handler http.Handler
	ways, pool, h2 := serveTexts(t, &handler)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true,
	}}
	defer client.CloseIdleConnections()
	for _, one := range likeHTTP {
		text := []byte(strings.Repeat(one, 1+20_000/len(one)))
		for _, say := range []sayText{{text, len(one), false}, {text, len(text), true}} {
			if say.size < len(text) { // thousands of pieces would take long, so the text is made shorter
				say.text = say.text[:min(len(text), 40*len(one))]
			}
			handler = say
			for _, way := range ways {
				last := requestsFor(say.text, len(one), say.sized)
				for name, first := range last {
					t.Run(fmt.Sprintf("%.20q/%d %t/%s/%s", one, say.size, say.sized, way.name, name), func(t *testing.T) {
						sayTwice(t, way.dial, first, last["GET"], say.text)
						sayTwice(t, way.dial, last["POST with a length"], first, say.text)
					})
				}
			}
			resp, err := client.Get("https://" + h2)
			expect.OK(t, err)
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.ProtoMajor != 2 || !bytes.Equal(got, say.text) {
				t.Errorf("HTTP/%d: got %d bytes, %v; want HTTP/2 and %d bytes", resp.ProtoMajor, len(got), err, len(say.text))
			}
		}
	}
}

// FuzzTextsStayWhole does the same as TestTextsLikeHTTPStayWhole, with other texts.
func FuzzTextsStayWhole(f *testing.F) {
	var handler http.Handler
	ways, _, _ := serveTexts(f, &handler)
	for i, text := range likeHTTP {
		f.Add([]byte(text), uint16(300), uint16(len(text)), uint8(i), uint8(i), i%2 == 0)
	}
	names := []string{"GET", "GET with Pragma", "GET of HTTP/1.0, kept alive", "GET, closing", "GET of HTTP/1.0",
		"POST with a length", "POST with a length and CRLFs", "POST in chunks", "POST in chunks with trailers"}
	f.Fuzz(func(t *testing.T, one []byte, times, size uint16, first, last uint8, sized bool) {
		if len(one) == 0 {
			return
		}
		text := bytes.Repeat(one, 1+int(times)%(1+40_000/len(one)))
		handler = sayText{text, max(1+int(size), len(text)/50), sized}
		requests := requestsFor(text, max(1+int(size), len(text)/50), sized)
		way := ways[(int(first)+int(last))%len(ways)]
		sayTwice(t, way.dial, requests[names[int(first)%len(names)]], requests[names[int(last)%len(names)]], text)
	})
}
