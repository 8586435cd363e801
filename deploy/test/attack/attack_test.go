package attack

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// hardLimit is the memory limit of a service in docker-compose.yml, in bytes.
const hardLimit = 256 << 20

var long = flag.Bool("long", false, "longer attacks with more clients")

// scale returns the first argument, or the second one if the flag -long is set.
func scale[T any](short, whole T) T {
	if *long {
		return whole
	}
	return short
}

// build builds the programs without the race detector, because the detector needs too much memory.
func build(t *testing.T) (dir string) {
	dir = t.TempDir()
	text, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator),
		"asset-registry/deploy/registry/cmd/registry", "asset-registry/gateway/cmd/gateway",
		"asset-registry/assetsvc/cmd/assetsvc", "asset-registry/authsvc/cmd/authsvc").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v: %s", err, text)
	}
	return dir
}

// member is a process with a memory limit.
type member struct {
	name string
	*processes.Process
	output  *processes.Output
	metrics string // address of the process's metrics
}

// start starts a process with the memory limit, and stops it when the test ends.
func start(t *testing.T, name, addr, binary string, args ...string) member {
	t.Helper()
	c := Confine(hardLimit)
	t.Logf("%s has a limit of %d MiB; the kernel enforces it: %t", name, hardLimit>>20, c.IsHard())
	output, metrics := &processes.Output{}, freeAddr(t)
	command, args := c.Command(binary, append(args, "--metrics-addr", metrics)...)
	begin := processes.Start
	if slices.Contains(args, "--tls-cert") { // it is asked for /readyz without TLS otherwise
		begin = processes.StartAny
	}
	p := expect.Get(begin(t.Context(), addr, output, command, args...))(t)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("%s: got %v at its end, want exit code 0; its output: %s", name, err, tail(output.String()))
		}
		expect.Try(t, c.Close())
	})
	return member{name, p, output, metrics}
}

// tail returns the end of a text.
func tail(text string) string { return text[max(0, len(text)-3000):] }

func freeAddr(t *testing.T) string {
	t.Helper()
	return expect.Get(porttest.FreeAddr())(t)
}

func TestStandaloneWithstandsAttacks(t *testing.T) {
	bin, addr := build(t), freeAddr(t)
	one := start(t, "registry", addr, filepath.Join(bin, "registry"), "serve", "--sandbox", "--no-limits",
		"--log-level", "error", "--addr", addr, "--data", t.TempDir())
	attackAll(t, At(addr), one)
}

func TestSplitWithstandsAttacks(t *testing.T) {
	bin, dir := build(t), t.TempDir()
	gateway, assets, auth := freeAddr(t), freeAddr(t), freeAddr(t)
	secret := filepath.Join(dir, "secret")
	expect.OK(t, os.WriteFile(secret, []byte(strings.Repeat("secret", 8)), 0o600))
	run := func(name, addr string, args ...string) member {
		return start(t, name, addr, filepath.Join(bin, name),
			append([]string{"--addr", addr, "--secret-file", secret, "--log-level", "error"}, args...)...)
	}
	run("authsvc", auth, "--sandbox", "--store", "file:"+filepath.Join(dir, "tokens.db"))
	assetsvc := run("assetsvc", assets, "--sandbox", "--store", "file:"+filepath.Join(dir, "assets.db"), "--auth-url",
		"http://"+auth)
	edge := run("gateway", gateway, "--no-limits", "--auth-url", "http://"+auth, "--assets-url", "http://"+assets)
	attackAll(t, At(gateway), assetsvc, edge)
}

// attack is one kind of load by hostile clients.
type attack struct {
	name   string
	during time.Duration
	do     func(ctx context.Context) *Outcome
}

// attacks returns all attacks on a registry that Fill has filled.
func attacks(r *Registry) []attack {
	slow := scale(200, 1000)
	return []attack{
		{"pages of large descriptions", 2 * time.Second, func(ctx context.Context) *Outcome {
			return r.Read(ctx, 10, "", "/api/2.5/assets?opt_fields=description&limit=100")
		}},
		{"pages of whole assets, compressed", 3 * time.Second, func(ctx context.Context) *Outcome {
			return r.Read(ctx, 15, "gzip", "/api/2.5/assets?opt_fields=*&limit=1000&descending=1")
		}},
		{"pages of the old version, indented", 2 * time.Second, func(ctx context.Context) *Outcome {
			return r.Read(ctx, 10, "", "/api/2.4/assets?opt_fields=*&limit=1000&descending=1&opt_pretty=1")
		}},
		{"one large asset", 2 * time.Second, func(ctx context.Context) *Outcome {
			return r.Read(ctx, 50, "", r.LargePath("2.5", 0))
		}},
		{"slow readers of one large asset", 20 * time.Second, func(ctx context.Context) *Outcome {
			return r.ReadSlowly(ctx, slow, "", r.LargePath("2.5", 0))
		}},
		{"slow readers of all large assets, compressed", 5 * time.Second, func(ctx context.Context) *Outcome {
			var all Outcome
			crowd(slow, func(i int) {
				_ = r.readSlowly(ctx, &all, "Accept-Encoding: gzip\r\n",
					r.LargePath("2.5", i)+fmt.Sprintf("?opt_jsonp=f%d", i))
			})
			return &all
		}},
		{"slow readers of pages", 5 * time.Second, func(ctx context.Context) *Outcome {
			return r.ReadSlowly(ctx, 40, "", "/api/2.5/assets?opt_fields=*&limit=100")
		}},
		{"changes of large assets", 3 * time.Second, func(ctx context.Context) *Outcome {
			return r.Write(ctx, 10)
		}},
	}
}

// attackAll runs all attacks. The processes must not crash, and must stay below their memory limit. Meanwhile, a
// witness must get its answers.
func attackAll(t *testing.T, r *Registry, members ...member) {
	expect.OK(t, r.Fill(t.Context(), scale(8, 100), scale(8, 60)))
	end := expect.Get(r.newest(t.Context()))(t)
	for _, attack := range slices.Concat(attacks(r), streamAttacks(r, end)) {
		t.Run(attack.name, func(t *testing.T) { withstand(t, r, attack, members) })
	}
}

// withstand runs one attack. The members must keep within their memory, and other clients must still get answers.
func withstand(t *testing.T, r *Registry, attack attack, members []member) {
	ctx, cancel := context.WithTimeout(t.Context(), attack.during*scale[time.Duration](1, 4))
	defer cancel()
	var peaks []func() int64
	var before []usage
	for _, m := range members {
		peaks = append(peaks, Peak(m.ID()))
		before = append(before, m.usage(t))
	}
	watched := make(chan *Witness)
	go func() { watched <- r.Watch(ctx, 50) }()
	outcome := attack.do(ctx)
	cancel()
	w := <-watched
	t.Logf("%v", outcome)
	t.Logf("%v", w)
	for i, m := range members {
		peak := peaks[i]()
		t.Logf("%s used at most %d MiB", m.name, peak>>20)
		if peak > hardLimit {
			t.Errorf("%s: got %d bytes of memory, want at most %d", m.name, peak, hardLimit)
		}
		m.expectFreed(t, before[i])
	}
	if wrong := outcome.Wrong(); wrong > 0 {
		t.Errorf("got %d requests without an answer or a 503 with Retry-After, want none", wrong)
	}
	if attack.during > 10*time.Second && outcome.Cut() == 0 {
		t.Error("got no closed connection, want each closed whose reader took nothing for 10 s")
	}
	if share := w.Share(time.Second); share < 0.99 {
		t.Errorf("got %.1f %% of the small reads answered within a second, want 99 %%", share*100)
	}
}
