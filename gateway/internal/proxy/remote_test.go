package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"asset-registry/shared/faulthttp"
	"asset-registry/shared/testing/expect"
)

// edgeOf starts a server that forwards each request to the given handler over the network.
func edgeOf(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	u := upstreams(t, newSigner(t), handler)["remote"]
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Edge", "edge")
		switch err := u.Forward(w, r, Request{Path: r.URL.Path}); {
		case errors.Is(err, ErrCut):
			panic(http.ErrAbortHandler)
		case err != nil:
			faulthttp.Write(w, err)
		}
	}))
	t.Cleanup(edge.Close)
	return edge
}

func TestWhatEndsHereDoesNotPass(t *testing.T) {
	edge := edgeOf(t, func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Connection", "X-Hop, keep-alive")
		header.Set("X-Hop", "here")
		header.Set("Keep-Alive", "timeout=5")
		header.Set("Proxy-Authenticate", "Basic")
		header.Set("X-Edge", "upstream")
		header["X-Many"] = []string{"a", "b"}
		header.Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		http.NewResponseController(w).Flush()
		header.Set("X-Sum", "1")
	})
	resp, err := http.Get(edge.URL)
	expect.OK(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || string(text) != "body" || resp.Trailer.Get("X-Sum") != "1" {
		t.Errorf("got %q, %v, trailer %v; want body with the trailer X-Sum: 1", text, err, resp.Trailer)
	}
	for _, name := range []string{"Connection", "X-Hop", "Keep-Alive", "Proxy-Authenticate"} {
		expect.Equal(t, resp.Header.Get(name), "", "%s", name)
	}
	if got := strings.Join(resp.Header["X-Many"], ","); got != "a,b" || resp.Header.Get("X-Edge") != "edge" {
		t.Errorf("got %v, want X-Many: a,b and X-Edge: edge", resp.Header)
	}
}

func TestAnAnswerPassesAsItComes(t *testing.T) {
	more := make(chan struct{})
	edge := edgeOf(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "first")
		http.NewResponseController(w).Flush()
		<-more
		io.WriteString(w, "second")
	})
	resp, err := http.Get(edge.URL)
	expect.OK(t, err)
	defer resp.Body.Close()
	first := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "first" {
		t.Errorf("got %q, %v; want %q before the rest is sent", first, err, "first")
	}
	close(more)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "second" {
		t.Errorf("got %q, %v; want %q", rest, err, "second")
	}
}

func TestAnAnswerThatIsNotWholeDoesNotSeemSo(t *testing.T) {
	for _, c := range []struct{ name, size string }{
		{"with a Content-Length", "100000"}, {"without a Content-Length", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			edge := edgeOf(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.size != "" {
					w.Header().Set("Content-Length", c.size)
				}
				io.WriteString(w, strings.Repeat("x", 50_000))
				http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			})
			resp, err := http.Get(edge.URL)
			expect.OK(t, err)
			defer resp.Body.Close()
			expect.FailsOf(t, "a truncated answer")(io.ReadAll(resp.Body))
		})
	}
}

func TestAServiceThatDoesNotTakeOurSignatureIsOurFault(t *testing.T) {
	edge := edgeOf(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	resp, err := http.Get(edge.URL)
	expect.OK(t, err)
	defer resp.Body.Close()
	expect.Equal(t, resp.StatusCode, http.StatusServiceUnavailable, "")
}
