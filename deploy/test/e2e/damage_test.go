package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// served returns a data directory with 40 changed assets, and their ids. The registry that wrote it has stopped.
func served(t *testing.T) (dir string, ids []string) {
	t.Helper()
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, dir, &processes.Output{})
	for i := range 40 {
		asset := validAsset()
		asset["description"] = strings.Repeat("опис ", 1+i%5*300)
		c := a.publish(t, asset)
		a.patch(t, c, fields{"title": fmt.Sprint("назва ", i)}).must(t, 200)
		ids = append(ids, c.id)
	}
	expect.OK(t, registry.Stop())
	return dir, ids
}

// copyOf copies a data directory, and replaces the content of one of its files by the result of the function
// `change`. If `change` returns nil, the copy does not get the file.
func copyOf(t *testing.T, dir, name string, change func([]byte) []byte) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	entries, err := os.ReadDir(dir)
	expect.OK(t, errors.Join(err, os.Mkdir(to, 0o700)))
	for _, e := range entries {
		if e.IsDir() { // a directory holds snapshots, which the registry makes again
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if e.Name() == name {
			if text = change(text); text == nil {
				continue
			}
		}
		expect.OK(t, errors.Join(err, os.WriteFile(filepath.Join(to, e.Name()), text, 0o600)))
	}
	return to
}

// isRefused checks that the registry does not start on dir. The registry must print one line, which contains the
// text `says`.
func isRefused(t *testing.T, dir, says string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "registry"), "serve", "--addr", freeAddr(t), "--data",
		dir)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 2 || strings.Count(stderr.String(), "\n") != 1 ||
		!strings.Contains(stderr.String(), says) {
		t.Errorf("got %v and %q, want exit code 2 and one line with %q", err, &stderr, says)
	}
}

// check runs the command check, and returns its exit code and its output.
func check(t *testing.T, dir string, flags ...string) (code int, says string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "registry"), append([]string{"check", "--data", dir}, flags...)...)
	output, _ := cmd.CombinedOutput() // the error is not needed: cmd.ProcessState has the exit code
	if strings.Contains(string(output), "goroutine ") {
		t.Errorf("got a stack trace, want none: %s", output)
	}
	return cmd.ProcessState.ExitCode(), string(output)
}

// TestServeRefusesLostOrMixedData removes, cuts and mixes up the files of data directories. The commands serve and
// check must both name the file.
func TestServeRefusesLostOrMixedData(t *testing.T) {
	dir, _ := served(t)
	other, _ := served(t)
	gone := func([]byte) []byte { return nil }
	empty := func([]byte) []byte { return []byte{} }
	for _, c := range []struct {
		name, file string
		change     func([]byte) []byte
		says       string
	}{
		{"assets.db is missing", "assets.db", gone, "assets.db is missing"},
		{"tokens.db is missing", "tokens.db", gone, "tokens.db is missing"},
		{"assets.db is empty", "assets.db", empty, "assets.db is empty"},
		{"tokens.db is empty", "tokens.db", empty, "tokens.db is empty"},
		{"the secret is missing", "secret", gone, "no file secret"},
		{"assets.db is cut off", "assets.db", func(b []byte) []byte { return b[:len(b)/8] }, "cut off"},
		{"tokens.db is cut off", "tokens.db", func(b []byte) []byte { return b[:12<<10] }, "damaged"},
		{"the secret is of another registry", "secret", func([]byte) []byte {
			return expect.Get(os.ReadFile(filepath.Join(other, "secret")))(t)
		}, "the secret is another"},
		{"assets.db is of another registry", "assets.db", func([]byte) []byte {
			return expect.Get(os.ReadFile(filepath.Join(other, "assets.db")))(t)
		}, "the secret is another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			damaged := copyOf(t, dir, c.file, c.change)
			isRefused(t, damaged, c.says)
			if code, says := check(t, damaged); code != 1 || !strings.Contains(says, c.file+": ") {
				t.Errorf("check: got %d and %s, want 1 and the name of the file", code, says)
			}
		})
	}
	if code, says := check(t, dir); code != 0 || !strings.Contains(says, "assets.db: ok, assets: 40\ntokens.db: ok") {
		t.Errorf("check of good data: got %d and %s, want 0", code, says)
	}
}

func TestCheckRefusesARunningRegistry(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	standalone(t, addr, dir, &processes.Output{})
	if code, says := check(t, dir); code != 2 || !strings.Contains(says, "stop the registry") {
		t.Errorf("got %d and %s, want 2 and the advice to stop the registry", code, says)
	}
}

// TestADamagedLogIsNamedAndRepaired damages a part of the stored public log. The registry must name the damaged part,
// and the command repair must restore it. The tests of the store damage each kind of part.
func TestADamagedLogIsNamedAndRepaired(t *testing.T) {
	addr, dir := freeAddr(t), filepath.Join(t.TempDir(), "data")
	a := api{"http://" + addr, "2.5"}
	registry := standalone(t, addr, dir, &processes.Output{})
	first := a.publish(t, validAsset())
	var writing sync.WaitGroup
	for range 16 { // enough changes that the log has full parts
		writing.Go(func() {
			for range 16 {
				a.publish(t, validAsset())
			}
		})
	}
	writing.Wait()
	last := a.publish(t, validAsset())
	awaitAnswer(t, a, "/assets/"+last.id+"/proof", 200, "")
	proof := "/assets/" + first.id + "/proof?revision=2"
	expect.OK(t, registry.Stop())
	changePart(t, filepath.Join(dir, "assets.db"), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0})
	if code, says := check(t, dir); code != 1 || !strings.Contains(says, "of the public log does not match the record") {
		t.Errorf("check: got %d and %s, want 1 and the part", code, says)
	}
	registry = standalone(t, addr, dir, &processes.Output{})
	awaitAnswer(t, a, proof, 503, "The public log is damaged")
	awaitAnswer(t, a, "/readyz", 200, "the public log is damaged")
	awaitAnswer(t, a, "/readyz", 200, "of tile/entries/000 does not match the tile")
	a.do(t, call{method: "GET", path: "/assets/" + first.id}).must(t, 200)
	expect.OK(t, registry.Stop())
	if code, says := check(t, dir, "--repair-log"); code != 0 || !strings.Contains(says, "repaired parts: 1\n") {
		t.Errorf("check --repair-log: got %d and %s, want one repaired part", code, says)
	}
	standalone(t, addr, dir, &processes.Output{})
	awaitAnswer(t, a, proof, 200, "")
}

// awaitAnswer repeats a GET until the answer has the status, and contains the text.
func awaitAnswer(t *testing.T, a api, path string, status int, text string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got := a.do(t, call{method: "GET", path: path})
		if got.status == status && strings.Contains(got.text, text) {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%s: got %d %s, want %d with %q", path, got.status, got.text, status, text)
		}
	}
}

// changePart changes a bit of a part of the public log in the file assets.db at path.
func changePart(t *testing.T, path string, key []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	expect.OK(t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		tiles := tx.Bucket([]byte("tiles"))
		data := bytes.Clone(tiles.Get(key))
		if data == nil {
			return fmt.Errorf("got no part %x, want it", key)
		}
		data[40] ^= 1
		return tiles.Put(key, data)
	})
	expect.OK(t, errors.Join(err, db.Close()))
}
