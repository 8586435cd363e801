package alerts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the collector compresses with gzip

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/logkey"
	"asset-registry/shared/mongotest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/redistest"
	"asset-registry/shared/translog"
)

// fleet is one process of each service on real stores, and a collector with our configuration, to which all of them
// send their telemetry.
type fleet struct {
	url, adminURL string
	adminKey      string
	metrics       map[string]string // the keys are jobs, the values are URLs of their metrics
	more          map[string]string // the same for further processes with different settings; the keys are commands
	collected     string            // URL at which the collector exports the services' metrics
	mongo         *mongotest.Server
	jaeger        *jaeger
}

// build builds programs of a module into dir.
func build(t *testing.T, dir string, packages ...string) {
	t.Helper()
	args := append([]string{"build", "-trimpath", "-o", dir + string(filepath.Separator)}, packages...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../../.."
	cmd.Env = append(os.Environ(), "GOWORK=")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %v: %v: %s", packages, err, text)
	}
}

// buildCollector builds the OpenTelemetry Collector into the directory of the programs.
func buildCollector(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../tool.sh", "collector")
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("build the collector: %v", err)
	}
	if err := os.Symlink(strings.TrimSpace(string(path)), filepath.Join(dir, "collector")); err != nil {
		t.Fatal(err)
	}
}

