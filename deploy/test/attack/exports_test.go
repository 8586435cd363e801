package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestStandaloneWithstandsReadersOfExports runs clients that ask for exports of large assets, and never read the
// answers. The rate limits are off, so only the bounds of exports protect the registry (docs/data.md, "Bounds"). Other
// clients must still get answers.
// Promises: export-turns, export-bounds
func TestStandaloneWithstandsReadersOfExports(t *testing.T) {
	const atOnce = 4 // how many exports one gateway makes at the same time
	bin, addr, data := build(t), freeAddr(t), t.TempDir()
	one := start(t, "registry", addr, filepath.Join(bin, "registry"), "serve", "--sandbox", "--no-limits", "--search",
		"--log-level", "error", "--snapshot-interval", "0", "--addr", addr, "--data", data)
	r := At(addr)
	assets := scale(16, 64)
	expect.OK(t, r.fillSegments(t.Context(), assets))
	expect.OK(t, r.awaitFound(t.Context(), assets+1))
	forms := []string{"csv", "xlsx"} // not GeoJSON, because no asset has coordinates
	withstand(t, r, attack{"unread exports", 20 * time.Second, func(ctx context.Context) *Outcome {
		o := r.hold(ctx, scale(8, 28), 16, func(client, _ int) (path, header string) {
			return "/api/2.5/search." + forms[client%len(forms)], ""
		})
		if got := o.Answered(); got == 0 || got > atOnce {
			t.Errorf("got %d answers at once, want some and at most %d", got, atOnce)
		}
		return o
	}}, []member{one})
}

// awaitFound waits until a search finds the given number of assets.
func (r *Registry) awaitFound(ctx context.Context, assets int) error {
	var found struct{ Total int }
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		text, err := r.write(ctx, http.MethodGet, "/api/2.5/search?limit=0", "", "")
		if err == nil && json.Unmarshal(text, &found) == nil && found.Total == assets {
			return nil
		}
	}
	return fmt.Errorf("a search finds %d assets, want %d", found.Total, assets)
}
