package httpserver

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestOneFramingIsEnough first sends requests that look as if they had both Content-Length and Transfer-Encoding, but
// have only one of them. The last request has both. The server must refuse only the last request. The test sends the
// bytes in pieces of different sizes.
func TestOneFramingIsEnough(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	addr, _ := serveFor(t, echo, ServeOptions{}, defaultTimeouts)
	const (
		length = "POST / HTTP/1.1\r\nHost: a\r\nX-Content-Length: 9\r\nContent-Length: 32\r\n\r\n" +
			"{\"Transfer-Encoding: chunked\":1}"
		chunked = "POST / HTTP/1.1\r\nHost: a\r\nA: Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"16\r\n{\"Content-Length: 3\":1\r\n1\r\n}\r\n0\r\n\r\n"
		both = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	)
	sent := length + chunked + length + both + length
	for size := 1; size < len(sent); size += 7 {
		conn := connect(t, addr) // Go sends each piece without delay (TCP_NODELAY)
		go func() {
			for rest := sent; rest != ""; rest = rest[min(size, len(rest)):] {
				if _, err := io.WriteString(conn, rest[:min(size, len(rest))]); err != nil {
					return // the server has closed the connection, as it should
				}
			}
		}()
		var got []int
		var bodies []string
		for reader := bufio.NewReader(conn); ; {
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				break
			}
			body, _ := io.ReadAll(resp.Body)
			if got = append(got, resp.StatusCode); resp.Close {
				break
			}
			bodies = append(bodies, string(body))
		}
		want := []string{`{"Transfer-Encoding: chunked":1}`, `{"Content-Length: 3":1}`, `{"Transfer-Encoding: chunked":1}`}
		if !slices.Equal(got, []int{200, 200, 200, 400}) || !slices.Equal(bodies, want) {
			t.Fatalf("in pieces of %d bytes: got %v and the bodies %q; want [200 200 200 400] and %q",
				size, got, bodies, want)
		}
	}
}

// FuzzFraming sends the same bytes whole and in two parts. The result must be the same.
func FuzzFraming(f *testing.F) {
	f.Add([]byte("A b\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 9)
	f.Add([]byte("A b\nContent-Length: 1\n\nTransfer-Encoding: chunked\n\n"), 1)
	f.Add([]byte("A b\r\nContent-Length: 1\r\n 2\r\n\r\n"), 26)
	f.Add([]byte("A b\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nabcde\r\n0\r\n\r\nA b"), 40)
	f.Fuzz(func(t *testing.T, sent []byte, at int) {
		at = min(max(at, 0), len(sent))
		find := func(pieces ...[]byte) string {
			found, all := newFraming(), []byte{}
			for _, piece := range pieces {
				all = append(all, piece[:found.follow(piece)]...)
			}
			return string(all)
		}
		if whole, cut := find(bytes.Clone(sent)), find(bytes.Clone(sent[:at]), bytes.Clone(sent[at:])); whole != cut {
			t.Errorf("cut at %d: got %q, want %q, the result without a cut", at, cut, whole)
		}
	})
}

// FuzzSameRequests sends the same bytes to net/http with and without framing. The client then waits until the
// connection ends. With framing the handler must see the same requests, or fewer because one was refused.
func FuzzSameRequests(f *testing.F) {
	var seen []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte("broken")
		}
		seen = append(seen, fmt.Sprintf("%s %q %s %v %q %v", r.Method, r.RequestURI, r.Proto, r.Header, body, r.Trailer))
		w.Write(body)
	})
	followed, _ := serveFor(f, handler, ServeOptions{}, defaultTimeouts)
	server := httptest.NewUnstartedServer(lingering(handler))
	server.Config.MaxHeaderBytes, server.Config.DisableGeneralOptionsHandler = maxHeaderBytes, true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	f.Cleanup(server.Close)
	for _, sent := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\na\nb\r\n0A \r\n0123456789\r\n" +
			"0\r\nA: b\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n1\r\na\r\n0\r\n\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc" +
			"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + strings.Repeat("0", 60) + "3\r\n\r\nabc" +
			"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nabc",
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nOPTIONS * HTTP/1.0\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(sent))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		run := func(addr string) (requests []string, answer string) {
			conn, err := net.Dial("tcp", addr)
			expect.OK(t, err)
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			seen = nil
			go func() {
				_, _ = conn.Write(sent) // the server may close the connection first
				_ = conn.(*net.TCPConn).CloseWrite()
			}()
			text, _ := io.ReadAll(conn)
			return seen, string(text)
		}
		f := newFraming()
		if f.follow(bytes.Clone(sent)); f.skipped > 0 {
			return // unlike framing, net/http does not skip empty lines
		}
		want, _ := run(server.Listener.Addr().String())
		got, answer := run(followed)
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("for %q:\ngot  %q\nwant %q or fewer", sent, got, want)
		}
		mayRefuse := strings.Contains(strings.ToLower(string(sent)), "content-length")
		if len(got) < len(want) && (!mayRefuse || !strings.Contains(answer, "HTTP/1.1 400 ")) {
			t.Fatalf("for %q:\ngot  %q and the answers %q\nwant %q", sent, got, answer, want)
		}
	})
}
