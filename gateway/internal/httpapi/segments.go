package httpapi

import (
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
)

// shareSegments refuses a request for a segment if its client reads too many segments at the same time. A slow
// client keeps a reader of the asset service busy for long, and there are only a few readers. The request must
// have passed identify.
func (a *API) shareSegments(next handler) handler {
	return func(c *gin.Context) error {
		client := a.nameOf(c)
		switch a.segments.Enter(client) {
		case concurrency.ShareUsed:
			f := fault.New(fault.TooMany, fault.Header, "X-RateLimit-Limit",
				"You read %d segments of the snapshot at once; finish one first.", a.config.Settings.ClientSegments)
			f.RetryAfter = time.Second
			return f
		case concurrency.AllUsed:
			return a.crowded(c)
		}
		defer a.segments.Leave(client)
		return next(c)
	}
}
