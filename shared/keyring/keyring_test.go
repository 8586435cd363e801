package keyring

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	a, b := strings.Repeat("a", MinLength), strings.Repeat("b", MinLength)
	for _, c := range []struct {
		name string
		text string
		want []string
		says []string // of the refusal; nil: there is none
	}{
		{"one", a, []string{a}, nil},
		{"one in white space", "\n " + a + "\r\n\n", []string{a}, nil},
		{"two, in order", b + "\n" + a + "\n", []string{b, a}, nil},
		{"none", "\n", nil, []string{"there is none"}},
		{"a short one", "short\n" + a, nil, []string{"secret 1 has 5 bytes, and needs at least 32"}},
		{"several faults", a + "\nx\n" + a, nil, []string{"secret 2 has 1 bytes", "secret 3 stands there twice"}},
		{"too many", strings.Repeat(a+"\n", 5), nil, []string{"there are 5 secrets"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Read(file)
			if text := string(bytes.Join(got, []byte("|"))); text != strings.Join(c.want, "|") {
				t.Errorf("got %q, want %q", text, c.want)
			}
			if (err == nil) != (c.says == nil) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
			for _, says := range c.says {
				if err != nil && !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), a) {
					t.Errorf("got %v, want it to say %s, and no secret", err, says)
				}
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "read the secret") {
		t.Errorf("no file: got %v, want that it cannot be read", err)
	}
}

func TestKeysAreOfOneSecretAndPurpose(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), MinLength), bytes.Repeat([]byte("b"), MinLength)
	seen := map[string]bool{}
	for _, purpose := range []string{"tokens", "sessions"} {
		forth, err := Ring{a, b}.Derive(purpose)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Ring{b, a}.Derive(purpose)
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range forth {
			other := back[1-i]
			if key.Name != other.Name || !bytes.Equal(key.Key, other.Key) {
				t.Errorf("%s: got another key %d when the secrets change places", purpose, i)
			}
			if len(key.Key) != 32 || len(key.Name) != 8 || seen[string(key.Key)] {
				t.Errorf("%s: got key %d of %d bytes, named %q; want 32 bytes that no other key has", purpose, i, len(key.Key), key.Name)
			}
			seen[string(key.Key)] = true
		}
		if forth[0].Name == forth[1].Name {
			t.Errorf("%s: two secrets have the name %s", purpose, forth[0].Name)
		}
	}
}
