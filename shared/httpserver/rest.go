package httpserver

import (
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

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
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.ContentLength > maxRest || r.Header.Get("Expect") != "" {
		return
	}
	end := time.Now().Add(restTimeout)
	if deadline, ok := r.Context().Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	_ = http.NewResponseController(c.Writer).SetReadDeadline(end) // where there is no connection, there is no waiting
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxRest))   // whoever sends no more is answered all the same
}
