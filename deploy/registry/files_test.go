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
	"asset-registry/shared/testing/expect"
)

// TestAddressesOfFiles checks the beginning of the addresses of files (docs/files.md, "Addresses").
func TestAddressesOfFiles(t *testing.T) {
	secure := httpserver.Certificate{Cert: "x", Key: "x"}
	for _, c := range []struct {
		config     Config
		addr, want string
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
		expect.Equal(t, c.config.filesURL(c.addr), c.want, "%q, sandbox %t, at %s", c.config.BaseURL,
			c.config.Sandbox, c.addr)
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
		expect.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	expect.OK(t, errors.Join(archiveBytes(w, dir), w.Close()))
	restored := t.TempDir()
	expect.OK(t, os.Mkdir(filepath.Join(restored, filesDirectory), 0o700))
	expect.OK(t, extractRest(tar.NewReader(bytes.NewReader(b.Bytes())), restored))
	if text, err := os.ReadFile(filepath.Join(restored, blob)); string(text) != "content" {
		t.Errorf("got %q, %v, want the content", text, err)
	}
	if found, _ := filepath.Glob(filepath.Join(restored, filesDirectory, "*", "*")); len(found) != 1 {
		t.Errorf("got %q, want the one file", found)
	}
	cut := b.Bytes()[:1024] // the header and the bytes of the only file
	err := extractRest(tar.NewReader(bytes.NewReader(cut)), t.TempDir())
	expect.Says(t, err, "cut off", "a backup that is cut between two files")
}
