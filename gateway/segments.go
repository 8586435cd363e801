package gateway

import (
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// shareSegments refuses a request for a segment if its client reads too many at once. A
// slow client holds a reader of the asset service for long, and of those there are few.
// The request must have passed identify.
func (s *Server) shareSegments(c *gin.Context) {
	client := streamClient(c)
	switch s.segments.Enter(client) {
	case concurrency.ShareUsed:
		httpserver.Handle(func(*gin.Context) error {
			f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
				"You read %d segments of the snapshot at once; finish one first.", s.config.Settings.ClientSegments)
			f.RetryAfter = time.Second
			return f
		})(c)
	case concurrency.AllUsed:
		s.refuseOverrun(c)
	case concurrency.Admitted:
		defer s.segments.Leave(client)
		c.Next()
	}
}
