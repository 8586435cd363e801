// Package httpserver is what every service of the registry serves HTTP with:
// a gin engine whose pipeline logs, recovers and turns errors into answers, a
// server with every time-out set, and a transport between services that share
// a process.
package httpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/telemetry"
)

// Headers that travel with a request from service to service.
const (
	// RequestIDHeader names the request in every log line about it.
	RequestIDHeader = "X-Request-ID"
	// ClientHeader is the address of the client, as the edge has found it out.
	ClientHeader = "X-Registry-Client"
	// TimeoutHeader says how many milliseconds the caller still waits.
	TimeoutHeader = "X-Registry-Timeout-Ms"
	// BaseURLHeader is the address that the public knows the registry by
	// ("https://registry.example"), which links in answers start with.
	BaseURLHeader = "X-Registry-Base-URL"
	// SeedHeader is a secret that the edge has made of an API key and an
	// Idempotency-Key, in hex.
	SeedHeader = "X-Registry-Seed"
)

// answerMargin is how much earlier than its caller a service gives up, so
// that its own answer still arrives.
const answerMargin = 50 * time.Millisecond

// StatusClientGone stands in the log for an answer that nobody waited for
// (nginx's number; no standard has one).
const StatusClientGone = 499

// Options of an engine.
type Options struct {
	Name     string // of the service, in metrics
	Log      *slog.Logger
	LogLevel slog.Level    // of the line about a request that went well
	Timeout  time.Duration // the longest that a request may take

	// TimeoutOf, if there is one, returns the same for a request's route; 0: Timeout.
	TimeoutOf func(*gin.Context) time.Duration

	// Ready returns nil when the service can do its work now. The details of a
	// fault are told to whoever asks for /readyz; any other error is for the log.
	Ready func(ctx context.Context) error

	// Telemetry measures and records requests; nil: nothing does. At the Edge
	// it decides which requests are recorded; elsewhere the edge has.
	Telemetry *telemetry.Telemetry
	Edge      bool

	// Warnings, if there is one, tells what a ready service is still in danger of.
	Warnings func(ctx context.Context) []string
}

// NewEngine returns a gin engine that answers /livez and /readyz, logs one
// line per request (never its query or headers, which may hold secrets), turns
// panics, errors and unknown routes into the error body, and gives every
// request a deadline. It logs as states, not request by request, that requests
// are refused since something is away, and that the service is not ready.
func NewEngine(o Options) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.HandleMethodNotAllowed = true
	if err := engine.SetTrustedProxies(nil); err != nil { // nil is always accepted
		panic(fmt.Sprintf("httpserver: %v", err))
	}
	if o.Telemetry == nil {
		o.Telemetry = &telemetry.Telemetry{}
	}
	refused := failurelog.New(o.Log, "requests are refused")
	engine.Use(answerHeaders, observe(o.Name, o.Telemetry, o.Edge), accessLog(o.Log, o.LogLevel, refused), deadline(o), recoverPanic)
	engine.NoRoute(Handle(func(*gin.Context) error {
		return fault.New(fault.NotFound, fault.URL, "not_found", "Not Found")
	}))
	engine.NoMethod(Handle(NoMethod))
	engine.GET("/livez", Quiet, Handle(func(c *gin.Context) error { return JSON(c, http.StatusOK, gin.H{"status": "ok"}) }))
	readiness := readiness{log: o.Log}
	engine.GET("/readyz", Quiet, Handle(func(c *gin.Context) error {
		err := o.Ready(c.Request.Context())
		readiness.tell(c.Request.Context(), err)
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				told := fault.New(fault.Unavailable, fault.URL, "readyz", "The service is unavailable; its log says why.")
				err = fmt.Errorf("%w: %w", told, err)
			}
			return err
		}
		if o.Warnings != nil {
			if warnings := o.Warnings(c.Request.Context()); len(warnings) > 0 {
				return JSON(c, http.StatusOK, gin.H{"status": "ok", "warnings": warnings})
			}
		}
		return JSON(c, http.StatusOK, gin.H{"status": "ok"})
	}))
	return engine
}

