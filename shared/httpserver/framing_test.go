package httpserver

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"
)

// TestOneFramingIsEnough sends requests with one framing that look as if they had
// two, and then one with two. It sends the bytes in pieces of different sizes.
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
		conn := connect(t, addr) // Go sends each piece at once (TCP_NODELAY)
		go func() {
			for rest := sent; rest != ""; rest = rest[min(size, len(rest)):] {
				if _, err := io.WriteString(conn, rest[:min(size, len(rest))]); err != nil {
					return // the server closed it, as it should
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

// FuzzFraming checks that a cut in the bytes does not change the result.
func FuzzFraming(f *testing.F) {
	f.Add([]byte("A: b\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 9)
	f.Add([]byte("Content-Length: 1\n\nTransfer-Encoding: chunked\n\n"), 1)
	f.Fuzz(func(t *testing.T, sent []byte, at int) {
		at = min(max(at, 0), len(sent))
		find := func(pieces ...[]byte) string {
			found := newJSONConn(nil, nil)
			for _, piece := range pieces {
				found.framing.spoil(piece)
			}
			return string(bytes.Join(pieces, nil))
		}
		if whole, cut := find(bytes.Clone(sent)), find(bytes.Clone(sent[:at]), bytes.Clone(sent[at:])); whole != cut {
			t.Errorf("cut at %d: got %q, want %q, the result without a cut", at, cut, whole)
		}
	})
}
