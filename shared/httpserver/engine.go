// Package httpserver serves HTTP for every service of the registry. It has a
// gin engine that logs, measures and turns errors into answers, a server with
// every timeout set, and a transport between services in one process.
package httpserver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/fault"
	"asset-registry/shared/telemetry"
)

// Options configure an engine. An optional field may be left at its zero value.
type Options struct {
	Name     string // name of the service, in metrics
	Log      *slog.Logger
	LogLevel slog.Level    // level of the log line for a request without an error
	Timeout  time.Duration // maximum duration of a request

	// TimeoutOf returns the timeout of a request's route. It may be nil. If it returns 0, Timeout applies. If it
	// returns Unlimited, the request has no deadline.
	TimeoutOf func(*gin.Context) time.Duration

	// Ready returns nil when the service can do its work. /readyz shows the
	// details of a fault; any other error goes to the log only.
	Ready func(ctx context.Context) error

	// Telemetry measures and traces requests. It is optional.
	Telemetry *telemetry.Telemetry

	// Edge is true for a service that clients call directly. Such a service decides which requests are traced;
	// other services follow the caller's decision.
	Edge bool

	// Facts returns further members that a ready service shows in /readyz. It is optional.
	Facts func() map[string]any

	// Warnings returns the dangers that a ready service shows in /readyz. It is
	// optional.
	Warnings func(ctx context.Context) []string
}

// NewEngine returns a gin engine that
//
//   - answers /livez and /readyz,
//   - logs one line for each request, without query and headers, which may hold
//     secrets; it tells refusals and failures that are alike together,
//   - turns panics, errors and unknown routes into the error body,
//   - and gives each request a deadline.
//
// It logs once when the service stops being ready or refuses requests with 503,
// and once when that is over.
func NewEngine(o Options) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.HandleMethodNotAllowed = true
	if err := engine.SetTrustedProxies(nil); err != nil { // nil is always valid
		panic(fmt.Sprintf("httpserver: %v", err))
	}
	if o.Telemetry == nil {
		o.Telemetry = &telemetry.Telemetry{}
	}
	refused := failurelog.NewState(o.Log, "requests are refused")
	engine.Use(answerHeaders, observe(o), accessLog(o, refused), begin(o), recoverPanic)
	engine.NoRoute(Handle(NoRoute))
	engine.NoMethod(Handle(NoMethod))
	engine.GET("/livez", Quiet, Handle(func(c *gin.Context) error {
		return JSON(c, http.StatusOK, gin.H{"status": "ok"})
	}))
	engine.GET("/readyz", Quiet, Handle(readyz(o)))
	return engine
}

// readyz returns the handler of /readyz.
func readyz(o Options) func(*gin.Context) error {
	state := readiness{log: o.Log}
	return func(c *gin.Context) error {
		ctx := c.Request.Context()
		err := o.Ready(ctx)
		state.note(ctx, err)
		if err != nil && fault.KindOf(err) == fault.Internal {
			public := fault.New(fault.Unavailable, fault.URL, "readyz", "The service is unavailable; its log says why.")
			return fmt.Errorf("%w: %w", public, err)
		}
		if err != nil {
			return err
		}
		answer := gin.H{"status": "ok"}
		if o.Facts != nil {
			maps.Copy(answer, o.Facts())
		}
		if o.Warnings != nil {
			if warnings := o.Warnings(ctx); len(warnings) > 0 {
				answer["warnings"] = warnings
			}
		}
		return JSON(c, http.StatusOK, answer)
	}
}

// NoSniff is the value of X-Content-Type-Options. It forbids browsers to guess the type of an
// answer. All answers share the slice, so no code may change it.
var NoSniff = []string{"nosniff"}

func answerHeaders(c *gin.Context) {
	c.Writer.Header()["X-Content-Type-Options"] = NoSniff
}

// recoverPanic turns a panic into an internal error. It passes on
// http.ErrAbortHandler, which tells net/http to close the connection.
func recoverPanic(c *gin.Context) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == http.ErrAbortHandler:
			panic(p)
		default:
			Handle(func(*gin.Context) error { return fmt.Errorf("panic: %v\n%s", p, debug.Stack()) })(c)
		}
	}()
	c.Next()
}
