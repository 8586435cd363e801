package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
)

// TestABrokerCannotFillTheDisk has a broker write with two keys for as long as
// it may, and again when it has waited as long as it was told.
func TestABrokerCannotFillTheDisk(t *testing.T) {
	build(t)
	const most, least, window = 2_000_000, 4096, 10 * time.Second
	dir, addr := t.TempDir(), freeAddr(t)
	limits := fmt.Sprintf("limits:\n  - {name: tenant-bytes, by: tenant, costs: {write: %d, bytes: 1}, windows: {10s: %d}}\n", least, most)
	var keys strings.Builder
	for _, c := range []struct {
		key    string
		broker string
	}{{"first", "filler"}, {"second", "filler"}, {"third", "neighbour"}} {
		fmt.Fprintf(&keys, "- {id: %s, broker: %s, role: broker, levels: \"3\", sha256: %x}\n", c.key, c.broker,
			sha256.Sum256([]byte(c.key)))
	}
	for _, try := range []struct {
		name, text string
	}{{"config.yaml", limits}, {"keys.yaml", keys.String()}} {
		if err := os.WriteFile(filepath.Join(dir, try.name), []byte(try.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var output processes.Output
	p, err := processes.Start(t.Context(), addr, &output, filepath.Join(bin, "registry"), "serve", "--addr", addr,
		"--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "config.yaml"), "--keys-file",
		filepath.Join(dir, "keys.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	a := api{base: "http://" + addr, version: "2.5"}
	large := validAsset()
	large["description"] = strings.Repeat("x", 200_000)
	create := func(key string) answer {
		return a.do(t, call{method: "POST", path: "/assets", key: key, body: data(large)})
	}
	written, began, got := 0, time.Now(), answer{}
	for i := 0; ; i++ {
		if got = create([]string{"first", "second"}[i%2]); got.status == 429 {
			break
		}
		written += least + len(text(got.must(t, 201).data()["description"]))
		if windows := 1 + int(time.Since(began)/window); written > windows*most {
			t.Fatalf("%d bytes were taken in %v, want %d at most", written, time.Since(began), windows*most)
		}
	}
	if policy, want := got.header.Get("RateLimit-Policy"),
		`"tenant-bytes-10s";q=2000000;qu="content-bytes";w=10`; policy != want {
		t.Errorf("RateLimit-Policy: got %s, want %s", policy, want)
	}
	wait, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || wait < 1 || wait > 11 {
		t.Fatalf("got Retry-After %q, want what is left of 10 s or so", got.header.Get("Retry-After"))
	}
	heeded := time.After(time.Duration(wait) * time.Second)
	create("third").must(t, 201)
	a.do(t, call{method: "GET", path: "/assets", key: "first"}).must(t, 200)
	<-heeded
	create("second").must(t, 201)
}
