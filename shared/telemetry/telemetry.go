// Package telemetry exports a service's traces and metrics with OpenTelemetry. The
// standard OTEL_* variables configure it. Prometheus can fetch the same metrics.
// Without a collector there are no traces, and almost no cost.
//
// The edge decides once whether a request is traced, before it makes a span. Code
// needs no tracer: Child makes a span if the context has one that is recorded,
// and otherwise does nothing.
package telemetry

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	"go.opentelemetry.io/otel"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"asset-registry/shared/failurelog"
)

// scope is the name of our instrumentation in exported data.
const scope = "asset-registry"

// closeTimeout limits the last export.
const closeTimeout = 3 * time.Second

// Telemetry makes a process's traces and metrics. The zero value makes none.
type Telemetry struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	share   float64      // of the edge's requests that are traced, from 0 to 1
	metrics http.Handler // for Prometheus; nil for none
	closers []func(context.Context) error
}

// New returns telemetry with these providers, for tests. The edge traces a share
// of its requests, from 0 to 1.
func New(tracers trace.TracerProvider, meters metric.MeterProvider, share float64) *Telemetry {
	return &Telemetry{tracers: tracers, meters: meters, share: share}
}

// Start returns the telemetry of a service, as the environment configures it.
// Later failures are logged and have no other effect.
func Start(ctx context.Context, service string, log *slog.Logger) (*Telemetry, error) {
	// The library offers only this global handler.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(failurelog.New(log, "telemetry is lost").Failed))
	attributes := append(build(), semconv.ServiceName(service), semconv.ServiceInstanceID(cryptorand.Text()))
	described, err := resource.New(ctx, resource.WithAttributes(attributes...),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe service: %w", err)
	}
	t := &Telemetry{}
	if err := t.startTraces(ctx, described); err != nil {
		return nil, err
	}
	if err := t.startMetrics(ctx, described); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Telemetry) startTraces(ctx context.Context, described *resource.Resource) error {
	if !wanted("TRACES") {
		return nil
	}
	share, err := shareFromEnvironment()
	if err != nil {
		return err
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("set up export of traces: %w", err)
	}
	tracers := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(described), sdktrace.WithSampler(Sampler()))
	t.tracers, t.share = tracers, share
	t.closers = append(t.closers, tracers.Shutdown)
	return nil
}

func (t *Telemetry) startMetrics(ctx context.Context, described *resource.Resource) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewBuildInfoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(exporter), sdkmetric.WithResource(described)}
	if wanted("METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return fmt.Errorf("set up export of metrics: %w", err)
		}
		options = append(options, sdkmetric.WithReader(reader))
	}
	meters := sdkmetric.NewMeterProvider(options...)
	if err := runtime.Start(runtime.WithMeterProvider(meters)); err != nil {
		return fmt.Errorf("measure the runtime: %w", err)
	}
	if err := measureBuild(meters.Meter(scope)); err != nil {
		return err
	}
	t.meters, t.metrics = meters, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	t.closers = append(t.closers, meters.Shutdown)
	return nil
}

// wanted reports whether the environment names an exporter or a collector for a
// signal. Without one, the standard uses a collector on this machine; we export
// nothing.
func wanted(signal string) bool {
	for _, name := range []string{
		"OTEL_" + signal + "_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT",
	} {
		if os.Getenv(name) != "" {
			return os.Getenv("OTEL_SDK_DISABLED") != "true"
		}
	}
	return false
}

// shareFromEnvironment returns the share of traced requests from
// OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG.
func shareFromEnvironment() (float64, error) {
	switch sampler := os.Getenv("OTEL_TRACES_SAMPLER"); sampler {
	case "", "always_on", "parentbased_always_on":
		return 1, nil
	case "always_off", "parentbased_always_off":
		return 0, nil
	case "traceidratio", "parentbased_traceidratio":
		share, err := strconv.ParseFloat(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), 64)
		if err != nil || share < 0 || share > 1 {
			return 0, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1")
		}
		return share, nil
	default:
		return 0, fmt.Errorf("OTEL_TRACES_SAMPLER %q is not supported", sampler)
	}
}

// Sample decides at random whether the edge traces a request.
func (t *Telemetry) Sample() bool {
	return t.share > 0 && (t.share >= 1 || rand.Float64() < t.share)
}

// Tracer returns the tracer for the first span of a trace in this process.
func (t *Telemetry) Tracer() trace.Tracer {
	if t.tracers == nil {
		return nooptrace.NewTracerProvider().Tracer(scope)
	}
	return t.tracers.Tracer(scope)
}

// Meter returns the meter for the process's metrics.
func (t *Telemetry) Meter() metric.Meter {
	if t.meters == nil {
		return noopmetric.NewMeterProvider().Meter(scope)
	}
	return t.meters.Meter(scope)
}

// Metrics returns a handler that answers Prometheus, or nil without metrics.
func (t *Telemetry) Metrics() http.Handler { return t.metrics }

// Close exports the remaining traces and metrics. A failure is logged.
func (t *Telemetry) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, closer := range t.closers {
		if err := closer(ctx); err != nil {
			otel.Handle(err)
		}
	}
}

// Sampler returns a sampler that records a span if its parent is recorded. It
// records a span without a parent only if it is a server's: such spans are made
// only for requests that Sample chose. So work in the background records nothing.
func Sampler() sdktrace.Sampler { return sampler{} }

type sampler struct{}

func (sampler) Description() string { return "decided at the edge" }

func (sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	result := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: parent.TraceState()}
	if parent.IsSampled() || !parent.IsValid() && p.Kind == trace.SpanKindServer {
		result.Decision = sdktrace.RecordAndSample
	}
	return result
}
