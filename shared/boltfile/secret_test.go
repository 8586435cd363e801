package boltfile

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileBelongsToItsSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	one, two, three := []byte("one"), []byte("two"), []byte("three")
	for _, c := range []struct {
		name    string
		secrets [][]byte
		says    string
	}{
		{"made without a secret", nil, ""},
		{"the first start with a secret", [][]byte{one}, ""},
		{"another secret", [][]byte{two}, "secret is another"},
		{"the same secret", [][]byte{one}, ""},
		{"a new secret and the old one", [][]byte{two, one}, ""},
		{"the new secret alone", [][]byte{two}, ""},
		{"the old secret alone", [][]byte{one}, "secret is another"},
		{"two other secrets", [][]byte{one, three}, "secret is another"},
		{"a command without a secret", nil, ""},
	} {
		f, err := Open(path, Options{Format: "format 1", Secrets: c.secrets})
		if err == nil {
			err = f.Close()
		} else if c.says != "" && strings.Contains(err.Error(), c.says) {
			err = nil
		} else if c.says != "" {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.says)
		}
		if c.says == "" && err != nil || c.says != "" && f != nil {
			t.Errorf("%s: got %v, want %q in it, or no error if that is empty", c.name, err, c.says)
		}
	}
}
