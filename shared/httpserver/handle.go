package httpserver

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/identity"
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

// internalPrefix starts the names of headers that only our own services may
// send.
const internalPrefix = "X-Registry-"

// SanitizeExternal removes internal headers from a request that comes from outside the registry. It returns the
// request's id. This is the client's X-Request-ID if it is safe to log. Otherwise it is a new id, which
// SanitizeExternal also sets in the request.
func SanitizeExternal(r *http.Request) (id string) {
	for name := range r.Header {
		if strings.HasPrefix(name, internalPrefix) {
			delete(r.Header, name)
		}
	}
	if id = r.Header.Get(RequestIDHeader); !isRequestID(id) {
		id = newRequestID()
		r.Header[RequestIDHeader] = []string{id}
	}
	return id
}

// newRequestID returns a random UUID (RFC 9562, version 4). It does not use random bytes of the operating system. The
// id need not be secret, and these bytes would cost more than the rest of this function.
func newRequestID() string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 4<<4
	id[8] = id[8]&0x3f | 2<<6
	return id.String()
}

const requestIDCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_."

// isRequestID reports whether a client's request id is safe to log.
func isRequestID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, requestIDCharacters) == ""
}

// callerKey is the key under which SetCaller stores the identity.
const callerKey = "caller"

// SetCaller stores who has sent a request. Metrics have the role, and the log has the broker and the id of the key.
func SetCaller(c *gin.Context, caller identity.Identity) { c.Set(callerKey, caller) }

// Identify returns middleware that refuses requests without an identity that a
// service of this registry has signed. It stores the identity for Caller.
func Identify(signer *identity.Signer) gin.HandlerFunc {
	return Handle(func(c *gin.Context) error {
		caller, err := signer.Verify(c.GetHeader(identity.Header))
		if err != nil {
			return fault.New(fault.Unauthorized, fault.Header, identity.Header, "%v", err)
		}
		SetCaller(c, caller)
		return nil
	})
}

// Caller returns the identity of the caller. It panics unless the request passed
// Identify.
func Caller(c *gin.Context) identity.Identity { return c.MustGet(callerKey).(identity.Identity) }

// callerOf returns the identity of the caller, if it is known.
func callerOf(c *gin.Context) identity.Identity {
	caller, _ := c.Get(callerKey)
	known, _ := caller.(identity.Identity)
	return known
}
