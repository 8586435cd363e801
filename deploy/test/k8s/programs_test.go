package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"asset-registry/shared/porttest"
	"asset-registry/shared/redistest"
)

// startTimeout is how long a program may take until it is ready.
const startTimeout = 30 * time.Second

// buildPrograms builds the services as their images hold them, and returns their folder.
func buildPrograms(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for _, name := range []string{"gateway", "assetsvc", "authsvc", "searchsvc", "filesvc"} {
		build := exec.Command("go", "build", "-trimpath", "-o", bin, "./cmd/"+name)
		build.Dir = filepath.Join("..", "..", "..", name)
		build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, text)
		}
	}
	return bin
}

// TestProgramsKnowTheirVariables finds names with a mistake: a program ignores variables that it does not know.
func TestProgramsKnowTheirVariables(t *testing.T) {
	bin := buildPrograms(t)
	variable := regexp.MustCompile(`\$([A-Z_]+)`)
	for _, dir := range withServices {
		s := stackOf(t, dir)
		for _, d := range every[*appsv1.Deployment](s) {
			help, err := exec.Command(filepath.Join(bin, d.Name), "serve", "--help").Output()
			if err != nil { // the programs with one command
				if help, err = exec.Command(filepath.Join(bin, d.Name), "--help").Output(); err != nil {
					t.Fatal(err)
				}
			}
			known := map[string]bool{ // of Go, of OpenTelemetry and of libraries for S3
				"GOMEMLIMIT": true, "TMPDIR": true, "AWS_SHARED_CREDENTIALS_FILE": true,
				"OTEL_EXPORTER_OTLP_ENDPOINT": true, "OTEL_TRACES_SAMPLER": true, "OTEL_TRACES_SAMPLER_ARG": true,
			}
			for _, found := range variable.FindAllSubmatch(help, -1) {
				known[string(found[1])] = true
			}
			env, err := s.environment(d)
			if err != nil {
				t.Fatal(err)
			}
			for name := range env {
				if !known[name] {
					t.Errorf("%s: %s does not know %s", dir, d.Name, name)
				}
			}
		}
	}
}

// pod is the program of a deployment on this machine, with the variables of its manifest. Its ports
// are free ones, and its first volume is a folder.
type pod struct {
	deployment *appsv1.Deployment
	cmd        *exec.Cmd
	volume     string
	ports      map[string]string // address by name of the port
	log        bytes.Buffer
	ended      chan error
}

// newPods prepares the programs of a stack. They find each other by the Services of the stack.
func newPods(t *testing.T, s stack, bin, collector string) map[string]*pod {
	t.Helper()
	pods, addresses := map[string]*pod{}, map[string]string{"otelcol.monitoring:4318": strings.TrimPrefix(collector, "http://")}
	for _, d := range every[*appsv1.Deployment](s) {
		p := &pod{deployment: d, cmd: exec.Command(filepath.Join(bin, d.Name)), volume: t.TempDir(), ports: map[string]string{}, ended: make(chan error, 1)}
		p.cmd.Stderr = &p.log
		for _, port := range containerOf(d).Ports {
			addr, err := porttest.FreeAddr()
			if err != nil {
				t.Fatal(err)
			}
			p.ports[port.Name], addresses[fmt.Sprintf("%s:%d", d.Name, port.ContainerPort)] = addr, addr
		}
		for _, v := range every[*corev1.Service](s) {
			for _, port := range v.Spec.Ports {
				if v.Spec.Selector["app.kubernetes.io/name"] == d.Name {
					addresses[fmt.Sprintf("%s:%d", v.Name, port.Port)] = p.ports[port.TargetPort.String()]
				}
			}
		}
		pods[d.Name] = p
	}
	for _, p := range pods {
		env, err := s.environment(p.deployment)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range env {
			value = strings.Replace(value, containerOf(p.deployment).VolumeMounts[0].MountPath, p.volume, 1)
			if addr := addresses[p.deployment.Name+value]; addr != "" { // ":8081" of its own
				value = addr
			} else if u, err := url.Parse(value); err == nil && addresses[u.Host] != "" {
				value = "http://" + addresses[u.Host]
			}
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	return pods
}

// start starts the program, and waits until the readiness probe succeeds.
func (p *pod) start(t *testing.T) {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	ready := containerOf(p.deployment).ReadinessProbe
	for deadline := time.Now().Add(startTimeout); p.probe(ready) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) || len(p.ended) > 0 {
			t.Fatalf("%s is not ready: %v\n%s", p.deployment.Name, p.probe(ready), p.log.String())
		}
	}
}

