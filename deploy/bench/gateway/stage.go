package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"asset-registry/shared/httpserver"
	"asset-registry/shared/porttest"
)

const (
	traefikName = "Traefik, all on"
	nginxName   = "nginx, key map and limit_req"
)

// stage has the contenders and the servers that they need.
type stage struct {
	dir, bin, peers string
	upstream, redis string // addresses
	collector       string // URL
	path            string // path that all contenders are asked for
	body            string // file with the bytes that all contenders answer with
	contenders      []*contender
	running         []*exec.Cmd
}

// start starts all servers.
func (s *stage) start(ctx context.Context) error {
	collector, err := startCollector(ctx)
	if err != nil {
		return err
	}
	s.collector = collector
	if s.redis, err = porttest.FreeAddr(); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(s.redis)
	if err != nil {
		return err
	}
	if _, err := s.launch(ctx, s.redis, nil, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "",
		"--appendonly", "no", "--dir", s.dir); err != nil {
		return err
	}
	for _, start := range []func(context.Context) error{s.startRegistry, s.startUpstream, s.startOurs,
		s.startTraefik, s.startCaddy, s.startNginx} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stop stops all servers in reverse order.
func (s *stage) stop() {
	for i := len(s.running) - 1; i >= 0; i-- {
		_ = s.running[i].Process.Signal(syscall.SIGTERM) // nginx then stops its workers; SIGKILL would leave them running
		time.AfterFunc(time.Second, func() { _ = s.running[i].Process.Kill() })
		_ = s.running[i].Wait() // the error only reports the signal
	}
}

// launch starts a program, and waits up to 10 s until it accepts connections at addr.
func (s *stage) launch(ctx context.Context, addr string, env []string, program string, args ...string) (pid int,
	err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second // limits the wait for the workers of nginx, which keep the output open
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", program, err)
	}
	s.running = append(s.running, cmd)
	for range 1000 {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return cmd.Process.Pid, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s does not accept connections: %s", program, output.String())
}

// contend starts a contender. If the contender's program is missing, it prints a message and skips the
// contender.
func (s *stage) contend(ctx context.Context, name, addr string, env []string, program string, args ...string) error {
	if _, err := exec.LookPath(program); err != nil {
		fmt.Printf("skipping %s: %v\n", name, err)
		return nil
	}
	pid, err := s.launch(ctx, addr, env, program, args...)
	if err != nil {
		return err
	}
	s.contenders = append(s.contenders, &contender{name: name, addr: addr, processes: []int{pid},
		request: request(s.path), results: map[int][]measured{}})
	return nil
}

// write writes a file with settings, and returns its path.
func (s *stage) write(name, text string) (string, error) {
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write settings: %w", err)
	}
	return file, nil
}

// serveUpstream answers requests with the bytes of a file. At readingsPath, it answers with the number of requests
// for the path in the environment variable UPSTREAM_PATH so far.
func serveUpstream(ctx context.Context) error {
	listener, err := net.Listen("tcp", os.Getenv("UPSTREAM_ADDR"))
	if err != nil {
		return err
	}
	body, err := os.ReadFile(os.Getenv("UPSTREAM_BODY"))
	if err != nil {
		return fmt.Errorf("read what the upstream answers: %w", err)
	}
	var readings atomic.Int64
	// As in our services, plain requests are answered without the server of net/http.
	return httpserver.Serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case readingsPath:
			fmt.Fprint(w, readings.Load())
			return
		case os.Getenv("UPSTREAM_PATH"):
			readings.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}), slog.New(slog.DiscardHandler), httpserver.ServeOptions{})
}

func (s *stage) startUpstream(ctx context.Context) (err error) {
	if s.upstream, err = porttest.FreeAddr(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	env := []string{"UPSTREAM_ADDR=" + s.upstream, "UPSTREAM_PATH=" + s.path, "UPSTREAM_BODY=" + s.body}
	return s.contend(ctx, "the upstream alone", s.upstream, env, self, "-upstream")
}

// startCollector starts a server that accepts traces and drops them.
func startCollector(ctx context.Context) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	// http.Serve ends when the listener is closed.
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	return "http://" + listener.Addr().String(), nil
}

// tracing returns environment variables that make a program trace one request in a hundred.
func (s *stage) tracing(name string) []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + s.collector, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_METRICS_EXPORTER=none", "OTEL_SERVICE_NAME=" + name,
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.01",
	}
}

func (s *stage) startOurs(ctx context.Context) error {
	secret, err := s.write("secret", strings.Repeat("secret", 8))
	if err != nil {
		return err
	}
	auth, err := porttest.FreeAddr()
	if err != nil {
		return err
	}
	if _, err := s.launch(ctx, auth, nil, filepath.Join(s.bin, "authsvc"), "--addr", auth, "--secret-file", secret,
		"--sandbox", "--store", "file:"+filepath.Join(s.dir, "tokens.db")); err != nil {
		return err
	}
	keys := []string{"--secret-file", secret, "--auth-url", "http://" + auth, "--assets-url", "http://" + s.upstream,
		"--log-level", "error"}
	allOn := append(slices.Clip(keys), s.limits()...)
	for _, c := range []struct {
		name string
		env  []string
		args []string
	}{
		{"our gateway, all on", s.tracing("gateway"), allOn},
		{"our gateway, key only", nil, append(slices.Clip(keys), "--no-limits")},
	} {
		if err := s.startGateway(ctx, c.name, c.env, c.args); err != nil {
			return err
		}
	}
	return nil
}

