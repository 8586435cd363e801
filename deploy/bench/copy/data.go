package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"asset-registry.example/client"
	"asset-registry/shared/export"
	"asset-registry/shared/porttest"
	"asset-registry/shared/routes"
	"asset-registry/shared/sleep"
)

// measureData measures whole copies (docs/data.md, "Whole copies"). It measures how long a first snapshot takes
// without and with whole copies. During each snapshot one writer creates assets, and measureData measures how long
// the writer waits for each answer. Then it measures the size of each file of a whole copy, and the speed of its
// download from the registry and from nginx, in turns.
func (b *bench) measureData(ctx context.Context) error {
	alone, err := b.makeFirst(ctx, "a snapshot", nil, "--no-whole-copies")
	if err != nil {
		return fmt.Errorf("make a snapshot without whole copies: %w", err)
	}
	whole, err := b.makeFirst(ctx, "a snapshot and whole copies", b.measureDownloads)
	if err != nil {
		return fmt.Errorf("make whole copies: %w", err)
	}
	fmt.Printf("with whole copies a snapshot takes %.2f of the time (goal 1.3)\n", whole.Seconds()/alone.Seconds())
	return nil
}

// makeFirst starts a registry with the given arguments, and makes its first snapshot while a writer creates assets.
// Then it calls the function `measure` with the running registry.
func (b *bench) makeFirst(
	ctx context.Context, what string, measure func(context.Context, *registry) error, args ...string,
) (took time.Duration, err error) {
	if err := os.RemoveAll(filepath.Join(b.data(), "snapshots")); err != nil {
		return 0, err
	}
	r, err := b.start(ctx, b.data(), args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := r.rest(ctx); err != nil {
		return 0, err
	}
	err = r.write(ctx, "nothing", func() error { sleep.For(ctx, 10*time.Second); return ctx.Err() })
	if err != nil {
		return 0, err
	}
	err = r.write(ctx, what, func() error { took, err = r.makeSnapshot(ctx, b); return err })
	if err == nil && measure != nil {
		err = measure(ctx, r)
	}
	return took, err
}

// measureDownloads prints the size of each file of the whole copy, and the speed of its downloads.
func (b *bench) measureDownloads(ctx context.Context, r *registry) error {
	resp, err := http.Get("http://" + r.addr + routes.CopyManifest)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var newest struct{ Data export.Manifest }
	if err := json.NewDecoder(resp.Body).Decode(&newest); err != nil {
		return err
	}
	beside, stop, err := startNginx(ctx, filepath.Join(b.data(), "snapshots", "copies"))
	if err != nil {
		return err
	}
	fmt.Println("file                  rows       MB    MB/s  x nginx (goal 0.8)")
	for _, f := range newest.Data.Files {
		var rates, ratios []float64
		for range 5 {
			own, err := download(ctx, "http://"+r.addr+"/data/"+f.Name, f.Bytes)
			if err != nil {
				return errors.Join(err, stop())
			}
			other, err := download(ctx, "http://"+beside+"/"+f.SHA256+"-"+f.Name, f.Bytes)
			if err != nil {
				return errors.Join(err, stop())
			}
			rates, ratios = append(rates, own), append(ratios, own/other)
		}
		slices.Sort(rates)
		slices.Sort(ratios)
		fmt.Printf("%-16s %9d %8.1f %7.0f %8.2f\n", f.Name, f.Rows, float64(f.Bytes)/1e6, rates[2], ratios[2])
	}
	return stop()
}

// write runs the function `do` while one writer creates assets. It prints how long the writer waits for each
// answer.
func (r *registry) write(ctx context.Context, beside string, do func() error) error {
	c, err := client.New(client.Config{URL: "http://" + r.addr, Key: "broker"})
	if err != nil {
		return err
	}
	var body struct {
		Data client.Fields `json:"data"`
	}
	if err := json.Unmarshal(example, &body); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	var waits []time.Duration
	for {
		select {
		case err := <-done:
			slices.Sort(waits)
			fmt.Printf("creations beside %s: p50 %.1f ms, p99 %.1f ms, longest %.1f ms\n", beside,
				ms(waits[len(waits)/2]), ms(waits[len(waits)*99/100]), ms(waits[len(waits)-1]))
			return err
		default:
		}
		begun := time.Now()
		if _, err := c.CreateFields(ctx, body.Data, ""); err != nil {
			return err
		}
		waits = append(waits, time.Since(begun))
		sleep.For(ctx, 20*time.Millisecond)
	}
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// download returns the speed of a download in MB a second.
func download(ctx context.Context, address string, bytes int64) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || n != bytes || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: got %d with %d bytes, %v; want %d", address, resp.StatusCode, n, err, bytes)
	}
	return float64(n) / 1e6 / time.Since(begun).Seconds(), nil
}

// startNginx starts nginx with the files of a directory.
func startNginx(ctx context.Context, files string) (addr string, stop func() error, err error) {
	if addr, err = porttest.FreeAddr(); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "nginx")
	if err != nil {
		return "", nil, err
	}
	config := filepath.Join(dir, "nginx.conf")
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	if files, err = filepath.Abs(files); err != nil {
		return "", nil, err
	}
	const form = "daemon off; %s pid %s/pid; error_log %[2]s/log error; events {}\n" +
		"http { access_log off; sendfile on; client_body_temp_path %[2]s/1; proxy_temp_path %[2]s/2;\n" +
		"fastcgi_temp_path %[2]s/3;\n" +
		"uwsgi_temp_path %[2]s/4; scgi_temp_path %[2]s/5; server { listen %[3]s; root %[4]s; } }\n"
	if err := os.WriteFile(config, fmt.Appendf(nil, form, user, dir, addr, files), 0o600); err != nil {
		return "", nil, err
	}
	nginx := exec.CommandContext(ctx, "nginx", "-c", config)
	nginx.Stderr = os.Stderr
	if err := nginx.Start(); err != nil {
		return "", nil, fmt.Errorf("start nginx: %w", err)
	}
	for range 100 { // until it listens
		if resp, err := http.Get("http://" + addr); err == nil {
			_ = resp.Body.Close()
			break
		}
		sleep.For(ctx, 20*time.Millisecond)
	}
	return addr, func() error {
		err := nginx.Process.Signal(syscall.SIGTERM) // not SIGKILL: the workers of nginx would go on running
		return errors.Join(err, nginx.Wait(), os.RemoveAll(dir))
	}, nil
}
