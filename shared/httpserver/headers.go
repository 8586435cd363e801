package httpserver

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// Headers that travel with a request from service to service. The names have the form of http.CanonicalHeaderKey,
// because each Get and Set would make a copy of a name in another form.
const (
	// RequestIDHeader identifies the request in every log line about it.
	RequestIDHeader = "X-Request-Id"
	// ClientHeader is the client's address, as the edge determined it.
	ClientHeader = "X-Registry-Client"
	// CallerHeader names the caller of a request for package fair. The edge sets it: no signature protects it, and it
	// grants nothing. It names no address.
	CallerHeader = "X-Registry-Caller"
	// TimeoutHeader is the time for which the caller still waits, in milliseconds.
	TimeoutHeader = "X-Registry-Timeout-Ms"
	// BaseURLHeader is the public address of the registry, such as
	// "https://registry.example". Links in answers start with it.
	BaseURLHeader = "X-Registry-Base-Url"
	// SeedHeader is a secret, in hex, that the edge derives from an API key and
	// an Idempotency-Key.
	SeedHeader = "X-Registry-Seed"
	// WorkHeader is in answers: the work that a service did for an answer beyond its bytes (CountWork), in bytes.
	WorkHeader = "X-Registry-Work"
)

// IgnoredHeader names fields that a write has sent and that were ignored (docs/contract.md, "Field
// rules"). Clients see this header.
const IgnoredHeader = "Registry-Ignored"

// TotalHeader has the number of assets that a search finds. An export contains only the first of them
// (docs/contract.md, "Exports"). Clients see this header.
const TotalHeader = "Registry-Total"

// InterpretedHeader names the steps that read the words of an export's search in another way (docs/contract.md,
// "Exports"). Clients see this header.
const InterpretedHeader = "Registry-Interpreted"

// UncheckedHeader names the fields of a document that nobody has compared with its file
// (docs/contract.md, "Files"). Clients see this header.
const UncheckedHeader = "Registry-Unchecked"

// answerMargin is the time between the timeout of a service and the later timeout of
// its caller. In this time the answer of the service still reaches the caller.
const answerMargin = 50 * time.Millisecond

// begin is middleware that puts the request's id into its context, and limits the
// request to the timeout of its route, and to the time for which the caller waits.
func begin(o Options) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := context.WithValue(c.Request.Context(), requestIDKey{}, c.GetHeader(RequestIDHeader))
		if ctx.Value(workKey{}) == nil { // this is the outermost request in this process
			own := &work{}
			if !o.Edge {
				own.told = c.Writer.Header()
			}
			ctx = context.WithValue(ctx, workKey{}, own)
		}
		left := o.Timeout
		if o.TimeoutOf != nil {
			left = cmp.Or(o.TimeoutOf(c), left)
		}
		end := context.CancelFunc(func() {})
		if left = earliest(c, left); left != Unlimited {
			ctx, end = context.WithTimeout(ctx, left)
		}
		defer end()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// earliest returns the time limit to set for a request. The parameter `left` is the time limit of the service. If the
// caller waits for a shorter time, the result is shorter. If the caller is in this process, its deadline is already in
// the request's context. If this deadline comes within the time limit of the service, the result is Unlimited.
func earliest(c *gin.Context, left time.Duration) time.Duration {
	if end, within := c.Request.Context().Deadline(); within {
		if left == Unlimited || time.Until(end) <= left {
			return Unlimited
		}
		return left
	}
	text := c.GetHeader(TimeoutHeader)
	if text == "" {
		return left
	}
	ms, err := strconv.Atoi(text)
	most := time.Duration(ms)*time.Millisecond - answerMargin
	if err == nil && (left == Unlimited || most < left) {
		return most
	}
	return left
}

// SetTimeout sets TimeoutHeader to the time until ctx ends. Without a deadline
// it sets nothing.
func SetTimeout(ctx context.Context, header http.Header) {
	if end, ok := ctx.Deadline(); ok {
		header.Set(TimeoutHeader, strconv.FormatInt(time.Until(end).Milliseconds(), 10))
	}
}

// Redirect answers with an address that the client shall read instead. The answer has no body, so the answers to GET
// and HEAD are the same.
func Redirect(w http.ResponseWriter, status int, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(status)
}
