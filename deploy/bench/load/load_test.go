package load

import (
	"asset-registry/shared/testing/expect"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAnswersOfAllFormsAreReadToTheirEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/plain":
			fmt.Fprint(w, "abc")
		case "/large":
			w.Header().Set("Content-Length", "200000")
			fmt.Fprint(w, strings.Repeat("x", 200_000))
		case "/chunked":
			fmt.Fprint(w, strings.Repeat("x", 100_000))
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "abc")
		case "/trailers":
			w.Header().Set("Trailer", "X-End")
			fmt.Fprint(w, "abc")
			w.Header().Set("X-End", "1")
		case "/empty":
			w.Header().Set("Content-Length", "0")
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		}
	}))
	defer server.Close()
	for path, status := range map[string]int{
		"/plain": 200, "/large": 200, "/chunked": 200, "/trailers": 200, "/empty": 200, "/304": 304,
	} {
		t.Run(path, func(t *testing.T) {
			l := Load{
				Addr: server.Listener.Addr().String(), Clients: 2, Status: status,
				Request: []byte("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"),
			}
			// Each connection is used for many requests, so each answer must be read to its end.
			got, err := l.Run(context.Background(), 200*time.Millisecond)
			if err != nil || got.Requests < 3 {
				t.Errorf("got %d answers and %v, want more than 2 and no error", got.Requests, err)
			}
			l.Status = 201
			_, err = l.Run(context.Background(), time.Second)
			expect.Says(t, err, fmt.Sprint(status), "wrong status")
		})
	}
}
