package httpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
)

// StatusClientGone is the status in the log for a request whose client left before the answer. No standard defines
// this status; nginx uses the same number.
const StatusClientGone = 499

// Handle makes a gin handler of a handler that returns an error. The error
// becomes the answer and ends the pipeline. All handlers and middleware use
// Handle, so it is the one place where a service turns errors into answers.
func Handle(handler func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		err := handler(c)
		if err == nil {
			return
		}
		c.Abort()
		_ = c.Error(err) // adds err to the log line; the result is err again
		switch gone, late := hasEnded(c.Request.Context()); {
		// If the body of a request is too slow or breaks off, the context looks as if the client had left. But the
		// client still reads the answer.
		case gone && fault.KindOf(err) != fault.Invalid: // the client has left, so nobody reads an answer
			c.Status(StatusClientGone)
			return
		case late && fault.KindOf(err) == fault.Internal:
			err = fault.New(fault.Unavailable, fault.URL, "timeout",
				"The registry could not answer in time; repeat the request.")
		}
		if !c.Writer.Written() {
			refuseBody(c.Request, c.Writer.Header())
			faulthttp.Write(c.Writer, err)
		}
	}
}

// hasEnded reports whether the client of a request has left, or the time of the request is over. net/http also
// cancels the context when the deadline ends a read of the body. So after the deadline we assume that the
// client still waits.
func hasEnded(ctx context.Context) (gone, late bool) {
	ended := ctx.Err()
	end, within := ctx.Deadline()
	late = errors.Is(ended, context.DeadlineExceeded) || ended != nil && within && !time.Now().Before(end)
	return ended != nil && !late, late
}

// NoRoute handles a request whose path has no route. "OPTIONS *" gets 204, because it asks about the whole
// server.
func NoRoute(c *gin.Context) error {
	if c.Request.Method == http.MethodOptions && c.Request.RequestURI == "*" {
		c.Status(http.StatusNoContent)
		return nil
	}
	return fault.New(fault.NotFound, fault.URL, "not_found", "Not Found")
}

// NoMethod handles a request whose path has a route, but not for this method.
// Gin has set Allow to the methods of the path.
func NoMethod(c *gin.Context) error {
	if c.Request.Method == http.MethodOptions {
		c.Header("Allow", c.Writer.Header().Get("Allow")+", OPTIONS")
		c.Status(http.StatusNoContent)
		return nil
	}
	return fault.New(fault.NotFound, fault.URL, "method_not_allowed", "Method Not Allowed")
}

// JSON answers with value as JSON. The content type has no charset, which gin's
// own JSON would add (docs/contract.md, "Requests and answers").
func JSON(c *gin.Context, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	c.Data(status, "application/json", append(body, '\n'))
	return nil
}
