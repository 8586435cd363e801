package registryctl

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// verify verifies the whole log of a registry.
func (r *testRegistry) verify(t *testing.T, args ...string) (report logReport, err error) {
	t.Helper()
	key := r.key.Public().String()
	text, err := run(t, append([]string{"-o", "json", "verify", "--log", r.URL + "/log", "--public-key", key}, args...)...)
	if err != nil {
		return report, err
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatalf("got %q, %v", text, err)
	}
	return report, nil
}

func TestAWholeLogIsVerified(t *testing.T) {
	r := newTestRegistry(t, 0)
	want := logReport{Origin: testOrigin, Size: 300, Root: r.tree.Root().String(), Cosigned: []string{}}
	got, err := r.verify(t)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("got %v (-want +got):\n%s", err, diff)
	}
	policy := file(t, "policy", []byte("log "+r.key.Public().String()+"\nquorum none\n"))
	text, err := run(t, "--url", r.URL, "verify", "--policy", policy)
	lines := "origin: registry.example/log\nsize: 300\nroot: " + want.Root + "\ncosigned: -\n"
	expect.ErrorIf(t, err != nil || text != lines, "got %q, %v with a policy, want %q", text, err, lines)
}

func TestALogIsRememberedAndMustContinue(t *testing.T) {
	r := newTestRegistry(t, 0)
	remember := filepath.Join(t.TempDir(), "remembered")
	size := int64(0)
	for range 3 {
		got, err := r.verify(t, "--remember", remember)
		want := logReport{Origin: testOrigin, Size: r.tree.Size(), Root: r.tree.Root().String(), Cosigned: []string{}}
		if size > 0 {
			want.Continues = &size
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("got %v (-want +got):\n%s", err, diff)
		}
		if text, err := os.ReadFile(remember); err != nil || !bytes.Equal(text, r.signed) {
			t.Errorf("got %q, %v, want the checkpoint", text, err)
		}
		size = r.tree.Size()
		r.change(t, translog.Change, 11, "later")
		r.sign(t)
	}
	good := r.signed
	r.sign(t)
	expect.OK(t, os.WriteFile(remember, good, 0o600))
	fork := newTestRegistry(t, 1)
	fork.change(t, translog.Change, 11, "later")
	for _, c := range []struct {
		name string
		grow int
	}{{"a shorter log", 1}, {"a log that grew from another past", 100}} {
		for range c.grow {
			fork.change(t, translog.Change, 12, "later")
		}
		fork.sign(t)
		_, err := fork.verify(t, "--remember", remember)
		if err == nil || !strings.HasPrefix(err.Error(), translog.ErrConsistency.Error()) ||
			!strings.HasSuffix(err.Error(), remember+".conflict as evidence") {
			t.Errorf("%s: got %v, want %v and the evidence", c.name, err, translog.ErrConsistency)
		}
		for name, want := range map[string][]byte{remember: good, remember + ".conflict": fork.signed} {
			if text, err := os.ReadFile(name); err != nil || !bytes.Equal(text, want) {
				t.Errorf("%s: got %q, %v in %s, want %q", c.name, text, err, name, want)
			}
		}
	}
}

func TestARotatedKeyIsTrustedByBothPublicKeys(t *testing.T) {
	r := newTestRegistry(t, 0)
	remember := filepath.Join(t.TempDir(), "remembered")
	expect.Get(r.verify(t, "--remember", remember))(t)
	newer := newTestKey(t, translog.ForLog, testOrigin, 9)
	r.sign(t, newer)
	for _, key := range []translog.Key{r.key, newer} {
		args := []string{"--url", r.URL, "verify", "--remember", remember, "--public-key", key.Public().String()}
		expect.ErrOf(t, nil, "")(run(t, args...))
	}
	r.key = newer
	r.sign(t)
	if _, err := r.verify(t, "--remember", remember); err != nil {
		t.Errorf("got %v after the old key was retired, want none", err)
	}
}

func TestTamperedLogsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		tamper func(r *testRegistry)
		want   string
	}{
		{"a changed entry", func(r *testRegistry) { r.parts["/log/tile/entries/001.p/44"][300] ^= 1 }, "tampered"},
		{"a changed tile", func(r *testRegistry) { r.parts["/log/tile/0/000"][3] ^= 1 }, "tampered"},
		{"a changed tile of level 1", func(r *testRegistry) { r.parts["/log/tile/1/000.p/1"][3] ^= 1 }, "tampered"},
		{"a missing tile", func(r *testRegistry) { delete(r.parts, "/log/tile/0/000") }, "file does not exist"},
		{"a changed checkpoint", func(r *testRegistry) { r.signed[30] ^= 1 }, "checkpoint"},
		{"no checkpoint", func(r *testRegistry) { r.signed = nil }, "the log has no checkpoint"},
		{"a signature of another key", func(r *testRegistry) {
			r.key = newTestKey(t, translog.ForLog, testOrigin, 7)
		}, translog.ErrSignature.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestRegistry(t, 0)
			c.tamper(r)
			remember := filepath.Join(t.TempDir(), "remembered")
			expect.SaysOf(t, c.want, "")(r.verify(t, "--remember", remember))
			expect.ErrOf(t, os.ErrNotExist, "")(os.Stat(remember))
		})
	}
}

func TestVerifyRefusesAWrongCommandLine(t *testing.T) {
	r := newTestRegistry(t, 0)
	key := r.key.Public().String()
	damaged := file(t, "remembered", []byte("registry.example/log\n3\n"))
	x := file(t, "x", nil)
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no key", []string{x}, "--public-key, or a policy file with --policy"},
		{"a key and a policy", []string{x, "--public-key", key, "--policy", x}, "exclude each other"},
		{"a damaged key", []string{x, "--public-key", key[1:]}, "malformed key"},
		{"no policy file", []string{x, "--policy", "/absent"}, "--policy"},
		{"a proof and a log", []string{x, "--public-key", key, "--assets"}, "leave out FILE"},
		{"no proof", []string{"/absent", "--public-key", key}, "FILE"},
		{"no address", []string{"--log", "registry.example", "--public-key", key}, "--log: "},
		{"a damaged memory", []string{"--public-key", key, "--remember", damaged}, "holds no checkpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := run(t, append([]string{"--url", r.URL, "verify"}, c.args...)...)
			if err == nil || got != "" || ExitCode(err) != 2 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, %v, with the code %d, want %q and 2", got, err, ExitCode(err), c.want)
			}
		})
	}
}

func TestAnInterruptEndsTheVerification(t *testing.T) {
	for _, args := range [][]string{nil, {"--assets"}} {
		r := newTestRegistry(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		args = append([]string{"--url", r.URL, "verify", "--public-key", r.key.Public().String()}, args...)
		err := Run(ctx, args, strings.NewReader(""), io.Discard, io.Discard)
		expect.ErrorIf(t, err == nil || !strings.HasPrefix(err.Error(), "interrupted"), "got %v, want an interruption", err)
	}
}

func TestTheRegistryIsFoundByItsLog(t *testing.T) {
	for log, want := range map[string]string{
		"https://a.example/log":        "https://a.example",
		"https://a.example/log/":       "https://a.example",
		"https://a.example/log/0a1b":   "https://a.example",
		"https://a.example/x/log/0a1b": "https://a.example/x",
		"https://log.example":          "https://log.example",
	} {
		if got := registryOf(log); got != want {
			t.Errorf("got %s of %s, want %s", got, log, want)
		}
	}
}
