// Package processes runs the registry's programs as real processes, with sockets and files. It is for tests, for
// benchmarks, and for running all programs on one machine.
package processes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"asset-registry/shared/logkey"
	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

const (
	startTimeout = time.Minute      // how long a process may take to become ready
	stopTimeout  = 40 * time.Second // how long a process may run after SIGTERM
	pollInterval = 10 * time.Millisecond
	againAfter   = time.Second // the pause before a process that has ended starts again
)

// Process is a running program.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // the error of Wait; set before the channel `exited` is closed
	output *Output
	name   string // of the service
	ready  func(context.Context) error
}

// Start runs a program that serves at addr, and returns when its /readyz answers 200. It fails if that takes longer
// than a minute, or if the program ends. The program prints to output.
func Start(ctx context.Context, addr string, output *Output, binary string, args ...string) (*Process, error) {
	return start(ctx, output, binary, args, func(ctx context.Context) error { return askReady(ctx, addr) })
}

// StartAny runs any program, and returns when it accepts connections at addr.
func StartAny(ctx context.Context, addr string, output *Output, binary string, args ...string) (*Process, error) {
	return start(ctx, output, binary, args, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func start(ctx context.Context, output *Output, binary string, args []string,
	ready func(context.Context) error) (*Process, error) {
	p := &Process{cmd: exec.Command(binary, args...), exited: make(chan struct{}), output: output, ready: ready}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	if err := p.awaitReady(ctx, ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w; its output: %s", binary, err, output.String()), p.Kill())
	}
	return p, nil
}

func (p *Process) awaitReady(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if ready(ctx) == nil {
			return nil
		}
		select {
		case <-time.After(pollInterval):
		case <-p.exited:
			return fmt.Errorf("ended early: %w", p.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// askReady returns nil if /readyz at addr answers 200.
func askReady(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %d", addr, resp.StatusCode)
	}
	return nil
}

// ID returns the process id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Stop sends SIGTERM, waits, and returns the error of Wait, which is nil for exit code 0. If the process has not
// ended after 40 s, Stop kills it and returns an error.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop: %w", err)
	}
	select {
	case <-p.exited:
		return p.err
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("no end within %v of SIGTERM", stopTimeout), p.Kill())
	}
}

// Kill sends SIGKILL, as if the process crashed, and waits for its end.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill: %w", err)
	}
	<-p.exited
	return nil
}

// Freeze suspends the process with SIGSTOP until Thaw is called.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw resumes a frozen process with SIGCONT.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %v: %w", s, err)
	}
	return nil
}

// Output keeps the output of processes in memory. The zero value is ready for use. Concurrent use is safe.
type Output struct {
	// If Also is set, the output goes to it and is not kept in memory.
	Also io.Writer

	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed by the next Write; nil while no Await runs
}

// Write keeps p in memory, or writes it to Also.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Also != nil {
		if _, err := o.Also.Write(p); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	if o.written != nil {
		close(o.written)
		o.written = nil
	}
	return o.text.Write(p)
}

// Await returns when the output contains the given text, or with an error when ctx is done. Use it when an answer
// of a process has come already: the process's output may arrive a little later.
func (o *Output) Await(ctx context.Context, text string) error {
	for {
		o.mu.Lock()
		found := bytes.Contains(o.text.Bytes(), []byte(text))
		if o.written == nil {
			o.written = make(chan struct{})
		}
		written := o.written
		o.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-written:
		case <-ctx.Done():
			return fmt.Errorf("wait for %q in the output: %w", text, ctx.Err())
		}
	}
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Standalone starts the registry as one process on the data directory dir, with the sandbox keys and without rate
// limits. The parameter `bin` is the directory of the programs.
func Standalone(ctx context.Context, bin, addr, dir string, output *Output, args ...string) (*Process, error) {
	args = append([]string{"serve", "--sandbox", "--no-limits", "--addr", addr, "--data", dir}, args...)
	return Start(ctx, addr, output, filepath.Join(bin, "registry"), args...)
}

// Search starts a search service for the registry at the address `of`. The service keeps its index in the directory
// dir.
func Search(ctx context.Context, bin, addr, of, dir string, output *Output, args ...string) (*Process, error) {
	args = append([]string{"--addr", addr, "--of", of, "--data", dir}, args...)
	return Start(ctx, addr, output, filepath.Join(bin, "searchsvc"), args...)
}

// Split is a registry whose services run as separate processes.
type Split struct {
	URL       string   // URL of the first gateway
	URLs      []string // URLs of all gateways
	processes []*Process
}

// Stores says which stores the services of a Split use. Assets and Tokens are URLs; if a URL is empty, the store is
// a file.
type Stores struct {
	Assets, Tokens string
	Search         bool // run a search service, too
	// Environment variables that the services need for these stores, such as "ASSETSVC_TIMEOUT=50s".
	Env []string

	AssetServices, Gateways int // 0 means 1; for several asset services, the fields Assets and Tokens must be set
	// Directory of the program for all asset services except the first one. If Beside is empty, all asset services use
	// the directory of the first one.
	Beside string
}

// Command returns arguments for env(1). With them, env runs a program with the variables in the field Env.
func (s Stores) Command(binary string, args ...string) []string {
	return slices.Concat(s.Env, []string{binary}, args)
}

