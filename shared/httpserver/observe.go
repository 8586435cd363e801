package httpserver

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/telemetry"
)

// TraceIDHeader has the id of the trace that the client's request is in. It is absent if the request is not
// traced.
const TraceIDHeader = "X-Trace-Id"

// asideKey is the key under which Aside marks a request.
const asideKey = "aside"

// Aside marks a request for an addition to the API, such as the search: a 503 for it does not count as a
// failure of the API.
func Aside(c *gin.Context) { c.Set(asideKey, true) }

// series identifies a time series of the request duration.
type series struct {
	method, scheme, route, tenant string
	status                        int
}

// durationBuckets are in seconds (OpenTelemetry semantic conventions, HTTP
// metrics).
var durationBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// slowAfter is the time after which an answer counts as slow if it has not begun (docs/runbook.md, "Alerts").
const slowAfter = 500 * time.Millisecond

// observe is middleware that measures every request and makes a span for each
// that is traced.
func observe(o Options) gin.HandlerFunc {
	duration := telemetry.Durations(o.Telemetry.Meter(), "http.server.request.duration",
		"Duration of HTTP server requests.", durationBuckets...)
	fail := counting(o, "registry.http.failures", "Requests for the API of a service that were answered with 5xx.")
	slow := func(context.Context) {}
	if o.Edge {
		slow = counting(o, "registry.http.slow", "Requests for the API of a service whose answer began late.")
	}
	tracer := o.Telemetry.Tracer()
	var known sync.Map // series -> metric.MeasurementOption; there are only as many series as routes and outcomes allow
	return func(c *gin.Context) {
		begun := time.Now()
		span := beginSpan(c, o, tracer)
		var first *firstByte
		if o.Edge {
			first = awaitFirst(c, begun)
		}
		defer func() { // also when a panic ends the request
			s := series{method(c), scheme(c), c.FullPath(), string(callerOf(c).Role), c.Writer.Status()}
			if !c.GetBool(longKey) {
				attributes, ok := known.Load(s)
				if !ok {
					attributes, _ = known.LoadOrStore(s, s.attributes(o.Name))
				}
				duration.Record(c.Request.Context(), time.Since(begun).Seconds(), attributes.(metric.MeasurementOption))
			}
			if s.status >= http.StatusInternalServerError && isAPI(s.route) &&
				!(s.status == http.StatusServiceUnavailable && c.GetBool(asideKey)) {
				fail(c.Request.Context())
			}
			if first != nil && first.took() > slowAfter && isAPI(s.route) && !c.GetBool(longKey) {
				slow(c.Request.Context())
			}
			if span != nil {
				span.SetName(s.name())
				span.SetAttributes(s.result()...)
				if s.status >= http.StatusInternalServerError {
					span.SetStatus(codes.Error, "")
				}
				span.End()
			}
		}()
		c.Next()
	}
}

// counting makes a counter of requests. It returns a function that adds a request to the counter.
func counting(o Options, name, describes string) func(context.Context) {
	count := telemetry.Counter(o.Telemetry.Meter(), name, "{request}", describes)
	ours := metric.WithAttributeSet(attribute.NewSet(attribute.String("registry.service", o.Name)))
	count.Add(context.Background(), 0, ours) // starts at 0, because otherwise a rate misses the first event
	return func(ctx context.Context) { count.Add(ctx, 1, ours) }
}

// beginSpan starts a request's span and puts it into the request's context. It
// returns nil for a request that is not traced. The edge decides which requests
// are traced, whatever clients say; other services follow the edge.
func beginSpan(c *gin.Context, o Options, tracer trace.Tracer) trace.Span {
	if o.Edge && !o.Telemetry.Sample() {
		return nil
	}
	ctx := c.Request.Context()
	sent, traced := telemetry.Extract(ctx, c.Request.Header)
	var links []trace.Link
	if o.Edge {
		if of := trace.SpanContextFromContext(sent); of.IsValid() { // the client's trace
			links = append(links, trace.Link{SpanContext: of})
		}
		sent = ctx
	} else if !traced {
		return nil
	}
	attributes := append(telemetry.Server(c.Request.Host, scheme(c)),
		semconv.HTTPRequestMethodKey.String(method(c)),
		semconv.URLScheme(scheme(c)),
		semconv.URLPath(c.Request.URL.Path),
		attribute.StringSlice("http.request.header.x-request-id", []string{c.GetHeader(RequestIDHeader)}))
	if method(c) != c.Request.Method {
		attributes = append(attributes, semconv.HTTPRequestMethodOriginal(c.Request.Method))
	}
	ctx, span := tracer.Start(sent, c.Request.Method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attributes...), trace.WithLinks(links...))
	c.Request = c.Request.WithContext(ctx)
	if o.Edge {
		c.Header(TraceIDHeader, telemetry.TraceID(ctx))
	}
	return span
}

// method returns the request's method, or "_OTHER" for one that is not standard,
// so that clients cannot make new series.
func method(c *gin.Context) string {
	switch m := c.Request.Method; m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return m
	default:
		return "_OTHER"
	}
}

func scheme(c *gin.Context) string {
	if c.Request.TLS != nil {
		return "https"
	}
	return "http"
}

// name returns the name of a span.
func (s series) name() string {
	name := s.method
	if name == "_OTHER" {
		name = "HTTP"
	}
	return strings.TrimSpace(name + " " + s.route)
}

// result returns the attributes that are known at the end of a request. A refusal is no error of the server.
func (s series) result() []attribute.KeyValue {
	attributes := []attribute.KeyValue{semconv.HTTPResponseStatusCode(s.status)}
	if s.route != "" {
		attributes = append(attributes, semconv.HTTPRoute(s.route))
	}
	if s.status >= http.StatusInternalServerError {
		attributes = append(attributes, semconv.ErrorTypeKey.String(strconv.Itoa(s.status)))
	}
	return attributes
}

// isAPI reports whether a route belongs to an API. Other routes are for health checks and for people.
func isAPI(route string) bool {
	return strings.HasPrefix(route, "/api/") || strings.HasPrefix(route, "/internal/")
}

func (s series) attributes(service string) metric.MeasurementOption {
	attributes := append(s.result(), attribute.String("registry.service", service),
		semconv.HTTPRequestMethodKey.String(s.method), semconv.URLScheme(s.scheme))
	if rest, versioned := strings.CutPrefix(s.route, "/api/"); versioned {
		version, _, _ := strings.Cut(rest, "/")
		attributes = append(attributes, attribute.String("registry.api.version", version))
	}
	attributes = append(attributes, attribute.String("registry.tenant.class", cmp.Or(s.tenant, "anonymous")))
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
