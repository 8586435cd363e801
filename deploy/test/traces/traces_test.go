package traces

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"asset-registry/assetsvc"
	"asset-registry/authsvc"
	"asset-registry/gateway"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
	"asset-registry/shared/logtest"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/testing/expect"
)

// registry is three services on real stores, connected by HTTP. It keeps their logs, spans and metrics.
type registry struct {
	url     string
	spans   *tracetest.InMemoryExporter
	metrics *sdkmetric.ManualReader
	log     *logtest.Log
}

// start starts the services. The parameter `share`, from 0 to 1, says how many requests get a trace.
func start(t *testing.T, share float64) *registry {
	t.Helper()
	r := &registry{spans: tracetest.NewInMemoryExporter(), metrics: sdkmetric.NewManualReader(), log: &logtest.Log{}}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans), sdktrace.WithSampler(telemetry.Sampler()))
	told := telemetry.New(tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.metrics)), share)
	log := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	secrets := keyring.Ring{bytes.Repeat([]byte("traces"), 6)}

	auth := expect.Get(authsvc.New(t.Context(), authsvc.Config{Store: redistest.Start(t).URL(), Secrets: secrets,
		Sandbox: true, Log: log.With(httpserver.ServiceName, "authsvc"), Telemetry: told}))(t)
	t.Cleanup(func() { auth.Close() })
	authURL := serve(t, auth.Handler())
	assets := expect.Get(assetsvc.New(t.Context(), assetsvc.Config{
		Store:        mongotest.Start(t).URI(t, fmt.Sprintf("traces%d", time.Now().UnixNano())),
		StoreTimeout: 10 * time.Second,
		AuthURLs:     []string{authURL}, Secrets: secrets, Log: log.With(httpserver.ServiceName, "assetsvc"), Telemetry: told,
	}))(t)
	t.Cleanup(func() { assets.Close() })
	edge, err := gateway.New(t.Context(), gateway.Config{
		AssetsURLs: []string{serve(t, assets.Handler())}, AuthURLs: []string{authURL}, Secrets: secrets,
		Log: log.With(httpserver.ServiceName, "gateway"), Telemetry: told,
		// With this value, the gateway verifies the key of every request anew. With a longer time, it would be
		// random whether the gateway still remembers the key.
		KeyTTL: time.Nanosecond,
	})
	expect.OK(t, err)
	t.Cleanup(func() { edge.Close() })
	r.url = serve(t, edge.Handler())
	return r
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// send sends a request and returns its status, headers and body.
func (r *registry) send(t *testing.T, method, path, token, body string) (int, http.Header, string) {
	t.Helper()
	req := expect.Get(http.NewRequest(method, r.url+path, strings.NewReader(body)))(t)
	req.SetBasicAuth("broker", "")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Access-Token", token)
	req.Header.Set("X-Request-ID", "named-by-the-client")
	req.Header.Set("Traceparent", "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01")
	resp := expect.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	text := expect.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header, string(text)
}

// greetings are the names of the spans with which a connection to Redis begins.
var greetings = []string{"hello", "PIPELINE"}

// tree prints the spans of a trace in the order of time, with children below their parents. It leaves out the spans
// in greetings, with which a connection to Redis begins. It waits up to 5 s until there are at least the wanted
// number of spans.
func (r *registry) tree(t *testing.T, trace string, want int) string {
	t.Helper()
	var mine []tracetest.SpanStub
	for range 500 {
		mine = nil
		for _, s := range r.spans.GetSpans() {
			if s.SpanContext.TraceID().String() == trace && !slices.Contains(greetings, s.Name) {
				mine = append(mine, s)
			}
		}
		if len(mine) >= want {
			break
		}
		time.Sleep(10 * time.Millisecond) // the span of a batch may end a little after the answer was sent
	}
	slices.SortFunc(mine, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var b strings.Builder
	beside := map[string]bool{} // spans whose children run at the same time, so that their order is random
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		var children []tracetest.SpanStub
		for _, s := range mine {
			if s.Parent.SpanID().String() == parent {
				children = append(children, s)
			}
		}
		slices.SortStableFunc(children, inOrder)
		if beside[parent] {
			slices.SortStableFunc(children, func(a, b tracetest.SpanStub) int { return strings.Compare(a.Name, b.Name) })
		}
		for _, s := range children {
			beside[s.SpanContext.SpanID().String()] = s.Name == "write batch" || s.Name == "POST /api/2.5/assets"
			fmt.Fprintf(&b, "%s%s %s\n", strings.Repeat("  ", depth), s.SpanKind, s.Name)
			draw(s.SpanContext.SpanID().String(), depth+1)
		}
	}
	draw("0000000000000000", 0)
	return b.String()
}