// StartSplit starts the services on the data directory dir, with the sandbox keys and without rate limits. The
// first gateway serves at addr. All services get args, too.
func StartSplit(ctx context.Context, bin, addr, dir string, stores Stores, output *Output, args ...string) (*Split,
	error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	secret := filepath.Join(dir, "secret")
	if err := makeSecret(secret); err != nil {
		return nil, err
	}
	logKey := filepath.Join(dir, "log.key")
	if _, err := logkey.ReadOrCreate(logKey, addr); err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(3 + max(stores.AssetServices, 1) + max(stores.Gateways, 1))
	if err != nil {
		return nil, err
	}
	auth, search, files, assets := addrs[0], addrs[1], addrs[2], addrs[3:3+max(stores.AssetServices, 1)]
	gateways := addrs[3+len(assets):]
	gateways[0] = addr
	services := []service{{"authsvc", auth, []string{
		"--store", cmp.Or(stores.Tokens, "file:"+filepath.Join(dir, "tokens.db")), "--sandbox",
	}}}
	for _, at := range assets {
		services = append(services, service{"assetsvc", at, []string{
			"--store", cmp.Or(stores.Assets, "file:"+filepath.Join(dir, "assets.db")), "--sandbox",
			"--auth-url", "http://" + auth, "--log-key-file", logKey, "--snapshot-dir", filepath.Join(dir, "snapshots"),
			"--files-url", "http://" + files, "--base-url", "http://" + addr,
		}})
	}
	services = append(services, service{"filesvc", files, []string{
		"--store", cmp.Or(stores.Assets, "file:"+filepath.Join(dir, "files.db")), "--data", filepath.Join(dir, "files"),
		"--assets-url", "http://" + strings.Join(assets, ",http://"), "--base-url", "http://" + addr,
	}})
	s := &Split{URL: "http://" + addr}
	for _, at := range gateways {
		args := []string{"--auth-url", "http://" + auth, "--no-limits", "--files-url", "http://" + files,
			"--assets-url", "http://" + strings.Join(assets, ",http://")}
		if stores.Search {
			args = append(args, "--search-url", "http://"+search)
		}
		services, s.URLs = append(services, service{"gateway", at, args}), append(s.URLs, "http://"+at)
	}
	for _, service := range services {
		all := slices.Concat([]string{"--addr", service.addr, "--secret-file", secret}, service.args, args)
		from := bin
		if service.name == "assetsvc" && service.addr != assets[0] {
			from = cmp.Or(stores.Beside, bin)
		}
		p, err := Start(ctx, service.addr, output, "env", stores.Command(filepath.Join(from, service.name), all...)...)
		if err != nil {
			return nil, errors.Join(err, s.Stop())
		}
		p.name, s.processes = service.name, append(s.processes, p)
	}
	if stores.Search {
		p, err := Search(ctx, bin, search, s.URL, filepath.Join(dir, "search"), output)
		if err != nil {
			return nil, errors.Join(err, s.Stop())
		}
		p.name, s.processes = "searchsvc", append(s.processes, p)
	}
	return s, nil
}

// service is a process that StartSplit starts.
type service struct {
	name, addr string
	args       []string
}

// freeAddrs returns n addresses at which no process listens.
func freeAddrs(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		var err error
		if addrs[i], err = porttest.FreeAddr(); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// Keep starts each process again that ends, until ctx is done. It tells the name and the cause each time.
func (s *Split) Keep(ctx context.Context, tell func(name string, cause error)) {
	var keepers sync.WaitGroup
	for i := range s.processes {
		keepers.Go(func() {
			for ctx.Err() == nil {
				p := s.processes[i]
				select {
				case <-ctx.Done():
					return
				case <-p.exited:
				}
				sleep.For(ctx, againAfter) // a signal to all processes ends ctx meanwhile
				if ctx.Err() != nil {
					return
				}
				tell(p.name, p.err)
				again, err := start(ctx, p.output, p.cmd.Path, p.cmd.Args[1:], p.ready)
				if err != nil {
					tell(p.name, err)
					continue
				}
				again.name, s.processes[i] = p.name, again
			}
		})
	}
	keepers.Wait()
}

// Stop stops the processes, beginning with the last one, and joins their errors.
func (s *Split) Stop() error {
	var errs []error
	for _, p := range slices.Backward(s.processes) {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// makeSecret writes a random secret to path, unless the file exists.
func makeSecret(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	bits := make([]byte, 32)
	rand.Read(bits) // never fails
	if err := os.WriteFile(path, []byte(hex.EncodeToString(bits)+"\n"), 0o600); err != nil {
		return fmt.Errorf("make secret: %w", err)
	}
	return nil
}

// Programs is the name of an environment variable: a directory with all programs, built with the race detector.
const Programs = "RACE_PROGRAMS"

// Build builds all programs into dir, with the race detector. A process that has a data race prints a report, and
// its Stop returns an error. If the variable Programs is set, dir gets links to the programs there.
func Build(ctx context.Context, dir string) error {
	if built := os.Getenv(Programs); built != "" {
		programs, err := filepath.Glob(filepath.Join(built, "*"))
		for _, program := range programs {
			err = errors.Join(err, os.Symlink(program, filepath.Join(dir, filepath.Base(program))))
		}
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-race", "-o", dir+string(filepath.Separator),
		"asset-registry/deploy/registry/cmd/registry", "asset-registry/deploy/registry/cmd/registryctl",
		"asset-registry/gateway/cmd/gateway",
		"asset-registry/assetsvc/cmd/assetsvc", "asset-registry/filesvc/cmd/filesvc",
		"asset-registry/searchsvc/cmd/searchsvc", "asset-registry/authsvc/cmd/authsvc")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // the race detector needs it
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, text)
	}
	return nil
}
