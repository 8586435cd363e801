package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// buildPrograms builds the services as their images hold them, and returns where they are.
func buildPrograms(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, path := range map[string]string{"gateway": "gateway/cmd/gateway", "assetsvc": "assetsvc/cmd/assetsvc",
		"authsvc": "authsvc/cmd/authsvc", "searchsvc": "searchsvc/cmd/searchsvc",
		"filesvc": "filesvc/cmd/filesvc"} {
		build := exec.Command("go", "build", "-trimpath", "-o", bin, ".")
		build.Dir = filepath.Join("..", "..", "..", path)
		build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, text)
		}
	}
	return bin
}

// TestProgramsKnowTheirVariables: what a program does not know, it ignores, and
// a name with a mistake would be found by nobody.
func TestProgramsKnowTheirVariables(t *testing.T) {
	bin := buildPrograms(t)
	others := []string{ // of Go, of OpenTelemetry and of libraries for S3
		"GOMEMLIMIT", "TMPDIR", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
		"AWS_SHARED_CREDENTIALS_FILE",
	}
	variable := regexp.MustCompile(`\$([A-Z_]+)`)
	for _, dir := range []string{"base", withSearch, withFiles} {
		s := stackFor(t, dir)
		for _, d := range s.deployments {
			args := []string{"--help"}
			if d.Name == "assetsvc" || d.Name == "authsvc" { // these have other commands beside
				args = []string{"serve", "--help"}
			}
			help, err := exec.Command(filepath.Join(bin, d.Name), args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			known := slices.Clone(others)
			for _, found := range variable.FindAllSubmatch(help, -1) {
				known = append(known, string(found[1]))
			}
			env, err := s.environment(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(env)) {
				if !slices.Contains(known, name) {
					t.Errorf("%s: %s does not know %s", dir, d.Name, name)
				}
			}
		}
	}
}

// pod is a deployment's program, run as the manifest says on this machine: its
// ports are free ones here, and its volume is a directory.
type pod struct {
	deployment *appsv1.Deployment
	binary     string
	dir        string            // what the manifest has mounted
	ports      map[string]string // addresses by the ports' names
	env        []string
	cmd        *exec.Cmd
	log        bytes.Buffer
	ended      chan error
}

// pods prepares all programs of a stack, so that they find each other, and what
// collects telemetry if they are told of one.
func pods(t *testing.T, s *stack, bin, collector string) map[string]*pod {
	t.Helper()
	all := map[string]*pod{}
	for _, d := range s.deployments {
		p := &pod{deployment: d, binary: filepath.Join(bin, d.Name), dir: t.TempDir(), ports: map[string]string{}, ended: make(chan error, 1)}
		for _, port := range p.container().Ports {
			p.ports[port.Name] = freeAddr(t)
		}
		all[d.Name] = p
	}
	for _, p := range all {
		env, err := s.environment(p.deployment)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range env {
			value = strings.Replace(value, p.container().VolumeMounts[0].MountPath, p.dir, 1)
			for _, port := range p.container().Ports {
				if value == fmt.Sprintf(":%d", port.ContainerPort) {
					value = p.ports[port.Name]
				}
			}
			if u, err := url.Parse(value); err == nil && all[u.Hostname()] != nil {
				value = "http://" + all[u.Hostname()].ports["http"]
			}
			if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
				value = collector
			}
			p.env = append(p.env, name+"="+value)
		}
	}
	return all
}

func (p *pod) container() corev1.Container { return p.deployment.Spec.Template.Spec.Containers[0] }