// inOrder compares spans by time. Spans that overlap are compared by name.
func inOrder(a, b tracetest.SpanStub) int {
	if a.StartTime.Before(b.EndTime) && b.StartTime.Before(a.EndTime) {
		return strings.Compare(a.Name, b.Name)
	}
	return a.StartTime.Compare(b.StartTime)
}

// mustDraw compares the printed tree of a trace with the expected text.
func (r *registry) mustDraw(t *testing.T, trace, want string) {
	t.Helper()
	want = strings.TrimPrefix(want, "\n")
	if got := r.tree(t, trace, strings.Count(want, "\n")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const asset = `{"data":{"assetType":"bounce","title":"т","description":"о","items":[{"description":"о",` +
	`"classification":{"scheme":"CAV-PS","id":"06111000-3","description":"з"},"address":{"countryName":"У"},` +
	`"unit":{"code":"c"},"quantity":1,"registrationDetails":{"status":"unknown"}}],` +
	`"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1"}],` +
	`"assetCustodian":{"name":"Ф","identifier":{"scheme":"UA-EDR","id":"1"},"address":{"countryName":"У"},` +
	`"contactPoint":{"name":"Д","telephone":"1"}}}}`

func TestOneTraceGoesThroughAllServicesAndStores(t *testing.T) {
	r := start(t, 1)
	status, header, text := r.send(t, "POST", "/api/2.5/assets", "", asset)
	if status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", status, text)
	}
	trace := header.Get("X-Trace-ID")
	if trace == "" || strings.HasPrefix(trace, "aaaa") {
		t.Fatalf("got the trace %q, want a new one", trace)
	}
	r.mustDraw(t, trace, `
server POST /api/2.5/assets
  client POST
    server POST /internal/v1/keys/verify
  client POST
    server POST /api/2.5/assets
      client POST
        server POST /internal/v1/tokens/issue
      internal commit
        internal write batch
          client insert assets
          client insert changes
          client update changes
          client update clock
      client findAndModify numbers
`)
	var created struct {
		Access struct{ Token string }
		Data   struct{ ID string }
	}
	expect.OK(t, json.Unmarshal([]byte(text), &created))
	path := "/api/2.5/assets/" + created.Data.ID
	status, header, _ = r.send(t, "PATCH", path, strings.Repeat("0", 32), `{"data":{"title":"x"}}`)
	if status != http.StatusForbidden {
		t.Fatalf("got %d, want 403", status)
	}
	r.mustDraw(t, header.Get("X-Trace-ID"), `
server PATCH /api/2.5/assets/:id
  client POST
    server POST /internal/v1/keys/verify
  client PATCH
    server PATCH /api/2.5/assets/:id
      client find assets
      client POST
        server POST /internal/v1/tokens/verify
          client hget
          client evalsha
          client eval
`)
	for _, s := range r.spans.GetSpans() {
		expect.Equal(t, s.Status.Description, "", "span %s, the description", s.Name)
	}
	if !strings.Contains(r.log.String(), `"trace_id":"`+trace+`"`) ||
		!strings.Contains(r.log.String(), `"request_id":"named-by-the-client"`) {
		t.Errorf("got %s, want the trace and the request id in the log", r.log)
	}
}

func TestAnUnsampledRequestHasNoSpan(t *testing.T) {
	r := start(t, 0)
	if status, header, _ := r.send(t, "POST", "/api/2.5/assets", "", asset); status != http.StatusCreated ||
		header.Get("X-Trace-ID") != "" {
		t.Errorf("got %d in trace %q, want 201 in none", status, header.Get("X-Trace-ID"))
	}
	if spans := r.spans.GetSpans(); len(spans) > 0 {
		t.Errorf("got %d spans for a client's own traceparent, want none: %s", len(spans), spans[0].Name)
	}
}

// measured returns the counts of requests in the gateway's metric http.server.request.duration, sorted.
func (r *registry) measured(t *testing.T) (series []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	expect.OK(t, r.metrics.Collect(t.Context(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			histogram, ok := m.Data.(metricdata.Histogram[float64])
			if !ok || m.Name != "http.server.request.duration" {
				continue
			}
			for _, p := range histogram.DataPoints {
				text := func(name string) string {
					for _, a := range p.Attributes.ToSlice() {
						if string(a.Key) == name {
							return a.Value.String()
						}
					}
					return ""
				}
				if text("registry.service") == "gateway" {
					series = append(series, fmt.Sprintf("%d %s %s %s %s %s", p.Count, text("http.request.method"),
						text("http.route"),
						text("http.response.status_code"), cmp.Or(text("registry.api.version"), "-"),
						text("registry.tenant.class")))
				}
			}
		}
	}
	slices.Sort(series)
	return series
}

func TestMetricsHaveRouteVersionAndTenant(t *testing.T) {
	r := start(t, 0)
	r.send(t, "POST", "/api/2.4/assets", "", asset)
	r.send(t, "GET", "/api/2.5/assets/none", "", "")
	r.send(t, "GET", "/nowhere/"+strings.Repeat("x", 100), "", "")
	series := r.measured(t)
	want := []string{
		// The broker is known although the path is not: the gateway checks the key to count the request.
		"1 GET  404 - broker",
		"1 GET /api/2.5/assets/:id 404 2.5 broker",
		"1 POST /api/2.4/assets 201 2.4 broker",
	}
	if !slices.Equal(series, want) {
		t.Errorf("got  %q\nwant %q", series, want)
	}
}

// lines returns the gateway's log lines about requests of a trace.
func (r *registry) lines(trace string) (lines []string) {
	for line := range strings.Lines(r.log.String()) {
		if strings.Contains(line, trace) && strings.Contains(line, `"service.name":"gateway"`) &&
			strings.Contains(line, `"method":"GET"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestAStreamHasItsSpanAndLogLineAndNoDuration(t *testing.T) {
	r := start(t, 1)
	req := expect.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/2.5/assets", nil))(t)
	req.Header.Set("Accept", "text/event-stream")
	resp := expect.Get(http.DefaultClient.Do(req))(t)
	first := make([]byte, len("retry: "))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "retry: " {
		t.Fatalf("got %q, %v, want a stream that begins with retry", first, err)
	}
	trace := resp.Header.Get("X-Trace-ID")
	expect.OK(t, resp.Body.Close())
	const want = "server GET /api/2.5/assets\n  server GET /feed/2.5/page\n    client find clock\n"
	var tree string
	var lines []string
	for range 500 { // the stream ends a little after the client has closed the connection
		tree, lines = r.tree(t, trace, 1), r.lines(trace)
		if strings.HasPrefix(tree, want) && len(lines) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.HasPrefix(tree, want) {
		t.Errorf("got the spans\n%s\nwant them to begin with\n%s", tree, want)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"status":200`) {
		t.Errorf("got the log lines %q, want one with status 200", lines)
	}
	r.send(t, "GET", "/api/2.5/assets", "", "")
	if got, want := r.measured(t), []string{"1 GET /api/2.5/assets 200 2.5 broker"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q: the page, not the stream", got, want)
	}
}

func TestTheFeedHasItsMetrics(t *testing.T) {
	r := start(t, 0)
	r.send(t, "POST", "/api/2.5/assets", "", asset)
	want := []string{"registry.feed.batch.size", "registry.feed.batches.open", "registry.feed.fences",
		"registry.feed.horizon.lag", "registry.feed.opens.refused", "registry.store.clock.lead"}
	var found []string
	for range 500 { // the asset service measures twice a second
		var all metricdata.ResourceMetrics
		expect.OK(t, r.metrics.Collect(t.Context(), &all))
		found = nil
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if slices.Contains(want, m.Name) {
					found = append(found, m.Name)
				}
			}
		}
		if len(found) == len(want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("got %q, want %q", found, want)
}

func TestTelemetryHasNoSecrets(t *testing.T) {
	r := start(t, 1)
	const canary = "canary0123456789canary0123456789"
	var told []string
	_, _, text := r.send(t, "POST", "/api/2.5/assets", "", asset)
	var created struct {
		Access struct{ Token, Transfer string }
		Data   struct{ ID string }
	}
	expect.OK(t, json.Unmarshal([]byte(text), &created))
	path := "/api/2.5/assets/" + created.Data.ID
	for _, token := range []string{canary, created.Access.Token} {
		for _, where := range []struct{ query, header, body string }{
			{"?acc_token=" + token, "", `{"data":{}}`}, {"", token, `{"data":{}}`},
			{"", "", `{"data":{},"access":{"token":"` + token + `"}}`}, {"", "", `{"data":{"title":"` + token},
		} {
			_, header, text := r.send(t, "PATCH", path+where.query, where.header, where.body)
			told = append(told, text, fmt.Sprint(header))
		}
	}
	var all metricdata.ResourceMetrics
	expect.OK(t, r.metrics.Collect(t.Context(), &all))
	told = append(told, fmt.Sprintf("%+v", all), fmt.Sprintf("%+v", r.spans.GetSpans()), r.log.String())
	for _, text := range told {
		for _, secret := range []string{canary, created.Access.Token, created.Access.Transfer, "YnJva2VyOg"} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("got a secret, want none: %s", text[max(0, at-200):min(len(text), at+50)])
			}
		}
	}
}
