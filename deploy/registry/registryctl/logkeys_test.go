package registryctl

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/logkey"
	"asset-registry/shared/testing/expect"
)

func TestKeysOfALogAreMadeRotatedAndRetired(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.key")
	var printed [][]string
	for _, command := range [][]string{
		{"new", file, "--origin", "registry.example/log"}, {"show", file},
		{"rotate", file}, {"show", file}, {"retire", file},
	} {
		got, err := run(t, append([]string{"log", "key"}, command...)...)
		if err != nil || strings.Contains(got, "PRIVATE") {
			t.Fatalf("%s: got %q, %v, want public keys", command[0], got, err)
		}
		printed = append(printed, strings.Fields(got))
	}
	first, both := printed[0], printed[2]
	expect.FatalIf(t, len(first) != 1 || len(both) != 2, "got %q, want one key, then two", printed)
	want := [][]string{first, first, {both[0], first[0]}, both, both[:1]}
	expect.NoDiff(t, cmp.Diff(want, printed), "the public keys differ")
	keys, err := logkey.Read(file)
	expect.ErrorIf(t, err != nil || len(keys) != 1 || keys[0].Public().String() != both[0],
		"got %d keys, %v, want the newest", len(keys), err)
}

func TestKeysOfALogArePrintedAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log.key")
	text := expect.Get(run(t, "-o", "json", "log", "key", "new", file, "--origin", "registry.example/log"))(t)
	keys := expect.Get(logkey.Read(file))(t)
	var got map[string]any
	expect.OK(t, json.Unmarshal([]byte(text), &got))
	want := map[string]any{"origin": "registry.example/log", "keys": []any{keys[0].Public().String()}}
	expect.NoDiff(t, cmp.Diff(want, got), "the answer differs")
}

func TestANewLogHasAnOriginOfItsOwn(t *testing.T) {
	names := map[string]bool{}
	for range 2 {
		file := filepath.Join(t.TempDir(), "log.key")
		got, err := run(t, "--url", "https://registry.example/", "log", "key", "new", file)
		name, _, _ := strings.Cut(got, "+")
		expect.ErrorIf(t, err != nil || !strings.HasPrefix(name, "registry.example/log/") || names[name],
			"got %q, %v, want the key of a new log", got, err)
		names[name] = true
	}
}

func TestCommandsAboutKeysOfALogRefuse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	expect.OK(t, os.WriteFile(file, []byte("hidden words\n"), 0o600))
	absent := filepath.Join(dir, "absent")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"an existing file", []string{"new", file, "--origin", "a.example/log"}, "create " + file + ": file already exists"},
		{"an origin with a scheme", []string{"new", absent, "--origin", "https://a.example/log"}, "without https://"},
		{"no origin and no address", []string{"new", absent}, "--url, or the log with --origin"},
		{"no file", []string{"show"}, "log key show takes 1 argument: FILE"},
		{"a file that is absent", []string{"show", absent}, "no such file"},
		{"a file of something else", []string{"rotate", file}, file + ": line 1: malformed key"},
		{"to retire keys of something else", []string{"retire", file}, file + ": line 1: malformed key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := run(t, append([]string{"log", "key"}, c.args...)...)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "hidden words\n" {
		t.Errorf("got %q, %v, want the file as it was", text, err)
	}
}
