package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/keyring"
	"asset-registry/shared/memory"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// fakeLog is a log with a checkpoint and one full bundle. If the fields `checkpoint` and `failure` are set, its
// reads return these errors.
type fakeLog struct {
	checkpoint, failure error
	crowded             bool // the service has no memory for answers
}

func (l fakeLog) Checkpoint(context.Context) ([]byte, error) {
	return []byte("checkpoint\n"), l.checkpoint
}

func (l fakeLog) Part(_ context.Context, tile translog.Tile) ([]byte, error) {
	if l.failure != nil {
		return nil, l.failure
	}
	if tile.Path() != "tile/entries/000" {
		return nil, publiclog.ErrNoPart
	}
	return []byte("entries"), nil
}

func TestPublicLog(t *testing.T) {
	down := errors.New("down")
	for _, c := range []struct {
		name, request string
		log           fakeLog
		status        int
		cache, body   string // body is a part of the answer's body
	}{
		{"the checkpoint", "GET /log/checkpoint", fakeLog{}, 200, "no-cache", "checkpoint\n"},
		{"the checkpoint at the origin", "GET /log/1a2b3c4d/checkpoint", fakeLog{}, 200, "no-cache", "checkpoint\n"},
		{"a part", "GET /log/tile/entries/000", fakeLog{}, 200, "public, max-age=31536000, immutable", "entries"},
		{"a part at the origin", "GET /log/1a2b3c4d/tile/entries/000", fakeLog{}, 200,
			"public, max-age=31536000, immutable", "entries"},
		{"HEAD of a part", "HEAD /log/tile/entries/000", fakeLog{}, 200, "public, max-age=31536000, immutable", ""},
		{"no checkpoint yet", "GET /log/checkpoint", fakeLog{checkpoint: publiclog.ErrUnsigned}, 404, "no-store",
			"no checkpoint yet"},
		{"a part that is missing", "GET /log/tile/0/001", fakeLog{}, 404, "no-store", "does not have this part"},
		{"another path", "GET /log/tiles", fakeLog{}, 404, "no-store", "url"},
		{"a path that is not canonical", "GET /log/tile/0/1", fakeLog{}, 404, "no-store", "tile/LEVEL/NUMBER"},
		{"a path out of the log", "GET /log/tile/../checkpoint", fakeLog{}, 404, "no-store", "tile/LEVEL/NUMBER"},
		{"the log of another origin", "GET /log/00000000/checkpoint", fakeLog{}, 404, "no-store", "tile/LEVEL/NUMBER"},
		{"a failed read of a part", "GET /log/tile/entries/000", fakeLog{failure: down}, 503, "no-store", "cannot reach"},
		{"a failed read of the checkpoint", "GET /log/checkpoint", fakeLog{checkpoint: down}, 503, "no-store", "cannot reach"},
		{"without memory", "GET /log/tile/entries/000", fakeLog{crowded: true}, 503, "no-store", "too many large requests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine := httpserver.NewEngine(httpserver.Options{Log: slog.New(slog.DiscardHandler), Timeout: time.Minute})
			signer := expect.Get(identity.NewSigner(keyring.Ring{make([]byte, identity.MinSecret)}, time.Now))(t)
			m := NewMemory(1 << 30)
			for c.log.crowded && (m.Answers.Hold(memory.Small) || m.Answers.Hold(1)) {
			}
			api := New(nil, time.UTC, 1<<20, m)
			api.RouteLog(engine, signer, c.log, func(context.Context) string { return "registry.example/log/1a2b3c4d" })
			method, path, _ := strings.Cut(c.request, " ")
			r := httptest.NewRequest(method, path, http.NoBody)
			signed := expect.Get(signer.Sign(identity.Identity{}))(t)
			r.Header.Set(identity.Header, signed)
			got := httptest.NewRecorder()
			engine.ServeHTTP(got, r)
			if got.Code != c.status || !strings.Contains(got.Body.String(), c.body) || method == "HEAD" && got.Body.Len() > 0 {
				t.Errorf("got %d %s, want %d with %q", got.Code, got.Body, c.status, c.body)
			}
			want := map[string]string{"Cache-Control": c.cache, "Content-Type": "application/json"}
			if c.status == 200 {
				want["Content-Type"], want["Content-Length"] = "text/plain; charset=utf-8", "11" // of "checkpoint\n"
				if strings.Contains(path, "tile") {
					want["Content-Type"], want["Content-Length"] = "application/octet-stream", "7" // of "entries"
				}
			}
			for name, value := range want {
				if shown := got.Header().Get(name); shown != value {
					t.Errorf("got %s %q, want %q", name, shown, value)
				}
			}
		})
	}
}
