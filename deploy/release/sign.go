package main

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

const (
	// sums is the file of checksums. It is a signed note; sha256sum can read it too.
	sums = "SHA256SUMS"
	// keyName is the name of the key in signatures.
	keyName = "asset-registry.example/release"
)

// sign adds the changelog and the licence, writes the checksums of all files, and signs them.
func (r *release) sign(signer note.Signer) error {
	for _, name := range []string{"CHANGELOG.md", "LICENSE"} {
		if err := copyFile(filepath.Join(r.source, name), filepath.Join(r.out, name), 0o644); err != nil {
			return err
		}
	}
	var text strings.Builder
	err := filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error { // ordered by name
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.out, path)
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: text.String()}, signer)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, sums), signed, 0o644)
}

// signingKey reads the secret key from a file. If the file does not exist, it makes a key, and prints how to
// check signatures of this key.
func signingKey(file string) (note.Signer, error) {
	if file == "" {
		return nil, errors.New("-key names no file")
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		secret, public, err := note.GenerateKey(rand.Reader, keyName)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file+".pub", []byte(public+"\n"), 0o644); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "made the key %s; publish %s.pub, and keep the key\n", file, file)
		return note.NewSigner(secret)
	}
	if err != nil {
		return nil, err
	}
	return note.NewSigner(strings.TrimSpace(string(text)))
}
