package attack

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/sleep"
	"asset-registry/shared/testing/expect"
)

const (
	// How many uploads a broker may have in progress at the same time (docs/contract.md, "Files").
	uploadShare = 16
	maxFile     = 8 << 20 // the largest file that the registry under attack accepts
)

// TestStandaloneWithstandsUploads runs clients that send endless files, slowly or fast, or forms with too many
// parts, and clients that read files slowly. The registry must survive all of them (docs/files.md, D7).
func TestStandaloneWithstandsUploads(t *testing.T) {
	bin, addr, data := build(t), freeAddr(t), t.TempDir()
	one := start(t, "registry", addr, filepath.Join(bin, "registry"), "serve", "--sandbox", "--no-limits",
		"--log-level", "error", "--max-file", "8388608", "--addr", addr, "--data", data)
	r := At(addr)
	expect.OK(t, r.Fill(t.Context(), 0, 0))
	path := expect.Get(r.keep(t.Context(), maxFile))(t)
	clients := scale(200, 1000)
	const field = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nx\r\n"
	for _, a := range []attack{
		{"slow uploads and slow readers of a file", 16 * time.Second, func(ctx context.Context) *Outcome {
			read := make(chan *Outcome)
			go func() { read <- r.ReadSlowly(ctx, clients, "", path) }()
			o := r.UploadSlowly(ctx, clients)
			if got, want := o.refused.Load(), int64(clients-uploadShare); got < want {
				t.Errorf("got %d uploads at once refused, want %d at least", got, want)
			}
			if got := o.Cut(); got == 0 || got > uploadShare {
				t.Errorf("got %d slow uploads ended, want those that were under way, at most %d", got, uploadShare)
			}
			if got := <-read; got.Wrong() > 0 {
				t.Errorf("slow readers of a file: got %v, want none wrong", got)
			}
			return o
		}},
		{"endless files", 3 * time.Second, func(ctx context.Context) *Outcome {
			return r.Upload(ctx, uploadShare/4, func() io.Reader {
				return io.MultiReader(strings.NewReader(fileHead), zeros{})
			}, 413)
		}},
		{"endless fields and parts", 3 * time.Second, func(ctx context.Context) *Outcome {
			return r.Upload(ctx, uploadShare/4, func() io.Reader {
				return io.MultiReader(strings.NewReader(strings.Repeat(field, 10_000)+field[:len(field)-2]), zeros{})
			}, 400, 413)
		}},
		{"a field without an end", 2 * time.Second, func(ctx context.Context) *Outcome {
			return r.Upload(ctx, uploadShare/4, func() io.Reader {
				return io.MultiReader(strings.NewReader(field[:len(field)-2]), zeros{})
			}, 413)
		}},
		{"a header without an end", 2 * time.Second, func(ctx context.Context) *Outcome {
			return r.Upload(ctx, uploadShare, func() io.Reader {
				return io.MultiReader(strings.NewReader("--b\r\nX: "), zeros{})
			}, 413)
		}},
	} {
		t.Run(a.name, func(t *testing.T) { withstand(t, r, a, []member{one}) })
	}
	r.leavesNothing(t, filepath.Join(data, "files", "new"))
	if _, err := r.keep(t.Context(), 1); err != nil {
		t.Errorf("got %v after the attacks, want an upload taken", err)
	}
}

// leavesNothing waits until no unfinished uploads are left in a directory.
func (r *Registry) leavesNothing(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		left, err := os.ReadDir(dir)
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(end) || !sleep.For(t.Context(), 50*time.Millisecond) {
			t.Fatalf("got the unfinished uploads %v, %v after the attacks, want none", left, err)
		}
	}
}

// zeros is a reader of zeros that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