// NoMethod answers a request whose path exists, but not with its method. Gin has
// set Allow to the methods of the path.
func NoMethod(c *gin.Context) error {
	if c.Request.Method == http.MethodOptions {
		c.Header("Allow", c.Writer.Header().Get("Allow")+", OPTIONS")
		c.Status(http.StatusNoContent)
		return nil
	}
	return fault.New(fault.NotFound, fault.URL, "method_not_allowed", "Method Not Allowed")
}

// Handle makes a gin handler of one that returns an error, which becomes the
// answer. It is the one place where a service does so; middleware uses it too,
// and stops the pipeline by returning an error.
func Handle(handler func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		err := handler(c)
		if err == nil {
			return
		}
		c.Abort()
		_ = c.Error(err) // recorded for the log; gin returns what it was given
		switch ended := c.Request.Context().Err(); {
		case errors.Is(ended, context.Canceled): // nobody is left to answer, and no fault of ours
			c.Status(StatusClientGone)
			return
		case errors.Is(ended, context.DeadlineExceeded) && fault.KindOf(err) == fault.Internal:
			err = fault.New(fault.Unavailable, fault.URL, "timeout", "The registry could not answer in time; repeat the request.")
		}
		if !c.Writer.Written() {
			unwanted(c.Request, c.Writer.Header())
			faulthttp.Write(c.Writer, err)
		}
	}
}

// JSON answers with value as JSON, under the content type of the interface
// document: gin's own adds a charset to it.
func JSON(c *gin.Context, status int, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	c.Data(status, "application/json", append(body, '\n'))
	return nil
}

// quietKey marks a request whose line in the log is for debugging only.
const quietKey = "quiet"

// Quiet is middleware of routes for health: their requests are logged at debug.
func Quiet(c *gin.Context) { c.Set(quietKey, true) }

func answerHeaders(c *gin.Context) {
	c.Header("X-Content-Type-Options", "nosniff")
}

type requestIDKey struct{}

// RequestID returns the id of the request that ctx belongs to, "" outside of one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

func accessLog(log *slog.Logger, level slog.Level, refused *failurelog.Log) gin.HandlerFunc {
	return func(c *gin.Context) {
		start, path := time.Now(), c.Request.URL.Path // handlers may forward the request elsewhere
		client := c.GetHeader(ClientHeader)
		id := c.GetHeader(RequestIDHeader)
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), requestIDKey{}, id))
		defer func() { // also when the request is aborted by a panic
			ctx, level, status := c.Request.Context(), level, c.Writer.Status()
			switch {
			case c.GetBool(quietKey):
				level = slog.LevelDebug
			case status == http.StatusServiceUnavailable:
				refused.Failed(why(c))
			case status >= http.StatusInternalServerError:
				level = slog.LevelError
			}
			if !log.Enabled(ctx, level) {
				return
			}
			attrs := []slog.Attr{
				slog.String("method", c.Request.Method),
				slog.String("path", path),
				slog.Int("status", status),
				slog.Int("bytes", max(c.Writer.Size(), 0)),
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
			log.LogAttrs(ctx, level, "request", attrs...)
		}()
		c.Next()
	}
}

// errBehind stands for the cause that another service has in its log.
var errBehind = errors.New("a service behind this one has refused it")

// why returns the error that a request has ended with.
func why(c *gin.Context) error {
	if last := c.Errors.Last(); last != nil {
		return last.Err
	}
	return errBehind
}

func recoverPanic(c *gin.Context) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == http.ErrAbortHandler: // the peer is gone: the server wants to know
			panic(p)
		default:
			Handle(func(*gin.Context) error { return fmt.Errorf("panic: %v\n%s", p, debug.Stack()) })(c)
		}
	}()
	c.Next()
}

func deadline(o Options) gin.HandlerFunc {
	return func(c *gin.Context) {
		left := o.Timeout
		if o.TimeoutOf != nil {
			left = cmp.Or(o.TimeoutOf(c), left)
		}
		if ms, err := strconv.Atoi(c.GetHeader(TimeoutHeader)); err == nil {
			left = min(left, time.Duration(ms)*time.Millisecond-answerMargin)
		}
		ctx, cancel := context.WithTimeout(c.Request.Context(), left)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// SetTimeout tells the service that receives header how long ctx still lasts.
func SetTimeout(ctx context.Context, header http.Header) {
	if end, ok := ctx.Deadline(); ok {
		header.Set(TimeoutHeader, strconv.FormatInt(time.Until(end).Milliseconds(), 10))
	}
}
