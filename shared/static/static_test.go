package static_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"asset-registry/shared/static"
)

const content = "some text that is the same for everybody"

func ask(f *static.File, method string, headers map[string]string) *http.Response {
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
		length  int // of the decoded body
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
			if err != nil {
				t.Fatal(err)
			}
			if resp.Header.Get("Content-Encoding") == "gzip" {
				r, err := gzip.NewReader(bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				if body, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
			if resp.StatusCode != test.status || resp.Header.Get("ETag") != test.tag || len(body) != test.length {
				t.Errorf("got %d, ETag %s, %d bytes; want %d, %s, %d", resp.StatusCode, resp.Header.Get("ETag"), len(body),
					test.status, test.tag, test.length)
			}
		})
	}
}
