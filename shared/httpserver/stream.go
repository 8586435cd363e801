package httpserver

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
)

// Unlimited is a result of Options.TimeoutOf: the request has no deadline.
const Unlimited time.Duration = -1

// longKey is where Long marks a request.
const longKey = "long"

// Long marks a request that waits for things to happen. Its duration is not measured,
// because it tells nothing about the service.
func Long(c *gin.Context) { c.Set(longKey, true) }

type drainingKey struct{}

// Draining returns a channel that is closed when the server that a request came to
// begins to end. It returns nil outside of Serve.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainingKey{}).(chan struct{})
	return draining
}
