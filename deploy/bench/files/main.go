// Command files measures transfers of files and compares them with nginx and with the bare disk, in turns, on
// one machine (docs/files.md, "Cost"):
//
//   - reading files from the registry in one process, compared with nginx that serves the same files;
//   - reading files through a gateway and a file service, compared with an nginx in front of another nginx;
//   - uploads of 10 MiB, compared with writing the same number of bytes to the same disk with fsync;
//   - the memory of one process with 1,000 slow readers, and how long it takes at the same time
//     to read a page of assets.
//
// The command prints the ratios; it does not judge them. It takes about two minutes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"asset-registry/deploy/bench/load"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "benchfiles:", err)
		os.Exit(1)
	}
}

// bench has the programs that are measured, and the settings of the measurements.
type bench struct {
	bin, dir string
	rounds   int
	during   time.Duration
	stops    []func() error
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("benchfiles", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory of the registry's programs")
	during := flags.Duration("during", 2*time.Second, "length of one measurement")
	rounds := flags.Int("rounds", 5, "number of measurements of each contender")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "benchfiles")
	if err != nil {
		return err
	}
	b := &bench{bin: *bin, dir: dir, rounds: *rounds, during: *during}
	defer func() {
		for _, stop := range slices.Backward(b.stops) {
			err = errors.Join(err, stop())
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	fmt.Printf("%d CPUs for servers and load, %s; medians of %d rounds of %v each\n",
		runtime.NumCPU(), runtime.Version(), b.rounds, b.during)
	static, passing, err := b.startNginx(ctx)
	if err != nil {
		return err
	}
	one, process, err := b.startOne(ctx)
	if err != nil {
		return err
	}
	if err := b.compareReadings(ctx, "one process, beside nginx with the same file (goal 0.8)", one, static); err != nil {
		return err
	}
	split, err := b.startSplit(ctx)
	if err != nil {
		return err
	}
	err = b.compareReadings(ctx, "split, beside nginx that passes on to nginx (goal 0.6)", split, passing)
	if err != nil {
		return err
	}
	if err := b.compareUploads(ctx, one); err != nil {
		return err
	}
	return b.slowReaders(ctx, one, process)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// startNginx starts an nginx with two addresses. At the first address, it serves the files of a
// directory. At the second address, it forwards requests to the first one.
func (b *bench) startNginx(ctx context.Context) (static, passing string, err error) {
	if static, err = porttest.FreeAddr(); err != nil {
		return "", "", err
	}
	if passing, err = porttest.FreeAddr(); err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(b.path("nginx"), 0o755); err != nil {
		return "", "", err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	file := b.path("nginx.conf")
	err = os.WriteFile(file, fmt.Appendf(nil, `
daemon off; %[4]s
pid %[1]s/pid;
worker_processes auto;
error_log %[1]s/log error;
events { worker_connections 4096; }
http {
	access_log off; sendfile on; keepalive_requests 1000000000;
	client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2;
	fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
	upstream files { server %[2]s; keepalive 256; }
	server { listen %[2]s; root %[1]s; }
	server {
		listen %[3]s;
		location / { proxy_pass http://files; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}`, b.path("nginx"), static, passing, user), 0o600)
	if err != nil {
		return "", "", err
	}
	cmd := exec.CommandContext(ctx, "nginx", "-c", file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", "", fmt.Errorf("start nginx: %w", err)
	}
	b.stops = append(b.stops, func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // SIGKILL would leave the workers of nginx running
			return err
		}
		return cmd.Wait()
	})
	return static, passing, nil
}

// startOne starts the registry as one process.
func (b *bench) startOne(ctx context.Context) (addr string, p *processes.Process, err error) {
	if addr, err = porttest.FreeAddr(); err != nil {
		return "", nil, err
	}
	p, err = processes.Standalone(ctx, b.bin, addr, b.path("one"), &processes.Output{}, "--log-level", "error")
	if err == nil {
		b.stops = append(b.stops, p.Stop)
	}
	return addr, p, err
}

// startSplit starts the registry with one process for each service, but without the search service.
func (b *bench) startSplit(ctx context.Context) (addr string, err error) {
	if addr, err = porttest.FreeAddr(); err != nil {
		return "", err
	}
	s, err := processes.StartSplit(ctx, b.bin, addr, b.path("split"), processes.Stores{}, &processes.Output{},
		"--log-level", "error")
	if err == nil {
		b.stops = append(b.stops, s.Stop)
	}
	return addr, err
}

// upload uploads a file with these bytes, and returns the path at which everybody can read it.
func upload(ctx context.Context, addr string, text []byte) (path string, err error) {
	const begin = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\r\n"
	body := io.MultiReader(strings.NewReader(begin), bytes.NewReader(text), strings.NewReader("\r\n--b--\r\n"))
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/upload", body)
	if err != nil {
		return "", err
	}
	q.SetBasicAuth("broker", "")
	q.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var got struct {
		GetURL string `json:"get_url"`
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("upload: got %d, want 200", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	_, path, _ = strings.Cut(got.GetURL, addr)
	return path, nil
}

func get(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: registry.example\r\n\r\n", path)
}

// compareReadings measures two servers in turns with files of several sizes. For each size, it prints how many
// files per second the registry sends, and the ratio to the other server.
func (b *bench) compareReadings(ctx context.Context, what, ours, other string) error {
	const clients = 16
	fmt.Printf("\nReadings, %s, %d connections\n", what, clients)
	for _, size := range []int{10 << 10, 200 << 10, 10 << 20} {
		text := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		name := fmt.Sprint(size)
		if err := os.WriteFile(filepath.Join(b.path("nginx"), name), text, 0o644); err != nil {
			return err
		}
		path, err := upload(ctx, ours, text)
		if err != nil {
			return err
		}
		var rates, ratios []float64
		for range b.rounds {
			own, err := load.Load{Addr: ours, Request: get(path), Status: 200, Clients: clients}.Run(ctx, b.during)
			if err != nil {
				return err
			}
			beside, err := load.Load{Addr: other, Request: get("/" + name), Status: 200, Clients: clients}.Run(ctx, b.during)
			if err != nil {
				return err
			}
			rates, ratios = append(rates, own.PerSecond), append(ratios, own.PerSecond/beside.PerSecond)
		}
		rate := median(rates)
		fmt.Printf("%8d KiB: %8.0f a second, %7.1f MB/s, %.2f x nginx\n",
			size>>10, rate, rate*float64(size)/1e6, median(ratios))
	}
	return nil
}

// compareUploads uploads files of 10 MiB, one after another, and prints how fast the registry stores them. It
// compares this with the speed at which the disk alone stores the same bytes.
func (b *bench) compareUploads(ctx context.Context, addr string) error {
	text := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	var rates, ratios []float64
	for range 4 * b.rounds {
		start := time.Now()
		if _, err := upload(ctx, addr, text); err != nil {
			return err
		}
		took := time.Since(start)
		start = time.Now()
		if err := write(b.path("plain"), text); err != nil {
			return err
		}
		rates = append(rates, float64(len(text))/1e6/took.Seconds())
		ratios = append(ratios, time.Since(start).Seconds()/took.Seconds())
	}
	fmt.Printf("\nUploads of 10 MiB: %.0f MB/s, %.2f x the disk with fsync (goal 0.7)\n", median(rates), median(ratios))
	return nil
}

// write writes a file and syncs it.
func write(name string, text []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(name))
}

// slowReaders prints how much memory 1,000 slow readers of a file need, and how long it takes at the same time to
// read a page of assets.
func (b *bench) slowReaders(ctx context.Context, addr string, p *processes.Process) error {
	const readers = 1000
	path, err := upload(ctx, addr, bytes.Repeat([]byte{0}, 10<<20))
	if err != nil {
		return err
	}
	asset := load.Load{Addr: addr, Request: get("/api/2.5/assets?limit=1"), Status: 200, Clients: 4}
	alone, err := asset.Run(ctx, b.during)
	if err != nil {
		return err
	}
	before, err := memory(p.ID())
	if err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	for range readers {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Write(get(path)); err != nil {
			return err
		}
		go readSlowly(reading, conn)
	}
	beside, err := asset.Run(ctx, 2*b.during)
	if err != nil {
		return err
	}
	after, err := memory(p.ID())
	if err != nil {
		return err
	}
	fmt.Printf("\n%d slow readers: %d MiB more memory (goal 64)\n", readers, (after-before)>>20)
	fmt.Printf("A page of assets, 99th percentile: %v beside them, %v alone\n",
		beside.P99.Round(10*time.Microsecond), alone.P99.Round(10*time.Microsecond))
	return nil
}

// readSlowly reads 16 KiB per second.
func readSlowly(ctx context.Context, conn net.Conn) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	part := make([]byte, 16<<10)
	for {
		if _, err := conn.Read(part); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// memory returns the anonymous memory of a process, in bytes.
func memory(pid int) (bytes int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "RssAnon:")
	_, err = fmt.Sscan(after, &bytes)
	return bytes << 10, err
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
