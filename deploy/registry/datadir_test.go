package registry

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/keyring"
	"asset-registry/shared/testing/expect"
)

// files maps the names of the files in a data directory to their contents.
type files map[string]string

// The method `with` returns a copy of f with one more file.
func (f files) with(name, text string) files {
	all := maps.Clone(f)
	all[name] = text
	return all
}

func TestOpenData(t *testing.T) {
	secret := strings.Repeat("5", 64) + "\n"
	ours := files{"FORMAT": format + "\n"}
	begun := ours.with("secret.first", secret)
	named := ours.with("secret", secret)
	complete := named.with("assets.db", "x").with("tokens.db", "x")
	for _, c := range []struct {
		name  string
		files files  // nil: the directory does not exist
		says  string // substring of the error; "": the directory opens
	}{
		{"no directory", nil, ""},
		{"an empty directory", files{}, ""},
		{"killed before the format", files{"FORMAT.new123": "asset"}, ""},
		{"killed before the secret", ours, ""},
		{"killed while it writes the secret", ours.with("secret.first.new123", "55"), ""},
		{"killed before the stores", begun, ""},
		{"killed between the stores", begun.with("tokens.db", "x").with("assets.db.new123", ""), ""},
		{"killed before the secret gets its final name", begun.with("assets.db", "x").with("tokens.db", "x"), ""},
		{"killed before it removes the first name of the secret", complete.with("secret.first", secret), ""},
		{"both stores are missing", named, "assets.db is missing"},
		{"the assets are missing", named.with("tokens.db", "x"), "assets.db is missing"},
		{"the tokens are missing", named.with("assets.db", "x"), "tokens.db is missing"},
		{"the file of assets is empty", complete.with("assets.db", ""), "assets.db is empty"},
		{"the file of tokens is empty", complete.with("tokens.db", ""), "tokens.db is empty"},
		{"tokens without a secret", ours.with("tokens.db", "x"), "restore"},
		{"a complete directory", complete, ""},
		{"files of another program", files{"letter.txt": "dear"}, "letter.txt"},
		{"the format of a later version", files{"FORMAT": "asset-registry data 2\n"}, "data 2"},
		{"assets without a secret", ours.with("assets.db", "x"), "restore"},
		{"a truncated secret", complete.with("secret", "5\n"), "at least 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "data")
			c.files.write(t, dir)
			got, err := openData(dir)
			if c.says != "" {
				mustRefuseUntouched(t, dir, c.files, err, c.says)
				return
			}
			expect.FatalIf(t, err != nil || len(got) != 1 || len(got[0]) != 64,
				"got %d secrets, %v; want one of 64 bytes", len(got), err)
			mustFinishFirstStart(t, dir, got)
		})
	}
}

// write creates the directory with the files. If f is nil, it does nothing.
func (f files) write(t *testing.T, dir string) {
	t.Helper()
	if f == nil {
		return
	}
	expect.OK(t, os.MkdirAll(dir, 0o700))
	for file, text := range f {
		expect.OK(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
}

// mustRefuseUntouched checks that err contains the text in the parameter `says`, and that the directory still has
// exactly the files in the parameter `want`.
func mustRefuseUntouched(t *testing.T, dir string, want files, err error, says string) {
	t.Helper()
	expect.Says(t, err, says, "")
	got := files{}
	entries := expect.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		text := expect.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		got[e.Name()] = string(text)
	}
	expect.NoDiff(t, cmp.Diff(want, got), "after the refusal: the files differ")
}

// mustFinishFirstStart finishes the first start. It opens the directory before and after that, and checks the
// secret each time.
func mustFinishFirstStart(t *testing.T, dir string, want keyring.Ring) {
	t.Helper()
	if again, err := openData(dir); err != nil || !cmp.Equal(again, want) {
		t.Errorf("opened again: got error %v, same secret %t; want nil, true", err, cmp.Equal(again, want))
	}
	for _, name := range []string{assetsFile, tokensFile} { // the services create these files
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	expect.OK(t, finishFirstStart(dir))
	if again, err := openData(dir); err != nil || !cmp.Equal(again, want) {
		t.Errorf("after the first start: got error %v, same secret %t; want nil, true", err, cmp.Equal(again, want))
	}
	if there, err := has(dir, firstSecretFile); there || err != nil {
		t.Errorf("%s: got exists %t, %v; want no such file", firstSecretFile, there, err)
	}
	if info, err := os.Stat(filepath.Join(dir, secretFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: got %v, %v; want mode 0600", info, err)
	}
}

func TestOpenDataByManyAtOnceFindsOneSecret(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "a", "data")
		secrets, errs := make([]keyring.Ring, 8), make([]error, 8)
		var opening sync.WaitGroup
		for i := range secrets {
			opening.Go(func() { secrets[i], errs[i] = openData(dir) })
		}
		opening.Wait()
		want := expect.Get(openData(dir))(t)
		for i := range secrets {
			if errs[i] != nil || !cmp.Equal(secrets[i], want) {
				t.Fatalf("process %d: got error %v, same secret %t; want nil, true", i, errs[i],
					cmp.Equal(secrets[i], want))
			}
		}
	}
}
