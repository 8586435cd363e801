package logkey

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

const origin = "registry.example/log"

// secretOf returns the secret of a key made from a seed of equal bytes.
func secretOf(t testing.TB, use translog.Use, name string, seed byte) string {
	t.Helper()
	key, err := translog.NewKey(use, name, []byte(strings.Repeat(string(rune(seed)), 32)))
	expect.OK(t, err)
	return key.Secret()
}

func write(t testing.TB, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "log.key")
	expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// secrets returns the secrets in a file.
func secrets(t testing.TB, file string) (all []string) {
	t.Helper()
	keys, err := Read(file)
	expect.OK(t, err)
	for _, key := range keys {
		all = append(all, key.Secret())
	}
	return all
}

// The function `alone` checks that a file is the only one in its directory.
func alone(t testing.TB, file string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(file) {
		t.Errorf("got %v, %v, want %s only", entries, err, filepath.Base(file))
	}
}

func TestKeysAreReadInTheirOrder(t *testing.T) {
	a, b := secretOf(t, translog.ForLog, origin, 'a'), secretOf(t, translog.ForLog, origin, 'b')
	for _, text := range []string{b + "\n" + a + "\n", "\n" + b + "\r\n\r\n" + a} {
		expect.NoDiff(t, cmp.Diff([]string{b, a}, secrets(t, write(t, text))), "keys of %d bytes", len(text))
	}
}

func TestFaultyFilesAreRefused(t *testing.T) {
	a := secretOf(t, translog.ForLog, origin, 'a')
	var many strings.Builder
	for i := range byte(MaxKeys + 1) {
		many.WriteString(secretOf(t, translog.ForLog, origin, i) + "\n")
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "none"},
		{"empty lines", "\n\n", "none"},
		{"a damaged key", a + "\n" + strings.Replace(a, "+AWFh", "+AWFi", 1) + "\n", "line 2: "},
		{"a public key", "registry.example/log+952bc5e7+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4\n", "line 1: "},
		{"two keys on a line", a + " " + a + "\n", "line 1: "},
		{"the key of a witness", secretOf(t, translog.ForWitness, origin, 'a') + "\n", "line 1: "},
		{"a key twice", "\n" + a + "\n" + a + "\n", "line 3: malformed key: the key stands on line 2 too"},
		{"two names", a + "\n" + secretOf(t, translog.ForLog, "other.example/log", 'b') + "\n", "line 2: "},
		{"too many keys", many.String(), "line 17: malformed key: more than 16 keys"},
		{"too long", a + strings.Repeat("\n", maxFile), "more than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, c.text)
			keys, err := Read(file)
			if !errors.Is(err, translog.ErrKey) || keys != nil {
				t.Fatalf("got %d keys, %v, want none and %v", len(keys), err, translog.ErrKey)
			}
			text := err.Error()
			if !strings.Contains(text, file+": ") || !strings.Contains(text, c.want) || strings.Contains(text, "YWFh") {
				t.Errorf("got %q, want the file, %q and no secret", text, c.want)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v without the file, want %v", err, fs.ErrNotExist)
	}
}

func TestANewFileHasOneKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.key")
	expect.OK(t, Create(file, origin))
	keys, err := Read(file)
	if err != nil || len(keys) != 1 || keys[0].Public().Name() != origin || keys[0].Public().Use() != translog.ForLog {
		t.Errorf("got %d keys, %v, want one of the log", len(keys), err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
	}
	alone(t, file)
}

func TestCreateLeavesAnExistingFile(t *testing.T) {
	for _, text := range []string{"", "text\n"} {
		file := write(t, text)
		expect.Err(t, Create(file, origin), fs.ErrExist, "")
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
		alone(t, file)
	}
}

func TestOriginsThatAreNoNamesAreRefused(t *testing.T) {
	for _, wrong := range []string{"", "a b", "a+b", "a\nb", "https://registry.example/log", "registry.example/log/"} {
		file := filepath.Join(t.TempDir(), "log.key")
		if err := Create(file, wrong); err == nil {
			t.Errorf("got no error for the origin %q, want one", wrong)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v for the origin %q, want no file", err, wrong)
		}
	}
}

func TestANewKeyIsPutInFrontAndOldOnesAreRetired(t *testing.T) {
	a := secretOf(t, translog.ForLog, origin, 'a')
	file := write(t, a+"\n")
	expect.OK(t, os.Chmod(file, 0o640))
	for n := 2; n <= 3; n++ {
		before := secrets(t, file)
		expect.OK(t, Rotate(file))
		got := secrets(t, file)
		if diff := cmp.Diff(before, got[1:]); diff != "" || len(got) != n {
			t.Errorf("got %d keys, want %d; the older ones (-want +got):\n%s", len(got), n, diff)
		}
	}
	newest := secrets(t, file)[:1]
	for range 2 {
		expect.OK(t, Retire(file))
		expect.NoDiff(t, cmp.Diff(newest, secrets(t, file)), "keys that stay")
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("got %v, %v, want mode 0640", info.Mode(), err)
	}
	alone(t, file)
}

func TestAFileThatIsNotOfKeysIsNotChanged(t *testing.T) {
	for name, change := range map[string]func(string) error{"rotate": Rotate, "retire": Retire} {
		file := write(t, "text\n")
		if err := change(file); !errors.Is(err, translog.ErrKey) {
			t.Errorf("got %v of %s, want %v", err, name, translog.ErrKey)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "text\n" {
			t.Errorf("got %q, %v after %s, want the text", got, err, name)
		}
	}
}

func TestAFullFileTakesNoMoreKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.key")
	expect.OK(t, Create(file, origin))
	for range MaxKeys - 1 {
		expect.OK(t, Rotate(file))
	}
	before := secrets(t, file)
	expect.Fails(t, Rotate(file), "")
	expect.NoDiff(t, cmp.Diff(before, secrets(t, file)), "keys")
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(secretOf(f, translog.ForLog, origin, 'a') + "\n" + secretOf(f, translog.ForLog, origin, 'b')))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parse(text)
		if err != nil {
			return
		}
		again, err := parse(format(keys))
		if err != nil || string(format(again)) != string(format(keys)) {
			t.Errorf("got %d keys, %v, want the same %d", len(again), err, len(keys))
		}
	})
}

// TestAMadeKeyNamesANewLog checks that a missing file gets a key with a new origin, and that later readings keep this
// key.
func TestAMadeKeyNamesANewLog(t *testing.T) {
	form := regexp.MustCompile(`^registry\.example/x/log/[0-9a-f]{8}$`)
	names := map[string]bool{}
	for range 3 {
		file := filepath.Join(t.TempDir(), "log.key")
		made, err := ReadOrCreate(file, "https://registry.example/x/")
		expect.FatalIf(t, err != nil || len(made) != 1, "got %d keys, %v; want one", len(made), err)
		name := made[0].Public().Name()
		if !form.MatchString(name) || names[name] {
			t.Errorf("got the origin %q, want another one like registry.example/x/log/1a2b3c4d", name)
		}
		names[name] = true
		again, err := ReadOrCreate(file, "https://other.example")
		if err != nil || len(again) != 1 || again[0].Secret() != made[0].Secret() {
			t.Errorf("got another key or %v, want the one in the file", err)
		}
	}
}