// limits returns the flags that turn our rate limits on.
func (s *stage) limits() []string {
	return []string{"--config", filepath.Join(s.dir, "limits.yaml"), "--limits-redis", "redis://" + s.redis}
}

func (s *stage) startGateway(ctx context.Context, name string, env, args []string) error {
	addr, err := porttest.FreeAddr()
	if err != nil {
		return err
	}
	return s.contend(ctx, name, addr, env, filepath.Join(s.bin, "gateway"), append([]string{"--addr", addr}, args...)...)
}

func (s *stage) startTraefik(ctx context.Context) error {
	addr, err := porttest.FreeAddr()
	if err != nil {
		return err
	}
	digest := sha1.Sum(nil) // digest of the empty password
	dynamic, err := s.write("traefik-dynamic.yaml", fmt.Sprintf(`
http:
  routers:
    registry: {rule: "PathPrefix(`+"`/`"+`)", service: registry, middlewares: [key, limit]}
  middlewares:
    key: {basicAuth: {users: ["%s:{SHA}%s"]}}
    limit: {rateLimit: {average: 1000000, burst: 1000000, redis: {endpoints: ["%s"]}}}
  services:
    registry: {loadBalancer: {servers: [{url: "http://%s"}]}}
`, key, base64.StdEncoding.EncodeToString(digest[:]), s.redis, s.upstream))
	if err != nil {
		return err
	}
	static, err := s.write("traefik.yaml", fmt.Sprintf(`
entryPoints: {web: {address: "%s"}}
providers: {file: {filename: "%s"}}
tracing: {sampleRate: 0.01, otlp: {http: {endpoint: "%s/v1/traces"}}}
log: {level: ERROR}
global: {checkNewVersion: false, sendAnonymousUsage: false}
`, addr, dynamic, s.collector))
	if err != nil {
		return err
	}
	return s.contend(ctx, traefikName, addr, nil, filepath.Join(s.peers, "traefik"), "--configFile="+static)
}

func (s *stage) startCaddy(ctx context.Context) error {
	addr, err := porttest.FreeAddr()
	if err != nil {
		return err
	}
	file, err := s.write("Caddyfile", fmt.Sprintf(`{
	admin off
	auto_https off
	log {
		level ERROR
	}
}
http://%s {
	@key header Authorization "Basic %s"
	handle @key {
		tracing {
			span registry
		}
		reverse_proxy %s {
			transport http {
				keepalive_idle_conns_per_host 256
			}
		}
	}
	respond 401
}
`, strings.Replace(addr, "127.0.0.1", "", 1), base64.StdEncoding.EncodeToString([]byte(key+":")), s.upstream))
	if err != nil {
		return err
	}
	return s.contend(ctx, "Caddy, key and tracing, no limit", addr,
		append(s.tracing("caddy"), "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir),
		filepath.Join(s.peers, "caddy"), "run", "--config", file, "--adapter", "caddyfile")
}

func (s *stage) startNginx(ctx context.Context) error {
	const cached = `
			proxy_cache answers;
			proxy_cache_valid 200 1h;
			proxy_ignore_headers Cache-Control Expires Set-Cookie Vary;`
	for n, c := range []struct{ name, cache string }{{nginxName, ""}, {"nginx, the same, from proxy_cache", cached}} {
		if err := s.startOneNginx(ctx, n, c.name, c.cache); err != nil {
			return err
		}
		if cached := named(s.contenders, c.name); cached != nil && c.cache != "" {
			cached.forwarded = s.readings
		}
	}
	return nil
}

func (s *stage) startOneNginx(ctx context.Context, n int, name, cache string) error {
	if _, err := exec.LookPath("nginx"); errors.Is(err, exec.ErrNotFound) {
		fmt.Printf("skipping %s: %v\n", name, err)
		return nil
	}
	addr, err := porttest.FreeAddr()
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "nginx"+strconv.Itoa(n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("create folder of nginx: %w", err)
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the workers write into the folder, which belongs to root
	}
	file, err := s.write("nginx"+strconv.Itoa(n)+".conf", fmt.Sprintf(`
daemon off; %[6]s
pid %[1]s/pid;
worker_processes auto;
error_log %[1]s/log error;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2;
	fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
	proxy_cache_path %[1]s/6 keys_zone=answers:10m;
	map $http_authorization $known { default 0; "Basic %[2]s" 1; }
	limit_req_zone $http_authorization zone=keys:10m rate=1000000r/s;
	upstream registry { server %[3]s; keepalive 256; keepalive_requests 1000000000; }
	keepalive_requests 1000000000;
	server {
		listen %[4]s;
		location / {
			if ($known = 0) { return 401; }
			limit_req zone=keys burst=1000000 nodelay;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_pass http://registry;%[5]s
		}
	}
}
`, dir, base64.StdEncoding.EncodeToString([]byte(key+":")), s.upstream, addr, cache, user))
	if err != nil {
		return err
	}
	return s.contend(ctx, name, addr, nil, "nginx", "-c", file)
}
