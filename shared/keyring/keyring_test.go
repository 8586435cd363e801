package keyring

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestRead(t *testing.T) {
	a, b := strings.Repeat("a", MinLength), strings.Repeat("b", MinLength)
	for _, c := range []struct {
		name string
		text string
		want []string
		says []string // texts in the error; nil means no error
	}{
		{"one secret", a, []string{a}, nil},
		{"one secret in white space", "\n " + a + "\r\n\n", []string{a}, nil},
		{"two secrets keep their order", b + "\n" + a + "\n", []string{b, a}, nil},
		{"an empty file", "\n", nil, []string{"there is none"}},
		{"a short secret", "short\n" + a, nil, []string{"secret 1 has 5 bytes, and needs at least 32"}},
		{"several faults", a + "\nx\n" + a, nil, []string{"secret 2 has 1 bytes", "secret 3 stands there twice"}},
		{"too many secrets", strings.Repeat(a+"\n", 5), nil, []string{"there are 5 secrets"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			expect.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
			got, err := Read(file)
			expect.Equal(t, string(bytes.Join(got, []byte("|"))), strings.Join(c.want, "|"), "")
			expect.ErrorIf(t, (err == nil) != (c.says == nil), "got %v, want an error: %t", err, c.says != nil)
			for _, says := range c.says {
				if err != nil && !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), a) {
					t.Errorf("got %v, want %q and no secret in it", err, says)
				}
			}
		})
	}
	_, err := Read(filepath.Join(t.TempDir(), "none"))
	expect.Says(t, err, "read the secret", "no file")
}

func TestKeysAreOfOneSecretAndPurpose(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), MinLength), bytes.Repeat([]byte("b"), MinLength)
	seen := map[string]bool{}
	for _, purpose := range []string{"tokens", "sessions"} {
		forth, err := Ring{a, b}.Derive(purpose)
		expect.OK(t, err)
		back, err := Ring{b, a}.Derive(purpose)
		expect.OK(t, err)
		for i, key := range forth {
			other := back[1-i]
			if key.Name != other.Name || !bytes.Equal(key.Key, other.Key) {
				t.Errorf("%s: got another key %d after a swap of the secrets, want the same", purpose, i)
			}
			if len(key.Key) != 32 || len(key.Name) != 8 || seen[string(key.Key)] {
				t.Errorf("%s: got key %d of %d bytes, named %q; want 32 bytes that no other key has, and a name of 8",
					purpose, i, len(key.Key), key.Name)
			}
			seen[string(key.Key)] = true
		}
		if forth[0].Name == forth[1].Name {
			t.Errorf("%s: got the name %s twice, want two names", purpose, forth[0].Name)
		}
	}
}
