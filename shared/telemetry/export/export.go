// Package export sends a process's traces and metrics to other programs, with OpenTelemetry. The standard
// OTEL_* variables configure it. Prometheus can fetch the same metrics. Without a collector, the package makes no
// traces and costs almost nothing.
package export

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"asset-registry/shared/buildinfo"
	"asset-registry/shared/failurelog"
	"asset-registry/shared/telemetry"
)

// closeTimeout limits the last export.
const closeTimeout = 3 * time.Second

// Export makes the telemetry of a process, and exports it until Close.
type Export struct {
	*telemetry.Telemetry
	metrics http.Handler // answers Prometheus
	gather  prometheus.Gatherer
	closers []func(context.Context) error
}

// Start returns the telemetry of a service. Environment variables configure it. If telemetry fails later, the failure
// is only logged.
func Start(ctx context.Context, service string, log *slog.Logger) (*Export, error) {
	// The library offers only this global handler.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(failurelog.New(log, "telemetry is lost").Failed))
	attributes := append(build(), semconv.ServiceName(service), semconv.ServiceInstanceID(cryptorand.Text()))
	described, err := resource.New(ctx, resource.WithAttributes(attributes...),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe service: %w", err)
	}
	e := &Export{}
	tracers, share, err := e.startTraces(ctx, described)
	if err != nil {
		return nil, err
	}
	meters, err := e.startMetrics(ctx, described)
	if err != nil {
		e.Close()
		return nil, err
	}
	e.Telemetry = telemetry.New(tracers, meters, share)
	return e, nil
}

// startTraces returns the provider of tracers and the share of requests that are traced. The provider is nil if no
// traces are wanted.
func (e *Export) startTraces(
	ctx context.Context, described *resource.Resource,
) (_ trace.TracerProvider, share float64, err error) {
	if !wanted("TRACES") {
		return nil, 0, nil
	}
	if share, err = shareFromEnvironment(); err != nil {
		return nil, 0, err
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("set up export of traces: %w", err)
	}
	tracers := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(described), sdktrace.WithSampler(telemetry.Sampler()))
	e.closers = append(e.closers, tracers.Shutdown)
	return tracers, share, nil
}

// renamed are metrics that 0.1.0 also tells without the end of their names. The version after it does not.
var renamed = []string{
	"registry.backup.finished.timestamp", "registry.tls.expires.timestamp", "registry.audit.checked.timestamp",
}

// startMetrics returns the provider of meters.
func (e *Export) startMetrics(ctx context.Context, described *resource.Resource) (*sdkmetric.MeterProvider, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewBuildInfoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithReader(exporter), sdkmetric.WithResource(described)}
	for _, name := range renamed {
		for _, also := range []string{name, strings.TrimSuffix(name, ".timestamp")} {
			options = append(options, sdkmetric.WithView(
				sdkmetric.NewView(sdkmetric.Instrument{Name: name}, sdkmetric.Stream{Name: also})))
		}
	}
	if wanted("METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return nil, fmt.Errorf("set up export of metrics: %w", err)
		}
		options = append(options, sdkmetric.WithReader(reader))
	}
	meters := sdkmetric.NewMeterProvider(options...)
	// The library's default interval is 15 s. A scrape would then get figures up to 15 s old.
	err = runtime.Start(runtime.WithMeterProvider(meters), runtime.WithMinimumReadMemStatsInterval(time.Second))
	if err != nil {
		return nil, fmt.Errorf("measure the runtime: %w", err)
	}
	measureBuild(meters.Meter(telemetry.Scope))
	e.metrics, e.gather = promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), registry
	e.closers = append(e.closers, meters.Shutdown)
	return meters, nil
}

// wanted reports whether the environment names an exporter or a collector for a signal. If it names neither, the
// standard of OpenTelemetry prescribes a collector on this machine, but this package exports nothing.
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

// Metrics returns a handler that answers Prometheus.
func (e *Export) Metrics() http.Handler { return e.metrics }

// Close exports the remaining traces and metrics. A failure is logged.
func (e *Export) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, closer := range e.closers {
		if err := closer(ctx); err != nil {
			otel.Handle(err)
		}
	}
}

// build returns the program's version, revision and Go version, as far as known.
func build() []attribute.KeyValue {
	info := buildinfo.Read()
	return []attribute.KeyValue{
		semconv.ServiceVersion(info.Version), semconv.VCSRefHeadRevision(info.Revision),
		semconv.ProcessRuntimeVersion(info.Go),
	}
}

// measureBuild registers a metric whose value is 1 and whose labels are the build.
// With it, operators can compare changes of behaviour with changes of version.
func measureBuild(meter metric.Meter) {
	attributes := metric.WithAttributes(build()...)
	telemetry.Must(meter.Int64ObservableGauge("registry.build.info",
		metric.WithDescription("Always 1; the labels describe the build of the program."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, attributes)
			return nil
		})))
}

// Figure is the value of a metric, with the name and the labels that Prometheus shows.
type Figure struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Figures returns the gauges and counters of the process.
func (e *Export) Figures() (all []Figure, err error) {
	families, err := e.gather.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			f := Figure{Name: family.GetName(), Labels: map[string]string{}}
			switch {
			case m.GetGauge() != nil:
				f.Value = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				f.Value = m.GetCounter().GetValue()
			default:
				continue
			}
			for _, l := range m.GetLabel() {
				f.Labels[l.GetName()] = l.GetValue()
			}
			all = append(all, f)
		}
	}
	return all, nil
}
