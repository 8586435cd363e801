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

// The limits of TestABrokerCannotFillTheDisk.
const (
	bytesPerWindow = 2_000_000
	bytesPerWrite  = 4096 // what each write costs in addition to the bytes of its text
	bytesWindow    = 10 * time.Second
)

// startLimited starts a registry with a byte limit for each broker, and with two
// keys of the broker "filler" and one of another broker.
func startLimited(t *testing.T) api {
	t.Helper()
	build(t)
	dir, addr := t.TempDir(), freeAddr(t)
	limits := fmt.Sprintf(`limits:
  - {name: tenant-bytes, by: tenant, costs: {write: %d, bytes: 1}, windows: {10s: %d}}
`, bytesPerWrite, bytesPerWindow)
	var keys strings.Builder
	for _, k := range []struct{ id, broker string }{
		{"first", "filler"}, {"second", "filler"}, {"third", "neighbour"},
	} {
		fmt.Fprintf(&keys, "- {id: %s, broker: %s, role: broker, levels: \"3\", sha256: %x}\n", k.id, k.broker,
			sha256.Sum256([]byte(k.id)))
	}
	for _, f := range []struct{ name, text string }{{"config.yaml", limits}, {"keys.yaml", keys.String()}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := processes.Start(t.Context(), addr, &processes.Output{}, filepath.Join(bin, "registry"), "serve",
		"--addr", addr, "--data", filepath.Join(dir, "data"), "--config", filepath.Join(dir, "config.yaml"),
		"--keys-file", filepath.Join(dir, "keys.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return api{base: "http://" + addr, version: "2.5"}
}

// TestABrokerCannotFillTheDisk writes with two keys of one broker until the registry refuses, waits for
// Retry-After, and writes again. Requests of other brokers and reads must work all the time (docs/contract.md,
// "Rate limits").
func TestABrokerCannotFillTheDisk(t *testing.T) {
	t.Parallel()
	a := startLimited(t)
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
		written += bytesPerWrite + len(text(got.must(t, 201).data()["description"]))
		if most := (1 + int(time.Since(began)/bytesWindow)) * bytesPerWindow; written > most {
			t.Fatalf("got %d bytes accepted in %v, want at most %d", written, time.Since(began), most)
		}
	}
	equal(t, "RateLimit-Policy", got.header.Get("RateLimit-Policy"),
		`"tenant-bytes-10s";q=2000000;qu="content-bytes";w=10`)
	wait, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || wait < 1 || wait > 11 {
		t.Fatalf("got Retry-After %q, want 1 to 11 s", got.header.Get("Retry-After"))
	}
	waited := time.After(time.Duration(wait) * time.Second)
	create("third").must(t, 201)
	a.do(t, call{method: "GET", path: "/assets", key: "first"}).must(t, 200)
	<-waited
	create("second").must(t, 201)
}
