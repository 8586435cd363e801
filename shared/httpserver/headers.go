package httpserver

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// Headers that travel with a request from service to service.
const (
	// RequestIDHeader identifies the request in every log line about it.
	RequestIDHeader = "X-Request-ID"
	// ClientHeader is the client's address, as the edge determined it.
	ClientHeader = "X-Registry-Client"
	// TimeoutHeader is how long the caller still waits, in milliseconds.
	TimeoutHeader = "X-Registry-Timeout-Ms"
	// BaseURLHeader is the public address of the registry, such as
	// "https://registry.example". Links in answers start with it.
	BaseURLHeader = "X-Registry-Base-URL"
	// SeedHeader is a secret, in hex, that the edge derives from an API key and
	// an Idempotency-Key.
	SeedHeader = "X-Registry-Seed"
)

// answerMargin is how much earlier than its caller a service gives up, so that
// its own answer still arrives in time.
const answerMargin = 50 * time.Millisecond

// deadline is middleware that limits a request to the timeout of its route, and
// to the time for which the caller waits.
func deadline(o Options) gin.HandlerFunc {
	return func(c *gin.Context) {
		left := o.Timeout
		if o.TimeoutOf != nil {
			left = cmp.Or(o.TimeoutOf(c), left)
		}
		if ms, err := strconv.Atoi(c.GetHeader(TimeoutHeader)); err == nil {
			most := time.Duration(ms)*time.Millisecond - answerMargin
			if left == Unlimited || most < left {
				left = most
			}
		}
		if left == Unlimited {
			return
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), left)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// SetTimeout sets TimeoutHeader to the time until ctx ends. Without a deadline
// it sets nothing.
func SetTimeout(ctx context.Context, header http.Header) {
	if end, ok := ctx.Deadline(); ok {
		header.Set(TimeoutHeader, strconv.FormatInt(time.Until(end).Milliseconds(), 10))
	}
}
