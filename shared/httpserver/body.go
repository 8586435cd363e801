package httpserver

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// bounded gives a request's body a time to arrive in.
func bounded(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			b := &body{ReadCloser: r.Body, control: http.NewResponseController(w)}
			b.before(time.Now().Add(within))
			own := *r // net/http looks at what it has made itself
			own.Body, r = b, &own
		}
		next.ServeHTTP(w, r)
	})
}

// body is a request's body that has to arrive in time. Once it has, nothing
// bounds reading from its connection, as http.Server.ReadTimeout would: to see
// a client's end, net/http goes on reading, and takes a time-out for one, which
// cancels this request and all that follow on the connection.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	ended   bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		b.before(time.Time{})
	}
	return n, err
}

func (b *body) before(end time.Time) {
	_ = b.control.SetReadDeadline(end) // fails for a connection that is closed
}

// The bounds of what is taken of a body that nobody wants.
const (
	maxRest     = 16 << 20 // bytes
	restTimeout = 5 * time.Second
)

// takeRest reads what is left of a refused request's body. Many clients, and
// balancers, look for an answer only when all is sent; a connection that is
// closed before is reset, and the answer lost with it. Who waits for a 100
// (Continue) has sent nothing yet, and in HTTP/2 an answer may come first
// (RFC 9113, section 8.1).
func takeRest(c *gin.Context) {
	r := c.Request
	b, ok := r.Body.(*body)
	if !ok || b.ended || r.ProtoMajor != 1 || r.ContentLength > maxRest || r.Header.Get("Expect") != "" || r.Context().Err() != nil {
		return
	}
	b.before(time.Now().Add(restTimeout))
	_, _ = io.Copy(io.Discard, io.LimitReader(b, maxRest)) // whoever sends no more is answered all the same
}
