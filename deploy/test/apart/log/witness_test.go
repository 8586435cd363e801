package log

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"asset-registry/shared/porttest"
	"asset-registry/shared/translog"
)

// registryctl builds the program registryctl and returns its path.
func registryctl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registryctl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./registry/cmd/registryctl")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// runWitness runs a witness for the logs in a policy. It returns the line that adds this witness to a policy.
func runWitness(t *testing.T, program, name, policy string) string {
	t.Helper()
	address, err := porttest.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "witness", "--addr", address,
		"--policy", policy, "--name", name, "--key-file", filepath.Join(dir, "key"), "--state", filepath.Join(dir, "state"))
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("got %v of the witness at its end, want none", err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get("http://" + address + "/readyz")
		if err == nil && answer.Body.Close() == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got no answer of the witness: %v", err)
		}
	}
	secret, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := translog.ParseKey(strings.TrimSpace(string(secret)))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("witness %s %s http://%s/", name, key.Public(), address)
}

// TestOurWitnessesCosignAForeignLog runs a log of Tessera that asks two of our witnesses for cosignatures. Our
// verifier must find both cosignatures.
func TestOurWitnessesCosignAForeignLog(t *testing.T) {
	const name, entries = "foreign.example/log", 600
	key := newKey(t, translog.ForLog, name, 7)
	line := "log " + key.Public().String() + "\n"
	program, known := registryctl(t), file(t, "policy", []byte(line+"quorum none\n"))
	text := line + runWitness(t, program, "a", known) + "\n" + runWitness(t, program, "b", known) + "\n" +
		"group both all a b\nquorum both\n"
	group, err := tessera.NewWitnessGroupFromPolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(key.Secret())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	driver, err := posix.New(ctx, posix.Config{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	options := tessera.NewAppendOptions().WithCheckpointSigner(signer).WithBatching(50, 20*time.Millisecond).
		WithCheckpointInterval(100*time.Millisecond).WithWitnesses(group, &tessera.WitnessOptions{Timeout: time.Minute})
	appender, shutdown, log, err := tessera.NewAppender(ctx, driver, options)
	if err != nil {
		t.Fatal(err)
	}
	await := tessera.NewPublicationAwaiter(ctx, log.ReadCheckpoint, 50*time.Millisecond)
	policy, err := translog.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	foreign := &made{dir: dir}
	for i := range int64(entries) {
		future := appender.Add(ctx, tessera.NewEntry(leafAt(t, i)))
		if i%100 != 99 {
			continue
		}
		index, checkpoint, err := await.Await(ctx, future)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := policy.Open(checkpoint)
		if err != nil || len(signed.Cosigners) != 2 || signed.Size <= int64(index.Index) {
			t.Fatalf("got %+v, %v, want leaf %d with two cosigners", signed, err, index.Index)
		}
		entry := leafOf(t, foreign, signed.Checkpoint, int64(index.Index))
		path, err := translog.Include(ctx, signed.Checkpoint, int64(index.Index), foreign)
		if err != nil {
			t.Fatal(err)
		}
		if err := translog.CheckInclusion(signed.Checkpoint, int64(index.Index), tlog.RecordHash(entry), path); err != nil {
			t.Errorf("got %v of leaf %d, want none", err, index.Index)
		}
	}
	if err := shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// leafOf reads the entry at an index of a log.
func leafOf(t *testing.T, m *made, c translog.Checkpoint, index int64) []byte {
	t.Helper()
	tile := translog.BundleOf(index, c.Size)
	data, err := m.ReadPart(t.Context(), tile)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := translog.ParseBundle(data, tile.Width)
	if err != nil {
		t.Fatal(err)
	}
	return entries[index%translog.TileWidth]
}
