package upstream

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"asset-registry/shared/testing/expect"
)

// TestReadingsAreWrittenAsByNetHTTP compares the requests that a server gets from this package and from
// net/http. They must be equal.
func TestReadingsAreWrittenAsByNetHTTP(t *testing.T) {
	for _, header := range []http.Header{
		nil,
		{"User-Agent": {"a"}, "Accept": {"b", "c"}},
		{"User-Agent": {""}},
		{"User-Agent": nil},
		{"User-Agent": {"a", "b"}},
		{"X-Ends": {"a\r\nX-Split: 1", " \tb "}, "Not a name": {"x"}, "Empty": {""}},
		{"Host": {"x"}, "Content-Length": {"5"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"x"}},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r, err := http.NewRequest(method, "http://a/b%20c?d=e%2f&f", nil)
			expect.OK(t, err)
			if header != nil {
				r.Header = header
			}
			var theirs bytes.Buffer
			out := r.WithContext(t.Context())
			out.Host = "server:80"
			expect.OK(t, out.Write(&theirs))
			want := requestOf(t, theirs.Bytes())
			got := requestOf(t, appendReading(nil, r, r.URL.RequestURI(), "server:80"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with %v: net/http (-), this package (+):\n%s", method, header, diff)
			}
		}
	}
}

func requestOf(t *testing.T, b []byte) map[string]any {
	t.Helper()
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	expect.Must(t, err, "%q", b)
	return map[string]any{"method": r.Method, "target": r.RequestURI, "host": r.Host, "header": r.Header}
}

// FuzzParseAnswer checks each answer that parseAnswer accepts. http.ReadResponse must return the same result for
// this answer.
func FuzzParseAnswer(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: a\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nEtag: a\r\nContent-Length: 5\r\n\r\n",
		"HTTP/1.1 204 \r\n\r\n",
		"HTTP/1.1 404 Not Found\r\ncontent-length: 1\r\nConnection: keep-alive\r\nA: b\r\na: c\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nto the end",
		"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 5\r\n\r\nshort",
	} {
		f.Add([]byte(answer), false)
		f.Add([]byte(answer), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, head bool) {
		r := &http.Request{Method: http.MethodGet}
		if head {
			r.Method = http.MethodHead
		}
		got, size := parseAnswer(b, r)
		if got == nil {
			return
		}
		want, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), r)
		expect.FatalIf(t, err != nil, "%q: got an answer, want %v", b, err)
		if got.Body == nil {
			got.Body = &body{from: bytes.NewReader(b[size:]), left: got.ContentLength}
		}
		wantBody, wantErr := io.ReadAll(want.Body)
		gotBody, gotErr := io.ReadAll(got.Body)
		if !bytes.Equal(gotBody, wantBody) || gotErr != wantErr {
			t.Errorf("%q: got body %q, %v; want %q, %v", b, gotBody, gotErr, wantBody, wantErr)
		}
		ignored := cmp.Options{cmpopts.IgnoreFields(http.Response{}, "Body", "Request"), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(want, got, ignored); diff != "" {
			t.Errorf("%q: net/http (-), this package (+):\n%s", b, diff)
		}
	})
}

// TestABodyThatFailsEndsItsRequest sends bodies that end too early. Each request must return an error.
func TestABodyThatFailsEndsItsRequest(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	t.Cleanup(s.Close)
	p := newPool(t, s.URL)
	for range 2 { // each request needs a new connection, because the failed one is closed
		r := expect.Get(http.NewRequestWithContext(t.Context(), "POST", "http://service/",
			io.NopCloser(strings.NewReader("12"))))(t)
		r.ContentLength = 3
		if resp, err := p.RoundTrip(r); err == nil {
			resp.Body.Close()
			t.Errorf("got the answer %d, want an error", resp.StatusCode)
		}
	}
}
