package httpserver

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/telemetry"
)

// TraceIDHeader tells a client the trace that its request is recorded in, if it is.
const TraceIDHeader = "X-Trace-ID"

// tenantKey is where SetTenant keeps the class.
const tenantKey = "tenant class"

// SetTenant says what class of tenant a request is from, for metrics: the role
// of its key.
func SetTenant(c *gin.Context, class string) { c.Set(tenantKey, class) }

// observed is what tells series of the duration's histogram apart.
type observed struct {
	method, route, tenant string
	status                int
}

// durations are the buckets of a request's duration, in seconds (semantic
// conventions, HTTP metrics).
var durations = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// observe measures every request, and makes a span of those that are recorded:
// at the edge, of a share, whatever clients say; elsewhere, of those that the
// edge chose.
func observe(service string, t *telemetry.Telemetry, edge bool) gin.HandlerFunc {
	duration, err := t.Meter().Float64Histogram("http.server.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of HTTP server requests."), metric.WithExplicitBucketBoundaries(durations...))
	if err != nil {
		panic(fmt.Sprintf("httpserver: %v", err)) // a mistake in the name
	}
	tracer := t.Tracer()
	var series sync.Map // observed -> metric.MeasurementOption; as many as there are routes and outcomes
	return func(c *gin.Context) {
		begun := time.Now()
		span := begin(c, t, tracer, edge)
		defer func() { // also when the request is aborted by a panic
			o := observed{method: method(c), route: route(c), tenant: c.GetString(tenantKey), status: c.Writer.Status()}
			option, known := series.Load(o)
			if !known {
				option, _ = series.LoadOrStore(o, o.attributes(service))
			}
			duration.Record(c.Request.Context(), time.Since(begun).Seconds(), option.(metric.MeasurementOption))
			if span != nil {
				span.SetName(o.method + " " + o.route)
				span.SetAttributes(semconv.HTTPRoute(o.route), semconv.HTTPResponseStatusCode(o.status))
				if o.status >= http.StatusInternalServerError {
					span.SetStatus(codes.Error, "")
				}
				span.End()
			}
		}()
		c.Next()
	}
}

// begin puts a request that is recorded under a span; nil for one that is not.
func begin(c *gin.Context, t *telemetry.Telemetry, tracer trace.Tracer, edge bool) trace.Span {
	ctx, recorded := c.Request.Context(), false
	if edge {
		recorded = t.Sample()
	} else {
		ctx, recorded = telemetry.Extract(ctx, c.Request.Header)
	}
	if !recorded {
		return nil
	}
	ctx, span := tracer.Start(ctx, c.Request.Method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		semconv.HTTPRequestMethodKey.String(method(c)),
		semconv.URLPath(c.Request.URL.Path),
		attribute.String("http.request.header.x-request-id", c.GetHeader(RequestIDHeader)),
	))
	c.Request = c.Request.WithContext(ctx)
	if edge {
		c.Header(TraceIDHeader, telemetry.TraceID(ctx))
	}
	return span
}

// method returns the request's method, of which there is a bounded number.
func method(c *gin.Context) string {
	switch m := c.Request.Method; m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	default:
		return "_OTHER"
	}
}

// route returns the pattern that the request's path has matched.
func route(c *gin.Context) string {
	if path := c.FullPath(); path != "" {
		return path
	}
	return "unknown"
}

func (o observed) attributes(service string) metric.MeasurementOption {
	attributes := []attribute.KeyValue{
		attribute.String("registry.service", service),
		semconv.HTTPRequestMethodKey.String(o.method),
		semconv.HTTPRoute(o.route),
		semconv.HTTPResponseStatusCode(o.status),
	}
	if rest, versioned := strings.CutPrefix(o.route, "/api/"); versioned {
		version, _, _ := strings.Cut(rest, "/")
		attributes = append(attributes, attribute.String("registry.api.version", version))
	}
	attributes = append(attributes, attribute.String("registry.tenant.class", cmp.Or(o.tenant, "anonymous")))
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
