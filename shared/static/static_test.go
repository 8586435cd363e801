package static_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/static"
	"asset-registry/shared/testing/expect"
)

const content = "some text that is the same for everybody"

func ask(f http.Handler, method string, headers map[string]string) *http.Response {
	r := httptest.NewRequest(method, "/", nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result()
}

func TestAnswers(t *testing.T) {
	f := static.New("text/plain", "no-cache", []byte(content))
	tag, zipped := `"`+f.Tag()+`"`, `"`+f.Tag()+`--gzip"`
	for _, test := range []struct {
		name    string
		method  string
		headers map[string]string
		status  int
		tag     string
		length  int // length of the decoded body
	}{
		{"no Accept-Encoding", "GET", nil, 200, tag, len(content)},
		{"gzip in a list", "GET", map[string]string{"Accept-Encoding": "br, gzip"}, 200, zipped, len(content)},
		{"gzip with a weight", "GET", map[string]string{"Accept-Encoding": "br;q=1, GZIP;q=0.5"},
			200, zipped, len(content)},
		{"gzip with weight 0", "GET", map[string]string{"Accept-Encoding": "gzip;q=0, br"}, 200, tag, len(content)},
		{"HEAD has no body", "HEAD", nil, 200, tag, 0},
		{"the same tag", "GET", map[string]string{"If-None-Match": `"x", ` + tag}, 304, tag, 0},
		{"any tag", "GET", map[string]string{"If-None-Match": "*"}, 304, tag, 0},
		{"another tag", "GET", map[string]string{"If-None-Match": `"x"`}, 200, tag, len(content)},
		{"a range is ignored", "GET", map[string]string{"Range": "bytes=0-1"}, 200, tag, len(content)},
		{"a condition of a write is ignored", "GET", map[string]string{"If-Match": `"x"`}, 200, tag, len(content)},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp := ask(f, test.method, test.headers)
			body, err := io.ReadAll(resp.Body)
			expect.OK(t, err)
			if resp.Header.Get("Content-Encoding") == "gzip" {
				r, err := gzip.NewReader(bytes.NewReader(body))
				expect.OK(t, err)
				body, err = io.ReadAll(r)
				expect.OK(t, err)
			}
			if resp.StatusCode != test.status || resp.Header.Get("ETag") != test.tag || len(body) != test.length {
				t.Errorf("got %d, ETag %s, %d bytes; want %d, %s, %d", resp.StatusCode, resp.Header.Get("ETag"), len(body),
					test.status, test.tag, test.length)
			}
		})
	}
}

// TestAClientThatReadsNothingIsCutOff uses a server without a time limit. The pace must cut the client off.
func TestAClientThatReadsNothingIsCutOff(t *testing.T) {
	f := static.New("text/plain", "no-cache", []byte(strings.Repeat("x", 32<<20))) // more than buffers hold
	f.SetPace(httpserver.Pace{Bytes: 64 << 10, Within: 50 * time.Millisecond, All: time.Minute})
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		f.ServeHTTP(w, r)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	expect.OK(t, err)
	defer conn.Close()
	expect.Get(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("got an answer that does not end, want the client cut off")
	}
}

// TestYAMLIsMadeOfTheDocument asks twice for a document as YAML, whose members must keep their order.
func TestYAMLIsMadeOfTheDocument(t *testing.T) {
	f := static.NewYAML("no-cache", []byte(`{"z": ["a: b", 1.0, null, true], "a": {"є": "two\nlines", "version": "2.5"}}`))
	const want = "z:\n- \"a: b\"\n- 1.0\n- null\n- true\na:\n  є: |-\n    two\n    lines\n  version: \"2.5\"\n"
	for range 2 {
		answer := ask(f, "GET", nil)
		got, err := io.ReadAll(answer.Body)
		if kind := answer.Header.Get("Content-Type"); err != nil || kind != "application/yaml" || string(got) != want {
			t.Errorf("got %q of type %s (%v), want %q of type application/yaml", got, kind, err, want)
		}
	}
}
