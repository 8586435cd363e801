package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"asset-registry.example/client"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/sleep"
)

//go:embed asset.json
var example []byte // {"data": asset}

// registry is a registry in one process.
type registry struct {
	process       *processes.Process
	output        processes.Output
	data          string
	addr, metrics string
}

func freeAddresses() (addr, metrics string, err error) {
	if addr, err = porttest.FreeAddr(); err != nil {
		return "", "", err
	}
	metrics, err = porttest.FreeAddr()
	return addr, metrics, err
}

func (r *registry) stop() error {
	if err := r.process.Stop(); err != nil {
		return fmt.Errorf("%w; the registry's output: %s", err, r.output.String())
	}
	return nil
}

// createExample creates and publishes an asset, and returns the asset as the API shows it.
func (r *registry) createExample(ctx context.Context) ([]byte, error) {
	c, err := client.New(client.Config{URL: "http://" + r.addr, Key: "broker"})
	if err != nil {
		return nil, err
	}
	var body struct {
		Data client.Fields `json:"data"`
	}
	if err := json.Unmarshal(example, &body); err != nil {
		return nil, fmt.Errorf("read the example: %w", err)
	}
	created, err := c.CreateFields(ctx, body.Data, "")
	if err != nil {
		return nil, err
	}
	id := created.Asset.ID
	_, err = c.Patch(ctx, id, client.Fields{"status": client.Pending}, client.Write{Token: created.Access.Token})
	if err != nil {
		return nil, err
	}
	asset, err := c.GetJSON(ctx, id)
	return fmt.Appendf(nil, `{"data":%s}`, asset), err
}

// rest waits until the registry is idle. After a start, the registry is busy for some time: it adds to the public
// log the assets that were written directly to the store.
func (r *registry) rest(ctx context.Context) error {
	const idle = 30 * time.Millisecond // CPU time per second of an idle registry
	for {
		before, err := usageOf(r.process.ID())
		if err != nil {
			return err
		}
		if !sleep.For(ctx, time.Second) {
			return ctx.Err()
		}
		after, err := usageOf(r.process.ID())
		if err != nil || after.cpu-before.cpu < idle {
			return err
		}
	}
}

// makeSnapshot makes a snapshot and prints its cost. It returns how long that took.
func (r *registry) makeSnapshot(ctx context.Context, b *bench) (took time.Duration, err error) {
	before, err := usageOf(r.process.ID())
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	ended := make(chan error, 1)
	go func() {
		made, err := exec.CommandContext(ctx, filepath.Join(b.bin, "registry"), "snapshot", "--data", r.data).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, made)
		}
		ended <- err
	}()
	most := before
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-tick.C:
			now, err := usageOf(r.process.ID())
			if err != nil {
				return 0, err
			}
			most.memory = max(most.memory, now.memory)
		case err := <-ended:
			tick.Stop()
			took = time.Since(begun)
			after, usageErr := usageOf(r.process.ID())
			if err := errors.Join(err, usageErr); err != nil {
				return 0, err
			}
			const says = "the snapshot took %.1f s and %.1f s of processor time; " +
				"memory %.0f MiB before, at most %.0f MiB during\n"
			fmt.Printf(says, took.Seconds(), (after.cpu - before.cpu).Seconds(), mib(before.memory), mib(most.memory))
			return took, nil
		}
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// usage has the resources that a process uses.
type usage struct {
	cpu    time.Duration // since the process started
	memory int64         // bytes; cached pages of files are not counted, because the kernel can drop them
}

// usageOf reads the usage of a process from /proc (proc(5)).
func usageOf(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(ticks) * time.Second / 100
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	line, _, _ := strings.Cut(rest, "\n")
	kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	u.memory = kib << 10
	return u, err
}

// requests returns the number of requests that the gateway has answered, according to its metrics.
func (r *registry) requests(ctx context.Context) (n int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.metrics+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(series, "http_server_request_duration_seconds_count{") &&
			strings.Contains(series, `registry_service="gateway"`) {
			count, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return 0, err
			}
			n += count
		}
	}
	return n, lines.Err()
}
