package registry

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/httpserver"
)

// TestAddressesOfFiles checks the beginning of the addresses of files (docs/files.md, "Addresses").
func TestAddressesOfFiles(t *testing.T) {
	secure := httpserver.Certificate{Cert: "x", Key: "x"}
	for _, c := range []struct {
		config Config
		addr   string
		want   string
	}{
		{Config{}, "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{Config{}, "[::1]:8080", "http://[::1]:8080"},
		{Config{TLS: secure}, "127.0.0.1:8443", "https://127.0.0.1:8443"},
		{Config{}, "0.0.0.0:8080", ""},
		{Config{}, "[::]:8080", ""},
		{Config{}, "10.0.0.1:8080", ""},
		{Config{}, "/run/socket", ""},
		{Config{Sandbox: true}, "0.0.0.0:8080", "http://127.0.0.1:8080"},
		{Config{Sandbox: true}, "10.0.0.1:8080", "http://10.0.0.1:8080"},
		{Config{BaseURL: "https://registry.example/"}, "0.0.0.0:8080", "https://registry.example"},
		{Config{BaseURL: "https://registry.example", Sandbox: true}, "127.0.0.1:80", "https://registry.example"},
	} {
		if got := c.config.filesURL(c.addr); got != c.want {
			t.Errorf("%q, sandbox %t, at %s: got %q, want %q", c.config.BaseURL, c.config.Sandbox, c.addr, got, c.want)
		}
	}
}

// TestBytesOfABackup writes the bytes of files into a backup, and reads them back. If the backup is cut off,
// reading must return an error.
func TestBytesOfABackup(t *testing.T) {
	dir := t.TempDir()
	blob := filepath.Join(filesDirectory, "01", strings.Repeat("01", 16)+"-"+strings.Repeat("f", 16))
	for name, text := range map[string]string{
		blob: "content", filepath.Join(filesDirectory, "new", filepath.Base(blob)): "half", filesDirectory + "/x": "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(archiveBytes(w, dir), w.Close()); err != nil {
		t.Fatal(err)
	}
	restored := t.TempDir()
	if err := os.Mkdir(filepath.Join(restored, filesDirectory), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := extractBytes(tar.NewReader(bytes.NewReader(b.Bytes())), restored); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(restored, blob)); string(text) != "content" {
		t.Errorf("got %q, %v, want the content", text, err)
	}
	if found, _ := filepath.Glob(filepath.Join(restored, filesDirectory, "*", "*")); len(found) != 1 {
		t.Errorf("got %q, want the one file", found)
	}
	cut := b.Bytes()[:1024] // the header and the bytes of the only file
	if err := extractBytes(tar.NewReader(bytes.NewReader(cut)), t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "cut off") {
		t.Errorf("a backup that is cut between two files: got %v, want an error", err)
	}
}