// probe asks as the kubelet does.
func (p *pod) probe(probe *corev1.Probe) error {
	client := http.Client{Timeout: time.Duration(probe.TimeoutSeconds) * time.Second}
	resp, err := client.Get("http://" + p.ports[probe.HTTPGet.Port.String()] + probe.HTTPGet.Path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	return nil
}

// end waits for the program's end, for as long as the kubelet waits before it kills.
func (p *pod) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("%s ended with %v: %s", p.deployment.Name, err, p.log.String())
		}
	case <-time.After(time.Duration(*p.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second):
		t.Errorf("%s runs at the end of its grace period", p.deployment.Name)
	}
}

// TestTheRegistryRunsAsTheManifestsSay runs the programs with the variables of their manifests and the
// secrets of the operator. An administrator makes a key at the admin port, and a broker an asset.
func TestTheRegistryRunsAsTheManifestsSay(t *testing.T) {
	bin := buildPrograms(t)
	asset, err := os.ReadFile(filepath.Join("..", "..", "bench", "registry", "asset.json"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, hasCollector := range map[string]bool{"base": false, "production": true} {
		t.Run(dir, func(t *testing.T) {
			redis := redistest.Start(t)
			var metrics atomic.Int64
			collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/metrics" {
					metrics.Add(1)
				}
			}))
			t.Cleanup(collector.Close)
			pods := newPods(t, stackOf(t, dir), bin, collector.URL)
			for _, of := range [][2]string{ // as README.md says
				{"authsvc", "store: " + redis.URL() + "/0\n"},
				{"assetsvc", "store: file:" + filepath.Join(t.TempDir(), "assets.db") + "\n"},
				{"gateway", "limits-redis: " + redis.URL() + "/1\n"},
			} {
				p := pods[of[0]]
				for file, text := range map[string]string{"registry-secret": strings.Repeat("0123456789abcdef", 4), of[0] + ".yaml": of[1]} {
					if err := os.WriteFile(filepath.Join(p.volume, file), []byte(text), 0o440); err != nil {
						t.Fatal(err)
					}
				}
				p.start(t)
				expect(t, "", "GET", "http://"+p.ports["metrics"]+"/metrics", nil, 200, "go_")
			}

			adminKey := exec.Command(pods["authsvc"].cmd.Path, "admin-key", "--name", "Olha") // by kubectl exec
			adminKey.Env = pods["authsvc"].cmd.Env
			admin, err := adminKey.Output()
			if err != nil {
				t.Fatalf("admin-key: %v", err)
			}
			office, public := "http://"+pods["authsvc"].ports["admin"]+"/admin/v1", "http://"+pods["gateway"].ports["http"]
			expect(t, string(admin), "POST", office+"/brokers", []byte(`{"data": {"name": "acme", "title": "Acme Ltd"}}`), 201, "acme")
			made := expect(t, string(admin), "POST", office+"/keys", []byte(`{"data": {"broker": "acme", "name": "production", "role": "broker", "levels": "13"}}`), 201, "")
			var key struct{ Secret string }
			if err := json.Unmarshal(made, &key); err != nil {
				t.Fatal(err)
			}
			expect(t, key.Secret, "POST", public+"/api/2.5/assets", asset, 201, `"owner":"acme"`)
			expect(t, "", "GET", public+"/api/2.5/assets", nil, 200, "")
			expect(t, "", "GET", public+"/admin/v1/brokers", nil, 404, "")

			// A service without its store is not ready, but alive: a restart would not help.
			redis.Kill(t)
			for pods["authsvc"].probe(containerOf(pods["authsvc"].deployment).ReadinessProbe) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			for name, p := range pods {
				if err := p.probe(containerOf(p.deployment).LivenessProbe); err != nil {
					t.Errorf("without the store of authsvc, %s is not alive: %v", name, err)
				}
			}
			if err := pods["gateway"].probe(containerOf(pods["gateway"].deployment).ReadinessProbe); err != nil {
				t.Errorf("without the store of authsvc, the gateway is not ready: %v", err)
			}
			redis.Restart(t)
			for _, p := range pods {
				if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			for _, p := range pods {
				p.end(t)
			}
			if got := metrics.Load(); (got >= int64(len(pods))) != hasCollector { // each sends some at its end
				t.Errorf("the collector got metrics %d times", got)
			}
		})
	}
}

// expect sends a request with a key, and compares the answer. It returns the body.
func expect(t *testing.T, key, method, url string, body []byte, status int, text string) []byte {
	t.Helper()
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.SetBasicAuth(strings.TrimSpace(key), "")
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || !strings.Contains(string(got), text) {
		t.Fatalf("%s %s: got %d %s, %v; want %d with %q", method, url, resp.StatusCode, got, err, status, text)
	}
	return got
}
