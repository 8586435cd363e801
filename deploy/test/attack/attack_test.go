package attack

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
)

// hardLimit is what each of compose's services may use.
const hardLimit = 256 << 20

var long = flag.Bool("long", false, "attack for longer, with more clients")

// scale returns what an attack takes in short or in long.
func scale[T any](short, whole T) T {
	if *long {
		return whole
	}
	return short
}

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

// member is a process under a hard limit.
type member struct {
	name string
	*processes.Process
	output *processes.Output
}

func start(t *testing.T, name, addr, binary string, args ...string) member {
	t.Helper()
	c := Confine(hardLimit)
	t.Logf("%s is confined to %d MiB; the system enforces it: %t", name, hardLimit>>20, c.IsHard())
	output := &processes.Output{}
	command, args := c.Command(binary, args...)
	p, err := processes.Start(t.Context(), addr, output, command, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("%s did not end well: %v; it printed: %s", name, err, tail(output.String()))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return member{name, p, output}
}

func tail(text string) string { return text[max(0, len(text)-3000):] }

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := processes.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestStandaloneLives(t *testing.T) {
	bin, addr := build(t), freeAddr(t)
	one := start(t, "registry", addr, filepath.Join(bin, "registry"), "serve", "--sandbox", "--no-limits",
		"--log-level", "error", "--addr", addr, "--data", t.TempDir())
	attackAll(t, At(addr), one)
}

func TestServicesLive(t *testing.T) {
	bin, dir := build(t), t.TempDir()
	gateway, assets, auth := freeAddr(t), freeAddr(t), freeAddr(t)
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("secret", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
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

// attackAll does everything to a registry, and looks that its processes live,
// keep to their limit, and serve others meanwhile.
func attackAll(t *testing.T, r *Registry, members ...member) {
	if err := r.Fill(t.Context(), scale(8, 100), scale(8, 60)); err != nil {
		t.Fatal(err)
	}
	slow := scale(200, 1000)
	for _, attack := range []struct {
		name   string
		during time.Duration
		do     func(ctx context.Context) *Outcome
	}{
		{"pages of large titles", 2 * time.Second, func(ctx context.Context) *Outcome {
			return r.Read(ctx, 10, "", "/api/2.5/assets?opt_fields=title&limit=100")
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
	} {
		t.Run(attack.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), attack.during*scale[time.Duration](1, 4))
			defer cancel()
			var peaks []func() int64
			for _, m := range members {
				peaks = append(peaks, Peak(m.ID()))
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
				t.Logf("%s had %d MiB at most", m.name, peak>>20)
				if peak > hardLimit {
					t.Errorf("%s had %d bytes, want at most %d", m.name, peak, hardLimit)
				}
			}
			if outcome.Wrong() > 0 {
				t.Errorf("%d requests were neither answered nor refused with Retry-After", outcome.Wrong())
			}
			if attack.during > 10*time.Second && outcome.Cut() == 0 {
				t.Error("no slow reader was cut off, want those that took nothing for 10 s")
			}
			if share := w.Share(time.Second); share < 0.99 {
				t.Errorf("%.1f %% of the small readings were answered within a second, want 99 %%", share*100)
			}
		})
	}
}