// address returns an address of this machine at which no process listens.
func address(t *testing.T) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func start(t *testing.T) *fleet {
	t.Helper()
	t.Setenv("MONGODB_URI", "") // use the stand-in, because the test kills MongoDB
	bin, dir := t.TempDir(), t.TempDir()
	build(t, bin, "./gateway/cmd/gateway", "./assetsvc/cmd/assetsvc", "./searchsvc/cmd/searchsvc", "./authsvc/cmd/authsvc",
		"./filesvc/cmd/filesvc", "./deploy/registry/cmd/registry")
	buildCollector(t, bin)
	f := &fleet{metrics: map[string]string{}, more: map[string]string{}, mongo: mongotest.Start(t), jaeger: startJaeger(t)}
	tokens, limits := redistest.Start(t, "--maxmemory", "100mb").URL(), redistest.Start(t, "--appendonly", "no").URL()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("observed", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	output := &processes.Output{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(output)
		}
	})
	run := func(start func(ctx context.Context, addr string, output *processes.Output, binary string, args ...string) (*processes.Process, error), name, addr string, args ...string) {
		t.Helper()
		p, err := start(t.Context(), addr, output, filepath.Join(bin, name), args...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		})
	}

	// The collector listens and sends only on this machine.
	receiver := address(t)
	f.collected = "http://" + address(t) + "/metrics"
	own := address(t)
	f.metrics["otelcol"] = "http://" + own + "/metrics"
	host, port, err := net.SplitHostPort(own)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), filepath.Join(bin, "collector"), "validate", "--config", "../../observability/otelcol.yaml").CombinedOutput(); err != nil {
		t.Fatalf("otelcol.yaml is not valid: %s", text)
	}
	run(processes.StartAny, "collector", receiver, "--config", "../../observability/otelcol.yaml", "--config", "yaml:"+fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
exporters: {otlp/jaeger: {endpoint: %q}, prometheus: {endpoint: %q}}
service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: %q, port: %s}}}}]}}}
`, address(t), receiver, f.jaeger.addr, strings.TrimSuffix(strings.TrimPrefix(f.collected, "http://"), "/metrics"), host, port))

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+receiver)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "500") // in milliseconds
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	t.Setenv("GOMEMLIMIT", "200MiB")
	auth, assets, edge, admin, files := address(t), address(t), address(t), address(t), address(t)
	f.url, f.adminURL = "http://"+edge, "http://"+admin
	service := func(name, addr string, args ...string) {
		t.Helper()
		metrics := address(t)
		f.metrics[name] = "http://" + metrics + "/metrics"
		run(processes.Start, name, addr, append([]string{"--addr", addr, "--metrics-addr", metrics, "--secret-file", secret}, args...)...)
	}
	logKey := filepath.Join(dir, "log.key")
	keys, err := logkey.ReadOrCreate(logKey, edge)
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(dir, "policy")
	if err := os.WriteFile(policy, fmt.Appendf(nil, "log %s\nwitness w %s http://%s\nquorum none\n",
		keys[0].Public(), silent(t), address(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	service("authsvc", auth, "--store", tokens, "--sandbox", "--admin-addr", admin)
	store := f.mongo.URI(t, fmt.Sprintf("observed%d", time.Now().UnixNano()))
	service("filesvc", files, "--store", store, "--data", filepath.Join(dir, "files"), "--assets-url", "http://"+assets,
		"--base-url", f.url)
	service("assetsvc", assets, "--store", store, "--auth-url", "http://"+auth, "--files-url", "http://"+files,
		"--base-url", f.url, "--log-key-file", logKey, "--log-policy", policy, "--snapshot-dir", filepath.Join(dir, "snapshots"))
	search, searchMetrics := address(t), address(t)
	service("gateway", edge, "--auth-url", "http://"+auth, "--assets-url", "http://"+assets, "--limits-redis", limits,
		"--search-url", "http://"+search, "--files-url", "http://"+files)
	f.metrics["searchsvc"] = "http://" + searchMetrics + "/metrics"
	run(processes.Start, "searchsvc", search, "--addr", search, "--metrics-addr", searchMetrics, "--of", f.url,
		"--data", filepath.Join(dir, "search"))
	// prometheus.yaml does not list a registry in one process, or mirrors, because they do not run together with
	// the services. Here, the registry in one process has its data in files, and uses TLS.
	further := func(command string, args ...string) {
		t.Helper()
		addr, metrics := address(t), address(t)
		f.more[command] = "http://" + metrics + "/metrics"
		run(processes.StartAny, "registry", addr, append([]string{command, "--addr", addr, "--metrics-addr", metrics,
			"--data", filepath.Join(dir, command)}, args...)...)
	}
	cert, private := certify(t, dir)
	further("serve", "--tls-cert", cert, "--tls-key", private)
	further("mirror", "--of", f.url)
	key, err := exec.CommandContext(t.Context(), filepath.Join(bin, "authsvc"), "admin-key", "--store", tokens, "--secret-file", secret, "--name", "check").Output()
	if err != nil {
		t.Fatal(err)
	}
	f.adminKey = strings.TrimSpace(string(key))
	return f
}

// silent returns the public key of a witness that does not run.
func silent(t *testing.T) translog.PublicKey {
	t.Helper()
	key, err := translog.GenerateKey(translog.ForWitness, "witness.example/w")
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

// certify creates a certificate and its key, and returns the paths of their files.
func certify(t *testing.T, dir string) (cert, private string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, private = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, private: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, private
}

// The method `all` returns the metrics that every process exports now.
func (f *fleet) all(t *testing.T) (told series) {
	t.Helper()
	for _, processes := range []map[string]string{f.metrics, f.more} {
		for job, url := range processes {
			told = append(told, scrape(t, job, url)...)
		}
	}
	return told
}

// send sends a request with a key, and returns the status, the headers and the body of the answer.
func send(t *testing.T, method, url, key, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.SetBasicAuth(key, "")
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// jaeger receives traces as Jaeger does, and remembers which services took part in each trace.
type jaeger struct {
	collectortrace.UnimplementedTraceServiceServer
	addr string

	mu       sync.Mutex
	services map[string]map[string]bool // the keys are ids of traces, and then names of services
}

func startJaeger(t *testing.T) *jaeger {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j := &jaeger{addr: listener.Addr().String(), services: map[string]map[string]bool{}}
	server := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(server, j)
	go server.Serve(listener) // returns when Stop is called
	t.Cleanup(server.Stop)
	return j
}

func (j *jaeger) Export(_ context.Context, r *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, of := range r.ResourceSpans {
		name := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				name = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				id := fmt.Sprintf("%x", span.TraceId)
				if j.services[id] == nil {
					j.services[id] = map[string]bool{}
				}
				j.services[id][name] = true
			}
		}
	}
	return &collectortrace.ExportTraceServiceResponse{}, nil
}

// The method `in` returns the services that took part in the given trace.
func (j *jaeger) in(trace string) map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.services[trace]
}