// start runs the program, in whose directory the operator's secrets lie.
func (p *pod) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.binary)
	p.cmd.Env, p.cmd.Stderr = p.env, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	deadline := time.Now().Add(startTimeout)
	for p.probe(p.container().ReadinessProbe) != nil {
		select {
		case err := <-p.ended:
			t.Fatalf("%s has ended: %v: %s", p.deployment.Name, err, p.log.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready: %v", p.deployment.Name, p.probe(p.container().ReadinessProbe))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// probe asks what the kubelet does.
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

// end asks the program to end, as the kubelet does after the pause before, and
// fails where that would kill it.
func (p *pod) end(t *testing.T) {
	t.Helper()
	grace := time.Duration(*p.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if life := p.container().Lifecycle; life != nil {
		grace -= time.Duration(life.PreStop.Sleep.Seconds) * time.Second
	}
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("%s ended with %v: %s", p.deployment.Name, err, p.log.String())
		}
	case <-time.After(grace):
		t.Errorf("%s would have been killed", p.deployment.Name)
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := porttest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// TestTheRegistryRunsAsTheManifestsSay: the programs, with nothing but the
// environment of their manifests and the operator's secrets, make a registry
// whose brokers are administered by the admin port alone.
func TestTheRegistryRunsAsTheManifestsSay(t *testing.T) {
	bin := buildPrograms(t)
	asset, err := os.ReadFile(filepath.Join("..", "..", "bench", "registry", "asset.json"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, collected := range map[string]bool{"base": false, "production": true} {
		t.Run(dir, func(t *testing.T) {
			redis := redistest.Start(t)
			var told atomic.Int64
			collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/metrics" {
					told.Add(1)
				}
			}))
			t.Cleanup(collector.Close)
			all := pods(t, stackFor(t, dir), bin, collector.URL)
			secrets := map[string]string{ // as README.md tells the operator
				"authsvc":  "store: " + redis.URL() + "/0\n",
				"assetsvc": "store: file:" + filepath.Join(t.TempDir(), "assets.db") + "\n",
				"gateway":  "limits-redis: " + redis.URL() + "/1\n",
			}
			for _, name := range []string{"authsvc", "assetsvc", "gateway"} {
				p := all[name]
				for file, text := range map[string]string{"registry-secret": strings.Repeat("0123456789abcdef", 4), name + ".yaml": secrets[name]} {
					if err := os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o440); err != nil {
						t.Fatal(err)
					}
				}
				p.start(t)
				if err := p.probe(p.container().LivenessProbe); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if status, text := ask(t, "", "GET", "http://"+p.ports["metrics"]+"/metrics", nil); status != 200 || !strings.Contains(text, "go_") {
					t.Errorf("%s has no metrics: %d", name, status)
				}
			}

			office := "http://" + all["authsvc"].ports["admin"] + "/admin/v1"
			makeKey := exec.Command(all["authsvc"].binary, "admin-key", "--name", "Olha") // by kubectl exec
			makeKey.Env = all["authsvc"].env
			admin, err := makeKey.Output()
			if err != nil {
				t.Fatalf("admin-key: %v", err)
			}
			if status, text := ask(t, string(admin), "POST", office+"/brokers", []byte(`{"data": {"name": "acme", "title": "Acme Ltd"}}`)); status != 201 {
				t.Fatalf("a broker: %d %s", status, text)
			}
			status, text := ask(t, string(admin), "POST", office+"/keys", []byte(`{"data": {"broker": "acme", "name": "production", "role": "broker", "levels": "13"}}`))
			var key struct{ Secret string }
			if err := json.Unmarshal([]byte(text), &key); err != nil || status != 201 {
				t.Fatalf("a key: %d %s", status, text)
			}

			public := "http://" + all["gateway"].ports["http"]
			if status, text := ask(t, key.Secret, "POST", public+"/api/2.5/assets", asset); status != 201 || !strings.Contains(text, `"owner":"acme"`) {
				t.Errorf("an asset: %d %s", status, text)
			}
			for path, want := range map[string]int{"/api/2.5/assets": 200, "/api/2.5/health": 200, "/admin/v1/brokers": 404} {
				if status, text := ask(t, "", "GET", public+path, nil); status != want {
					t.Errorf("%s: %d %s", path, status, text)
				}
			}

			// A service without its store is not ready, and is not restarted for it.
			redis.Kill(t)
			auth := all["authsvc"].container()
			for all["authsvc"].probe(auth.ReadinessProbe) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			for name, p := range all {
				if err := p.probe(p.container().LivenessProbe); err != nil {
					t.Errorf("without a store behind authsvc, %s: %v", name, err)
				}
			}
			if err := all["gateway"].probe(all["gateway"].container().ReadinessProbe); err != nil {
				t.Errorf("without a store behind authsvc, a gateway is not ready: %v", err)
			}
			redis.Restart(t)

			for _, p := range all {
				if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			for _, p := range all {
				p.end(t)
			}
			if got := told.Load(); (got >= int64(len(all))) != collected { // each tells at its end at the latest
				t.Errorf("the collector was told %d times", got)
			}
		})
	}
}

// ask sends a request with a key, and returns the answer's status and body.
func ask(t *testing.T, key, method, url string, body []byte) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.SetBasicAuth(strings.TrimSpace(key), "")
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
