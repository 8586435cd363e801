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

// startTimeout is how long a program may take to become ready.
const startTimeout = 30 * time.Second

// buildPrograms builds the services in the same way as for their images, and returns the folder of the programs.
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

// TestProgramsKnowTheirVariables checks the environment variables in the manifests. Each program must know all its
// variables: it would ignore a variable with a wrong name without an error.
func TestProgramsKnowTheirVariables(t *testing.T) {
	bin := buildPrograms(t)
	variable := regexp.MustCompile(`\$([A-Z_]+)`)
	for _, dir := range withServices {
		s := stackOf(t, dir)
		for _, d := range every[*appsv1.Deployment](s) {
			help, err := exec.Command(filepath.Join(bin, d.Name), "serve", "--help").Output()
			if err != nil { // programs that have only one command do not know "serve"
				if help, err = exec.Command(filepath.Join(bin, d.Name), "--help").Output(); err != nil {
					t.Fatal(err)
				}
			}
			known := map[string]bool{ // variables of Go, of OpenTelemetry and of libraries for S3
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

// pod is the program of a deployment. It runs on this machine with the environment variables of its manifest. Its
// ports are replaced by free ports, and its first volume by a folder.
type pod struct {
	deployment *appsv1.Deployment
	cmd        *exec.Cmd
	volume     string
	ports      map[string]string // addresses by the names of the ports
	log        bytes.Buffer
	ended      chan error
}

// newPods prepares the programs of a stack. In the manifests, the programs know each other by the names of the
// stack's Services. newPods replaces these names by addresses on this machine.
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
			// This is an address such as ":8081", on which the program itself listens.
			if addr := addresses[p.deployment.Name+value]; addr != "" {
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

// probe sends the request that the kubelet would send.
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

// end waits until the program has ended. It fails the test if that takes longer than the time after which the
// kubelet would kill the program.
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

// TestTheRegistryRunsAsTheManifestsSay runs the programs with the environment variables of their manifests, and
// with secrets as an operator makes them. An administrator creates a key through the admin port, and a broker
// creates an asset with it.
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
			for _, of := range [][2]string{ // the files that README.md tells the operator to make
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

			// An operator runs this command with kubectl exec.
			adminKey := exec.Command(pods["authsvc"].cmd.Path, "admin-key", "--name", "Olha")
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

			// A service without its store must not be ready. It must still be alive, because a restart would not
			// help.
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
			// Each program sends metrics at least once, when it ends.
			if got := metrics.Load(); (got >= int64(len(pods))) != hasCollector {
				t.Errorf("the collector got metrics %d times", got)
			}
		})
	}
}

// expect sends a request with a key, checks the status of the answer and a part of its text, and returns the body.
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
