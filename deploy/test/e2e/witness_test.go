package e2e

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"asset-registry/deploy/registry/witness"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/logclient"
	"asset-registry/shared/logkey"
	"asset-registry/shared/translog"
)

// TestWitnesses starts a registry whose policy requires both of two witnesses. While one of them is unreachable,
// the registry must publish no checkpoint. When this witness is back, the registry must go on.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, err := logkey.ReadOrCreate(filepath.Join(dir, "log.key"), "registry.example")
	if err != nil {
		t.Fatal(err)
	}
	first, second := newTestWitness(t, keys[0].Public(), 1), newTestWitness(t, keys[0].Public(), 2)
	file := filepath.Join(dir, "policy")
	text := fmt.Sprintf("log %s\nwitness w1 %s %s\nwitness w2 %s %s\ngroup both all w1 w2\nquorum both\n",
		keys[0].Public(), first.key.Public(), first.server.URL, second.key.Public(), second.server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := logclient.ReadPolicy(file)
	if err != nil {
		t.Fatal(err)
	}
	addr, output := freeAddr(t), &processes.Output{}
	standalone(t, addr, filepath.Join(dir, "data"), output,
		"--log-key-file", filepath.Join(dir, "log.key"), "--log-policy", file)
	a := api{"http://" + addr, "2.5"}
	a.publish(t, validAsset())
	signed := a.cosigned(t, policy, 1)
	equal(t, "witnesses of the first checkpoint", len(signed.Cosigners), 2)

	second.away.Store(true)
	a.publish(t, validAsset())
	if err := output.Await(t.Context(), "witnesses do not cosign the public log"); err != nil {
		t.Fatal(err)
	}
	equal(t, "size of the log without a witness", a.checkpoint(t).Size, int64(1))

	second.away.Store(false)
	a.cosigned(t, policy, 2)
}

// testWitness is a witness that can be made unreachable.
type testWitness struct {
	key    translog.Key
	server *httptest.Server
	away   atomic.Bool
}

// newTestWitness starts a witness for a log. The seed of its key is one byte, repeated.
func newTestWitness(t *testing.T, log translog.PublicKey, seed byte) *testWitness {
	t.Helper()
	key, err := translog.NewKey(translog.ForWitness, fmt.Sprint("witness.example/w", seed), bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	cosigns, err := witness.New(witness.Config{
		Key: key, Logs: []translog.PublicKey{log}, State: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &testWitness{key: key}
	w.server = httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if w.away.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		cosigns.Handler().ServeHTTP(answer, r)
	}))
	t.Cleanup(func() {
		w.server.Close()
		if err := cosigns.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// cosigned waits for a checkpoint of the given size, which the policy must accept.
func (a api) cosigned(t *testing.T, policy *translog.Policy, size int64) translog.Signed {
	t.Helper()
	for deadline := time.Now().Add(checkpointWithin); ; time.Sleep(100 * time.Millisecond) {
		if body, _ := a.logFile(t, "checkpoint"); body != nil {
			signed, err := policy.Open(body)
			if err != nil {
				t.Fatalf("got a checkpoint that the policy refuses: %v\n%s", err, body)
			}
			if signed.Size == size {
				return signed
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("got no checkpoint of %d leaves within %s", size, checkpointWithin)
		}
	}
}
