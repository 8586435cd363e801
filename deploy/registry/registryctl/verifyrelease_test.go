package registryctl

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"asset-registry/shared/testing/expect"
)

// TestAReleaseIsVerified checks a whole release, a part of one, and releases that somebody has changed. For a changed
// release, the command must return an error.
func TestAReleaseIsVerified(t *testing.T) {
	secret, public, err := note.GenerateKey(rand.Reader, "asset-registry.example/release")
	expect.OK(t, err)
	_, other, err := note.GenerateKey(rand.Reader, "asset-registry.example/release")
	expect.OK(t, err)
	signer := expect.Get(note.NewSigner(secret))(t)
	text := fmt.Sprintf("%x  LICENSE\n%x  linux-amd64/registry\n", sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b")))
	signed := expect.Get(note.Sign(&note.Note{Text: text}, signer))(t)
	all := map[string]string{"SHA256SUMS": string(signed), "LICENSE": "a", "linux-amd64/registry": "b"}
	with := func(name, text string) map[string]string {
		files := map[string]string{name: text}
		for n, t := range all {
			if n != name {
				files[n] = t
			}
		}
		return files
	}
	for _, c := range []struct {
		name, key, says string
		files           map[string]string
		bad             bool
	}{
		{"whole", public, "2 of 2 files are here", all, false},
		{"a part", public, "1 of 2 files are here", map[string]string{"SHA256SUMS": string(signed), "LICENSE": "a"}, false},
		{"nothing but checksums", public, "has no file", map[string]string{"SHA256SUMS": string(signed)}, true},
		{"another program", public, "registry is not the file that was signed", with("linux-amd64/registry", "c"), true},
		{"one more file", public, "x was not signed", with("x", "c"), true},
		{"other checksums", public, "invalid signature", with("SHA256SUMS", strings.Replace(string(signed), "  LICENSE", "  COPYING", 1)), true},
		{"no signature", public, "malformed note", with("SHA256SUMS", text), true},
		{"another key", other, "no verifiable signatures", all, true},
		{"no key", "key", "--public-key", all, true},
		{"no checksums", public, "SHA256SUMS", map[string]string{"LICENSE": "a"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(dir, name)
				expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
				expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
			}
			var out, errOut bytes.Buffer
			err := Run(t.Context(), []string{"verify-release", dir, "--public-key", c.key}, nil, &out, &errOut)
			if got := fmt.Sprint(err, out.String(), errOut.String()); (err != nil) != c.bad || !strings.Contains(got, c.says) {
				t.Errorf("got %v and %q, want an error: %t, and %q", err, out.String()+errOut.String(), c.bad, c.says)
			}
		})
	}
}
