package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/shared/randtest"
	"asset-registry/shared/testing/expect"
)

const (
	segmentShare = 16 // segments that one address may read at once (docs/contract.md, "Snapshot")
	copyShare    = 4  // whole copies that one address may read at once (docs/contract.md, "Whole copies")
)

// TestStandaloneWithstandsReadersOfSegments starts clients that ask for segments of the snapshot, whole and in
// parts, and for whole copies. They read nothing from the answers. The registry must keep its bounds, and must
// still answer other clients.
// Promises: whole-bounds
func TestStandaloneWithstandsReadersOfSegments(t *testing.T) {
	bin, addr, data := build(t), freeAddr(t), t.TempDir()
	one := start(t, "registry", addr, filepath.Join(bin, "registry"), "serve", "--sandbox", "--no-limits",
		"--log-level", "error", "--snapshot-interval", "0", "--addr", addr, "--data", data)
	r := At(addr)
	expect.OK(t, r.fillSegments(t.Context(), scale(16, 64)))
	snapshot := exec.CommandContext(t.Context(), filepath.Join(bin, "registry"), "snapshot", "--data", data)
	text, err := snapshot.CombinedOutput()
	if err != nil {
		t.Fatalf("make a snapshot: %v: %s", err, text)
	}
	paths := expect.Get(r.segments(t.Context()))(t)
	clients, each := scale(8, 28), 3*segmentShare
	copies := []string{"/data/assets.csv", "/data/assets.jsonl.gz"}
	for _, path := range copies {
		if text, err := r.write(t.Context(), http.MethodGet, path, "", ""); err != nil || len(text) < buffered {
			t.Fatalf("%s: got %d bytes, %v; want more than %d", path, len(text), err, buffered)
		}
	}
	withstand(t, r, attack{"unread segments", 20 * time.Second, func(ctx context.Context) *Outcome {
		o := r.hold(ctx, clients, each, func(_, n int) (path, header string) {
			return paths[n%len(paths)], fmt.Sprintf("Range: bytes=%d-", n/len(paths))
		})
		if got, most := o.Answered(), int64(clients*segmentShare); got == 0 || got > most {
			t.Errorf("got %d answers to %d clients at once, want some and at most %d", got, clients, most)
		}
		return o
	}}, []member{one})
	withstand(t, r, attack{"unread whole copies", 20 * time.Second, func(ctx context.Context) *Outcome {
		o := r.hold(ctx, clients, 3*copyShare, func(_, n int) (path, header string) {
			return copies[n%len(copies)], "Accept: */*"
		})
		if got, most := o.Answered(), int64(clients*copyShare); got == 0 || got > most {
			t.Errorf("got %d answers to %d clients at once, want some and at most %d", got, clients, most)
		}
		return o
	}}, []member{one})
}

// buffered is the maximum number of bytes of an answer that the kernel buffers.
const buffered = 512 << 10

// fillSegments publishes one small asset, and assets of nearly 1 MB that zstd cannot make
// small.
func (r *Registry) fillSegments(ctx context.Context, assets int) error {
	small, err := r.publish(ctx, "small")
	if err != nil {
		return err
	}
	r.small = small.id
	noise := make([]rune, 900_000/4)
	for range assets {
		for i := range noise {
			noise[i] = rune(0x20000 + randtest.IntN(0xa6df)) // an ideograph that has four bytes
		}
		if _, err := r.publish(ctx, string(noise)); err != nil {
			return err
		}
	}
	return nil
}

// segments returns the paths of the segments that are too large for the kernel's buffers.
func (r *Registry) segments(ctx context.Context) (paths []string, err error) {
	text, err := r.write(ctx, http.MethodGet, "/api/2.5/snapshot", "", "")
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Data struct {
			Segments []struct {
				Path  string
				Bytes int64
			}
		}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, err
	}
	for _, s := range manifest.Data.Segments {
		if s.Bytes > buffered {
			paths = append(paths, s.Path)
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("got no segment of more than %d bytes: %.500s", buffered, text)
	}
	return paths, nil
}
