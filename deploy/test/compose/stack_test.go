package compose

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// root is the path from this package to the root of the repository.
const root = "../../.."

// balancers is the subnet of the load balancer of the admin API.
const balancers = "10.230.3.0/24"

// aftermath is how long it takes until every service has noticed that a fault has ended.
const aftermath = 6 * time.Second

// stack holds the running containers of docker-compose.yml.
type stack struct {
	compose       []string // command of Docker Compose
	project       string
	public, admin string // URLs
	key           string // API key of a broker
	secrets       string // directory of the secrets
	env           []string

	mu      sync.Mutex
	broken  int       // number of active faults
	excused time.Time // until this time, requests may fail because of a fault that has ended
}

// start starts the stack without data, as a new operator does, and removes the stack when the test ends. The given
// settings ("NAME=value") are added to the settings of all tests. They replace settings with the same names.
func start(t testing.TB, settings ...string) *stack {
	t.Helper()
	compose := strings.Fields(os.Getenv("COMPOSE"))
	if len(compose) == 0 {
		t.Skip("COMPOSE is not set; run make test-compose")
	}
	s := &stack{project: fmt.Sprint("registry-test-", os.Getpid()), secrets: t.TempDir(),
		key: "broker", env: os.Environ()}
	env := filepath.Join(t.TempDir(), "env") // file with the settings of the operator (.env)
	expect.OK(t, os.WriteFile(env, []byte("SECRETS="+s.secrets+"\n"), 0o600))
	s.compose = append(compose, "--project-name", s.project, "--env-file", env, "--file", "docker-compose.yml",
		"--file", "deploy/test/compose/standin.yml")
	var addrs [2]string
	for i := range addrs {
		addr := expect.Get(porttest.FreeAddr())(t)
		addrs[i] = addr
	}
	s.public, s.admin = "http://"+addrs[0], "http://"+addrs[1]
	s.set("PUBLIC_ADDR", addrs[0])
	s.set("ADMIN_ADDR", addrs[1])
	s.set("EDGE_SUBNET", "10.230.2.0/24")
	s.set("ADMIN_SUBNET", balancers)
	s.set("SEARCH_SUBNET", "10.230.5.0/24")
	s.set("GATEWAY_BASE_URL", s.public)
	s.set("HEALTH_INTERVAL", "3s")
	s.set("SANDBOX", "true")
	s.set("GATEWAY_LIMITS", `[
		{"name": "key", "by": "key", "costs": {"list": 1, "read": 1, "write": 1}, "windows": {"1s": 100000}},
		{"name": "address", "by": "address", "costs": {"list": 1, "read": 1, "write": 1}, "windows": {"1s": 100000}}]`)
	// There is no collector at this address, and the services must work without one.
	s.set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otelcol:4318")
	s.set("OTEL_TRACES_SAMPLER", "always_on")
	s.env = append(s.env, settings...) // if a name occurs twice, the last value counts
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.run(t, "logs", "--no-color", "--tail", "40"))
		}
		s.run(t, "down", "--volumes", "--timeout", "5")
	})
	s.run(t, "up", "--detach", "--no-build", "--wait", "--wait-timeout", "120")
	return s
}

func (s *stack) set(name, value string) { s.env = append(s.env, name+"="+value) }

// run runs Docker Compose and returns its stdout.
func (s *stack) run(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(s.compose[0], append(slices.Clone(s.compose[1:]), args...)...)
	cmd.Dir, cmd.Env = root, s.env
	return output(t, cmd)
}

// script runs a script of deploy/compose.
func (s *stack) script(t testing.TB, name string, args ...string) {
	t.Helper()
	output(t, s.command(name, args...))
}

func (s *stack) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(root, "deploy/compose", name), args...)
	cmd.Env = append(s.env, "COMPOSE="+strings.Join(s.compose, " "))
	return cmd
}

func docker(t testing.TB, args ...string) string {
	t.Helper()
	return output(t, exec.Command("docker", args...))
}

func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, stderr.String())
	}
	return strings.TrimSpace(string(text))
}

// service returns the service of a container, and the container's number. For example, "gateway-1" is the first
// gateway. Stores and load balancers have one container each.
func service(name string) (service string, n int) {
	for _, several := range []string{"gateway", "assetsvc", "authsvc", "filesvc"} {
		if number, found := strings.CutPrefix(name, several+"-"); found {
			return several, int(number[0] - '0')
		}
	}
	return name, 1
}

// container returns the name by which the engine knows a container. The parameter `name` has a form such as
// "gateway-1".
func (s *stack) container(t testing.TB, name string) string {
	t.Helper()
	service, n := service(name)
	all := strings.Fields(docker(t, "ps", "--all", "--format", "{{.Names}}",
		"--filter", "label=com.docker.compose.project="+s.project, "--filter",
		"label=com.docker.compose.service="+service))
	if len(all) < n {
		t.Fatalf("got no %s in %q, want it there", name, all)
	}
	slices.Sort(all)
	return all[n-1]
}

// trouble records that a fault begins. The returned function records the end of the fault. After the end, requests
// may still fail for the time in the parameter `felt`.
func (s *stack) trouble() (over func(felt time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken++
	return func(felt time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.broken--
		s.excused = time.Now().Add(felt)
	}
}

// troubled reports whether a request that was sent at the time `since` may fail.
func (s *stack) troubled(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken > 0 || since.Before(s.excused)
}

// crash kills the process of a container, as the kernel does when memory runs out. It waits until the engine has
// restarted the container.
func (s *stack) crash(t testing.TB, name string) {
	t.Helper()
	var pid int
	if err := json.Unmarshal([]byte(docker(t, "inspect", "--format", "{{.State.Pid}}", s.container(t, name))),
		&pid); err != nil || pid < 2 {
		t.Fatalf("got process %d, %v of %s, want its id", pid, err, name)
	}
	before := docker(t, "inspect", "--format", "{{.State.StartedAt}}", s.container(t, name))
	expect.Must(t, syscall.Kill(pid, syscall.SIGKILL), "kill %s", name)
	await(t, "a new start of "+name, func() bool {
		return docker(t, "inspect", "--format", "{{.State.StartedAt}}", s.container(t, name)) != before
	})
	s.awaitHealth(t, name)
}

// awaitHealth waits until the engine reports that all the containers are healthy.
func (s *stack) awaitHealth(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		await(t, name+" is healthy", func() bool {
			return docker(t, "inspect", "--format", "{{.State.Health.Status}}", s.container(t, name)) == "healthy"
		})
	}
}

// cut disconnects a container from a network. The returned function `mend` connects it again.
func (s *stack) cut(t testing.TB, name, network string) (mend func()) {
	t.Helper()
	service, _ := service(name)
	network, container := s.project+"_"+network, s.container(t, name)
	docker(t, "network", "disconnect", network, container)
	return func() { docker(t, "network", "connect", "--alias", service, network, container) }
}

// await waits up to a minute until a condition is true.
func await(t testing.TB, what string, true func() bool) {
	t.Helper()
	for began := time.Now(); !true(); time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > 60*time.Second {
			t.Fatalf("after a minute: got no success, want: %s", what)
		}
	}
}
