package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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

// pod is the program of a deployment. It runs on this machine with the environment variables of its manifest. Its
// ports are replaced by free ports, and its first volume by a folder.
type pod struct {
	*exec.Cmd
	stop   func() // sends SIGTERM, and SIGKILL when the time has passed that the manifest gives
	spec   corev1.PodSpec
	volume string
	ports  map[string]string // addresses; the keys are the names of the ports
	log    bytes.Buffer
}

// newPods prepares the programs of a stack. In the manifests, the programs know each other by the names of the
// stack's Services. newPods replaces these names by addresses on this machine.
func newPods(t *testing.T, s stack, bin, collector string) map[string]*pod {
	t.Helper()
	pods, addresses := map[string]*pod{}, []string{"otelcol.monitoring:4318", collector}
	for _, d := range every[*appsv1.Deployment](s) {
		ctx, stop := context.WithCancel(t.Context())
		p := &pod{
			Cmd: exec.CommandContext(ctx, filepath.Join(bin, d.Name)), stop: stop,
			spec: d.Spec.Template.Spec, volume: t.TempDir(), ports: map[string]string{},
		}
		p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
		p.WaitDelay = time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second
		p.Stderr = &p.log
		own := []string{containerOf(d).VolumeMounts[0].MountPath, p.volume}
		for _, port := range containerOf(d).Ports {
			addr, err := porttest.FreeAddr()
			if err != nil {
				t.Fatal(err)
			}
			p.ports[port.Name] = addr
			own = append(own, fmt.Sprintf(":%d", port.ContainerPort), addr) // the program listens on such an address
		}
		for _, v := range every[*corev1.Service](s) {
			for _, port := range v.Spec.Ports {
				if v.Spec.Selector["app.kubernetes.io/name"] == d.Name {
					addresses = append(addresses, fmt.Sprintf("%s:%d", v.Name, port.Port), p.ports[port.TargetPort.String()])
				}
			}
		}
		pods[d.Name] = p
		env, err := s.environment(d)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range env {
			if strings.HasPrefix(value, ":") || strings.HasPrefix(value, "/") {
				value = strings.NewReplacer(own...).Replace(value)
			}
			p.Env = append(p.Env, name+"="+value)
		}
	}
	for _, p := range pods {
		for i, variable := range p.Env {
			p.Env[i] = strings.NewReplacer(addresses...).Replace(variable)
		}
	}
	return pods
}

// start starts the program, and waits until the readiness probe succeeds.
func (p *pod) start(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ready := p.spec.Containers[0].ReadinessProbe
	for deadline := time.Now().Add(30 * time.Second); p.probe(ready) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready: %v\n%s", p.Path, p.probe(ready), p.log.String())
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

// TestTheRegistryRunsAsTheManifestsSay runs the programs with the environment variables of their manifests, and
// with secrets as an operator makes them. An administrator creates a key through the admin port, and a broker
// creates an asset with it.
func TestTheRegistryRunsAsTheManifestsSay(t *testing.T) {
	bin := t.TempDir()
	programs := exec.Command("go", "build", "-o", bin,
		"./gateway/cmd/gateway", "./assetsvc/cmd/assetsvc", "./authsvc/cmd/authsvc")
	programs.Dir, programs.Env = "../../..", append(os.Environ(), "GOWORK=", "CGO_ENABLED=0")
	if text, err := programs.CombinedOutput(); err != nil {
		t.Fatalf("build the services: %v\n%s", err, text)
	}
	asset, err := os.ReadFile("../../bench/registry/asset.json")
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
			pods := newPods(t, decode(t, build(t, dir)), bin, collector.Listener.Addr().String())
			for _, of := range [][2]string{ // the files that README.md tells the operator to make
				{"authsvc", "store: " + redis.URL() + "/0\n"},
				{"assetsvc", "store: file:" + filepath.Join(t.TempDir(), "assets.db") + "\n"},
				{"gateway", "limits-redis: " + redis.URL() + "/1\n"},
			} {
				p, secret := pods[of[0]], strings.Repeat("0123456789abcdef", 4)
				for file, text := range map[string]string{"registry-secret": secret, of[0] + ".yaml": of[1]} {
					if err := os.WriteFile(filepath.Join(p.volume, file), []byte(text), 0o440); err != nil {
						t.Fatal(err)
					}
				}
				p.start(t)
				expect(t, "", "GET", "http://"+p.ports["metrics"]+"/metrics", "", 200, "go_")
			}
			auth, gateway := pods["authsvc"], pods["gateway"]

			// An operator runs this command with kubectl exec.
			adminKey := exec.Command(auth.Path, "admin-key", "--name", "Olha")
			adminKey.Env = auth.Env
			admin, err := adminKey.Output()
			if err != nil {
				t.Fatalf("admin-key: %v", err)
			}
			office, public := "http://"+auth.ports["admin"]+"/admin/v1", "http://"+gateway.ports["http"]
			expect(t, string(admin), "POST", office+"/brokers", `{"data": {"name": "acme", "title": "Acme"}}`, 201, "acme")
			wanted := `{"data": {"broker": "acme", "name": "production", "role": "broker", "levels": "13"}}`
			made := expect(t, string(admin), "POST", office+"/keys", wanted, 201, "")
			var key struct{ Secret string }
			if err := json.Unmarshal(made, &key); err != nil {
				t.Fatal(err)
			}
			expect(t, key.Secret, "POST", public+"/api/2.5/assets", string(asset), 201, `"owner":"acme"`)
			expect(t, "", "GET", public+"/api/2.5/assets", "", 200, "")
			expect(t, "", "GET", public+"/admin/v1/brokers", "", 404, "")

			// A service without its store must not be ready. It must still be alive, because a restart would not
			// help.
			redis.Kill(t)
			for auth.probe(auth.spec.Containers[0].ReadinessProbe) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			for name, p := range pods {
				if err := p.probe(p.spec.Containers[0].LivenessProbe); err != nil {
					t.Errorf("without the store of authsvc, %s is not alive: %v", name, err)
				}
			}
			if err := gateway.probe(gateway.spec.Containers[0].ReadinessProbe); err != nil {
				t.Errorf("without the store of authsvc, the gateway is not ready: %v", err)
			}
			redis.Restart(t)
			for _, p := range pods {
				p.stop()
			}
			for name, p := range pods {
				// Wait returns context.Canceled for a program that ends in time and without an error.
				if err := p.Wait(); !errors.Is(err, context.Canceled) {
					t.Errorf("%s ended with %v: %s", name, err, p.log.String())
				}
			}
			// Each program sends metrics at least once, when it ends.
			if got := metrics.Load(); (got >= int64(len(pods))) != hasCollector {
				t.Errorf("the collector got metrics %d times", got)
			}
		})
	}
}

// expect sends a request with a key, checks the status of the answer and a part of its text, and returns the body.
func expect(t *testing.T, key, method, url string, body string, status int, text string) []byte {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
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
