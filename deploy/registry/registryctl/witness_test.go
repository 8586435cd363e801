package registryctl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/logclient"
	"asset-registry/shared/porttest"
	"asset-registry/shared/translog"
)

// freeAddress returns an address on which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := porttest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// witnessArguments returns the command line of a witness with its files in dir.
func witnessArguments(dir, address, policy string) []string {
	return []string{"witness", "--addr", address, "--key-file", filepath.Join(dir, "key"), "--policy", policy,
		"--state", filepath.Join(dir, "state")}
}

func TestWitnessCosignsForALogAndEnds(t *testing.T) {
	dir := t.TempDir()
	logKey, err := translog.GenerateKey(translog.ForLog, "registry.example/log")
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(dir, "policy")
	if err := os.WriteFile(policy, []byte("log "+logKey.Public().String()+"\nquorum none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		arguments := append(witnessArguments(dir, address, policy), "--name", "witness.example/w")
		ended <- Run(ctx, arguments, strings.NewReader(""), &out, io.Discard)
	}()
	waitFor(t, "http://"+address+"/readyz")
	secret, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := translog.ParseKey(strings.TrimSpace(string(secret)))
	if err != nil {
		t.Fatal(err)
	}
	line := "witness witness.example/w " + key.Public().String()
	text := fmt.Appendf(nil, "log %s\n%s http://%s/\nquorum witness.example/w\n", logKey.Public(), line, address)
	with, err := translog.ParsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	witnesses, err := logclient.NewWitnesses(with, nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer witnesses.Close()
	signed, err := translog.Sign(translog.Checkpoint{Origin: "registry.example/log", Root: translog.Tree{}.Root()}, logKey)
	if err != nil {
		t.Fatal(err)
	}
	got := witnesses.Cosign(ctx, signed, 0, func(context.Context, int64) ([]tlog.Hash, error) { return nil, nil })
	if !got.Quorum {
		t.Errorf("got %v, want a cosignature", got.Faults)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got %v at the end, want none", err)
	}
	if got := strings.TrimSpace(out.String()); got != line {
		t.Errorf("got %q, want the line of a policy file: %q", got, line)
	}
}

// waitFor waits until a server at the address answers 200.
func waitFor(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		answer, err := http.Get(address)
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // only the status is needed
			if err := answer.Body.Close(); err == nil && answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("got no answer of %s: %v", address, err)
		}
	}
}

func TestWitnessRefusesToStart(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy")
	if err := os.WriteFile(policy, []byte("quorum none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ policy, want string }{
		{policy, "knows no log"},
		{filepath.Join(dir, "none"), "--policy"},
		{dir, "--policy"},
	} {
		arguments := append(witnessArguments(dir, freeAddress(t), c.policy), "--name", "w")
		err := Run(t.Context(), arguments, strings.NewReader(""), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
