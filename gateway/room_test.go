package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"asset-registry/shared/httpserver"
)

// unfinished is a body. Each Read calls the function in the field `read`, and waits until the channel in the
// field `end` is closed.
type unfinished struct {
	io.Reader
	read func()
	end  chan struct{}
}

func (u *unfinished) Read(p []byte) (int, error) {
	u.read()
	<-u.end
	return u.Reader.Read(p)
}

// TestUnfinishedBodiesOfOneCallerLeaveRoomForOthers begins as many bodies as a key or a broker may send at the same
// time. The limit is either the number of bytes or the number of requests. The next body of the same caller must be
// refused, but other callers must be admitted.
// Promises: body-shares
func TestUnfinishedBodiesOfOneCallerLeaveRoomForOthers(t *testing.T) {
	for _, c := range []struct {
		name          string
		maxConcurrent int
		length        int64 // length of each body; -1: not announced
	}{
		{"large bodies", 1000, 100},
		{"bodies of unknown length", 1000, -1},
		{"small bodies", 8, 1}, // 4 for the asset service
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, func(o *Config) {
				o.Auth = httpserver.InProcess(http.HandlerFunc(twoKeys))
				o.MaxBody, o.Memory, o.Settings.MaxConcurrent = 100, 8*400, c.maxConcurrent
			})
			content := func() io.Reader { return strings.NewReader(strings.Repeat("x", int(max(c.length, 1)))) }
			end := make(chan struct{})
			var writing sync.WaitGroup
			begin := func(key string) {
				reading := make(chan struct{})
				body := &unfinished{content(), sync.OnceFunc(func() { close(reading) }), end}
				writing.Go(func() {
					if got := post(s, key, jsonType, c.length, body); got.Code != http.StatusOK {
						t.Errorf("a body of %q that is finished late: got %d %s, want 200", key, got.Code, got.Body)
					}
				})
				<-reading
			}
			write := func(key string) *httptest.ResponseRecorder {
				return post(s, key, jsonType, c.length, content())
			}
			begin("key")
			if got := write("key"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
				t.Errorf("one more of the key: got %d %s, want 429 with Retry-After", got.Code, got.Body)
			}
			if got := write("key2"); got.Code != http.StatusOK {
				t.Errorf("another key of the broker: got %d %s, want 200", got.Code, got.Body)
			}
			begin("key2")
			for range 3 {
				if got := write("else"); got.Code != http.StatusOK {
					t.Errorf("a key of another broker: got %d %s, want 200", got.Code, got.Body)
				}
			}
			close(end)
			writing.Wait()
			if got := write("key"); got.Code != http.StatusOK {
				t.Errorf("the key once its bodies are finished: got %d %s, want 200", got.Code, got.Body)
			}
		})
	}
}
