package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/telemetry"
)

// quietKey is the key under which Quiet marks a request.
const quietKey = "quiet"

// Quiet is middleware for health checks: their requests are logged at debug.
func Quiet(c *gin.Context) { c.Set(quietKey, true) }

type requestIDKey struct{}

// RequestID returns the id of the request that ctx belongs to, or "" outside of
// a request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// accessLog logs a line when a request ends, also if the request ends by a panic. Lines of requests that were refused
// or have failed are told together (causeOf). It counts answers with 503 as failures in the argument `refused`.
func accessLog(o Options, refused *failurelog.Log) gin.HandlerFunc {
	repeats := failurelog.NewRepeats(o.Log)
	return func(c *gin.Context) {
		start, path := time.Now(), c.Request.URL.Path // a handler may change the path
		id := c.GetHeader(RequestIDHeader)
		client := c.GetHeader(ClientHeader)
		defer func() {
			switch status := c.Writer.Status(); {
			case c.GetBool(quietKey):
			case status == http.StatusServiceUnavailable:
				refused.Failed(lastError(c))
			case status < http.StatusInternalServerError && isAPI(c.FullPath()):
				refused.Worked()
			}
			ctx, level := c.Request.Context(), logLevel(c, o.LogLevel)
			if !o.Log.Enabled(ctx, level) {
				return
			}
			if cause := causeOf(c, level, client); cause.Status >= http.StatusBadRequest && !repeats.IsFirst(cause) {
				return
			}
			attrs := []slog.Attr{
				slog.String("method", c.Request.Method),
				slog.String("path", path),
				slog.Int("status", c.Writer.Status()),
				slog.Int64("bytes", sentBytes(c.Writer)),
				slog.Float64("ms", float64(time.Since(start).Microseconds())/1000),
				slog.String("request_id", id),
			}
			if client != "" {
				attrs = append(attrs, slog.String("client", client))
			}
			if trace := telemetry.TraceID(ctx); trace != "" {
				attrs = append(attrs, slog.String("trace_id", trace))
			}
			if last := c.Errors.Last(); last != nil {
				attrs = append(attrs, slog.String("error", last.Err.Error()))
			}
			o.Log.LogAttrs(ctx, level, "request", attrs...)
		}()
		c.Next()
	}
}

// logLevel returns the level of a request's log line. A 503 does not raise the level: accessLog logs it as a
// failure that repeats.
func logLevel(c *gin.Context, usual slog.Level) slog.Level {
	status := c.Writer.Status()
	switch {
	case c.GetBool(quietKey):
		return slog.LevelDebug
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable:
		return slog.LevelError
	default:
		return usual
	}
}

// maxCause is the number of bytes by which two errors are compared.
const maxCause = 200

// causeOf returns what the line of a request has in common with other lines: the client of a refusal, or the route and
// the error of a failure. A 503 is of one cause for all, because a service refuses all alike.
func causeOf(c *gin.Context, level slog.Level, client string) failurelog.Cause {
	cause := failurelog.Cause{Level: level, What: "request", Status: c.Writer.Status()}
	switch {
	case cause.Status < http.StatusInternalServerError:
		cause.Client = client
	case cause.Status != http.StatusServiceUnavailable:
		cause.Of = c.FullPath()
		if err := c.Errors.Last(); err != nil {
			text := err.Error()
			cause.Of += ": " + text[:min(len(text), maxCause)]
		}
	}
	return cause
}

// errElsewhere replaces an error in the log line of a service that did not get the error itself.
var errElsewhere = errors.New("another service refused the request; see its log")

// lastError returns the error that a request ended with.
func lastError(c *gin.Context) error {
	if last := c.Errors.Last(); last != nil {
		return last.Err
	}
	return errElsewhere
}
