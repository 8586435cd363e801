package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"go.yaml.in/yaml/v3"
)

// accept is the header Accept that Prometheus 3 sends.
const accept = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"

const patience = 40 * time.Second // how long it may take until every process has exported its metrics

const asset = `{"data":{"assetType":"bounce","title":"т","description":"о","items":[{"description":"о",` +
	`"classification":{"scheme":"CAV-PS","id":"06111000-3","description":"з"},"address":{"countryName":"У"},"unit":{"code":"c"},"quantity":1,` +
	`"registrationDetails":{"status":"unknown"}}],"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1"}],` +
	`"assetCustodian":{"name":"Ф","identifier":{"scheme":"UA-EDR","id":"1"},"address":{"countryName":"У"},"contactPoint":{"name":"Д","telephone":"1"}}}}`

// scrape returns the metrics of a job in the form in which Prometheus stores them.
func scrape(t *testing.T, job, url string) (all series) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	p, err := textparse.New(text, resp.Header.Get("Content-Type"), labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("metrics of %s: %v", job, err)
		}
		if entry == textparse.EntrySeries {
			var l labels.Labels
			p.Labels(&l)
			all = append(all, labels.NewBuilder(l).Set("job", job).Set("instance", job+":9464").Labels())
		}
	}
	return append(all, labels.FromStrings("__name__", "up", "job", job, "instance", job+":9464"))
}

// jobs returns the names of the jobs that prometheus.yaml scrapes.
func jobs(t *testing.T) (names []string) {
	t.Helper()
	var file struct {
		ScrapeConfigs []struct {
			JobName string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
	}
	read(t, "../../observability/prometheus.yaml", func(text []byte) error { return yaml.Unmarshal(text, &file) })
	for _, c := range file.ScrapeConfigs {
		names = append(names, c.JobName)
	}
	return names
}

// await repeats a check until it returns no faults. When the time in the constant `patience` is over, it fails the
// test and prints the faults.
func await(t *testing.T, check func() []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		faults := check()
		if len(faults) == 0 {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			for _, fault := range faults {
				t.Error(fault)
			}
			return
		}
	}
}

// follow opens a stream at the gateway, and publishes assets until the gateway has measured how late an asset
// reached the stream.
func (f *fleet) follow(t *testing.T) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/api/2.5/assets", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	await(t, func() []string {
		_, header, _ := send(t, http.MethodPost, f.url+"/api/2.5/assets", "broker", asset)
		got, _, text := send(t, http.MethodPatch, header.Get("Location"), "administrator", `{"data":{"status":"pending"}}`)
		if got != http.StatusOK {
			return []string{fmt.Sprintf("publish an asset: got %d %s, want 200", got, text)}
		}
		for _, l := range scrape(t, "gateway", f.metrics["gateway"]) {
			if l.Get("__name__") == "registry_gateway_feed_lag_seconds_count" {
				return nil
			}
		}
		return []string{"the gateway tells nothing of registry.gateway.feed.lag"}
	})
}

// TestEverythingThatIsLookedAtIsTold starts the registry and a collector, and uses every service a little. Every
// metric and label that a rule or a dashboard uses must then exist.
func TestEverythingThatIsLookedAtIsTold(t *testing.T) {
	f := start(t)
	if got, want := slices.Sorted(slices.Values(jobs(t))), slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(f.metrics)), "prometheus"))); !slices.Equal(got, want) {
		t.Errorf("prometheus.yaml asks %q, what tells is %q", got, want)
	}
	must := func(want int, method, url, key, body string) http.Header {
		t.Helper()
		got, header, text := send(t, method, url, key, body)
		if got != want {
			t.Fatalf("%s %s: %d %s", method, url, got, text)
		}
		return header
	}
	header := must(201, "POST", f.url+"/api/2.5/assets", "broker", asset)
	trace := header.Get("X-Trace-ID")
	must(200, "PATCH", header.Get("Location"), "administrator", `{"data":{"status":"pending"}}`)
	must(200, "GET", f.url+"/api/2.4/assets", "", "")
	f.follow(t)
	must(200, "GET", f.url+"/api/2.5/search?q=x", "", "")
	must(200, "GET", f.adminURL+"/admin/v1/audit/verify", f.adminKey, "")

	t.Run("a trace comes through the collector", func(t *testing.T) {
		await(t, func() (missing []string) {
			for _, service := range []string{"gateway", "assetsvc", "authsvc"} {
				if !f.jaeger.in(trace)[service] {
					missing = append(missing, service+" is not in the trace "+trace)
				}
			}
			return missing
		})
	})
	t.Run("so do the metrics, by the same names", func(t *testing.T) {
		await(t, func() (missing []string) {
			come := map[string]bool{}
			for _, l := range scrape(t, "otelcol", f.collected) {
				come[l.Get("__name__")] = true
			}
			for _, service := range []string{"gateway", "assetsvc", "filesvc", "authsvc"} {
				for _, l := range scrape(t, service, f.metrics[service]) {
					name := l.Get("__name__")
					if l.Get("otel_scope_name") != "" && !come[name] && !slices.Contains(missing, name) {
						missing = append(missing, name)
					}
				}
			}
			return missing
		})
	})

	before := f.all(t) // some metrics are missing when MongoDB is down
	// The rules also select the job "registry". No process runs under this job here, so add its metric.
	before = append(before, labels.FromStrings("__name__", "up", "job", "registry", "instance", "registry:9464"))
	f.mongo.Kill(t) // some metrics count failures, so make requests fail
	must(503, "GET", f.url+"/api/2.5/assets", "", "")
	all := queries(t)
	var told series
	await(t, func() (faults []string) {
		told = append(slices.Clone(before), f.all(t)...).recorded(t)
		for _, q := range all {
			faults = append(faults, told.faults(q)...)
		}
		return faults
	})
	// Check the check itself: it must find what is wrong in these expressions.
	for text, want := range map[string]string{
		`registry_feed_horizon_lag`:                             "nothing is told of",
		`up{job="gateways"}`:                                    "nothing is told of",
		`sum by (route) (go_goroutine_count)`:                   "has the label route",
		`sum by (job) (max by (instance) (go_goroutine_count))`: "has the label job",
		`go_goroutine_count / on (broker) go_goroutine_count`:   "has the label broker",
	} {
		if got := strings.Join(told.faults(query{"x", parse(t, "x", text), nil}), " "); !strings.Contains(got, want) {
			t.Errorf("of %s it is said %q, not that %s", text, got, want)
		}
	}
	if got := told.faults(query{"x", parse(t, "x", "sum by (job) (up)"), []string{"instance"}}); len(got) != 1 {
		t.Errorf("a text that shows a label that was summed over: %q", got)
	}
}
