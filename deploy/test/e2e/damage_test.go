package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// damages are ways to damage a page: one for each field of bbolt's page header and elements, and one for the data.
var damages = []struct {
	name string
	do   func(page []byte)
}{
	{"zeroed", func(p []byte) { clear(p) }},
	{"another page's id", func(p []byte) { p[0] ^= 0xff }},
	{"another kind", func(p []byte) { p[8] ^= 0x03 }},
	{"too many elements", func(p []byte) { p[11] = 0xff }},
	{"a far overflow", func(p []byte) { p[14] = 0xff }},
	{"an element far away", func(p []byte) { p[16+7] ^= 0xff }},
	{"a child far away", func(p []byte) { p[16+13] ^= 0xff }},
	{"data", func(p []byte) { p[len(p)-20] ^= 0xff; p[len(p)/2] ^= 0xff }},
}

// TestDamagedDataNeverCrashes damages pages of each kind. The registry must refuse to start, or serve without a
// crash. After a request has failed because of the damage, the registry must answer a health check with 503.
func TestDamagedDataNeverCrashes(t *testing.T) {
	dir, ids := served(t)
	page := os.Getpagesize()
	for _, name := range []string{"assets.db", "tokens.db"} {
		text := expect.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		kinds := map[uint16]int{}
		for at := 0; at < len(text); at += page {
			kind := binary.NativeEndian.Uint16(text[at+8:])
			limit := 1
			if kind == 2 { // a leaf page
				limit = 4
			}
			if !slices.Contains([]uint16{1, 2, 4, 16}, kind) { // an overflow page, which has only data and no header
				continue
			}
			if kinds[kind]++; kinds[kind] > limit {
				continue
			}
			for _, damage := range damages {
				t.Run(fmt.Sprintf("%s, page %d of kind %d, %s", name, at/page, kind, damage.name), func(t *testing.T) {
					t.Parallel()
					serveDamaged(t, copyOf(t, dir, name,
						func(b []byte) []byte { damage.do(b[at : at+page]); return b }), ids)
				})
			}
		}
		if len(kinds) < 4 {
			t.Errorf("%s: got pages of the kinds %v, want all four", name, kinds)
		}
	}
}

// answers waits until the registry answers, and returns true. It returns false if the registry stops and prints the
// reason.
func answers(t *testing.T, a api, output *processes.Output) bool {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var body any
		if send(a, "GET", "/livez", "", nil, &body) == 200 {
			return true
		}
		if strings.HasPrefix(output.String(), "registry: ") {
			return false
		}
	}
	t.Fatalf("got neither an answer nor an end within 20 s; the output is %s", output)
	return false
}

// serveDamaged starts the registry on damaged data, and reads and writes assets.
func serveDamaged(t *testing.T, dir string, ids []string) {
	t.Helper()
	addr, output := freeAddr(t), &processes.Output{}
	a := api{"http://" + addr, "2.5"}
	registry, err := processes.StartAny(t.Context(), addr, output, filepath.Join(bin, "registry"),
		"serve", "--sandbox", "--no-limits", "--addr", addr, "--data", dir)
	if err != nil || !answers(t, a, output) {
		if got := output.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "registry: ") {
			t.Errorf("got %q, want a refusal in one line", got)
		}
		return
	}
	failed := 0
	for _, id := range ids {
		switch got := a.do(t, call{method: "GET", path: "/assets/" + id}); {
		case got.status == 500:
			t.Errorf("got %d %s, want another status than 500", got.status, got.text)
		case got.status == 503:
			failed++
		}
	}
	if got := a.do(t, call{method: "GET", path: "/assets?opt_fields=title"}); got.status >= 500 {
		failed++
	}
	var created any
	if status := send(a, "POST", "/api/2.5/assets", "", data(validAsset()), &created); status != 201 {
		failed++
	}
	if health := a.do(t, call{method: "GET", path: "/api/2.5/health"}); failed > 0 && health.status != 503 {
		t.Errorf("got health %d %s after %d failed requests, want 503", health.status, health.text, failed)
	}
	expect.OK(t, registry.Kill())
	if got := output.String(); strings.Contains(got, "goroutine ") || strings.Contains(got, "SIG") {
		t.Errorf("got a crash, want none: %s", got)
	}
}

// TestADamagedLogIsNamedAndRepaired damages each kind of part that the stored public log has. The registry must
// name the damaged part, and the command repair must restore the part.
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
	for _, c := range []struct {
		name   string
		key    []byte // key under which the part is stored
		change func(data []byte) []byte
		names  string
	}{
		{"a bit of a hash", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0}, func(b []byte) []byte { b[40] ^= 1; return b }, "of tile/entries/000 does not match the tile"},
		{"no tile", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0}, func([]byte) []byte { return nil }, "tile/0/000"},
		{"a letter of an entry", []byte{255, 0, 0, 0, 0, 0, 0, 0, 0}, func(b []byte) []byte { b[30] ^= 1; return b }, "tile/entries/000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			damaged := copyOf(t, dir, "assets.db", func(text []byte) []byte { return text })
			changePart(t, filepath.Join(damaged, "assets.db"), c.key, c.change)
			if code, says := check(t, damaged); code != 1 || !strings.Contains(says, "of the public log does not match the record") {
				t.Errorf("check: got %d and %s, want 1 and the part", code, says)
			}
			addr := freeAddr(t)
			a := api{"http://" + addr, "2.5"}
			registry := standalone(t, addr, damaged, &processes.Output{})
			awaitAnswer(t, a, proof, 503, "The public log is damaged")
			awaitAnswer(t, a, "/readyz", 200, "the public log is damaged")
			awaitAnswer(t, a, "/readyz", 200, c.names)
			a.do(t, call{method: "GET", path: "/assets/" + first.id}).must(t, 200)
			expect.OK(t, registry.Stop())
			code, says := check(t, damaged, "--repair-log")
			if code != 0 || !strings.Contains(says, "repaired parts: 1\n") {
				t.Errorf("check --repair-log: got %d and %s, want one repaired part", code, says)
			}
			registry = standalone(t, addr, damaged, &processes.Output{})
			awaitAnswer(t, a, proof, 200, "")
			expect.OK(t, registry.Stop())
		})
	}
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

// changePart changes a part of the public log in the file assets.db at path. If the function `change` returns nil,
// the part is removed.
func changePart(t *testing.T, path string, key []byte, change func([]byte) []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	expect.OK(t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		tiles := tx.Bucket([]byte("tiles"))
		data := bytes.Clone(tiles.Get(key))
		if data == nil {
			return fmt.Errorf("got no part %x, want it", key)
		}
		if data = change(data); data == nil {
			return tiles.Delete(key)
		}
		return tiles.Put(key, data)
	})
	expect.OK(t, errors.Join(err, db.Close()))
}
