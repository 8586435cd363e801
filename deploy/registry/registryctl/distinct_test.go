package registryctl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// filesOfCommands lists every command that takes two files or more, with the files that it reads and writes. Each one
// may also read the config file, in --config.
var filesOfCommands = map[string]string{
	"assets accept":    "--config, writes --access",
	"assets create":    "--config, --file, writes --access",
	"assets follow":    "--config, writes --state",
	"assets import":    "--config, --mapping, writes --access, writes --report, --withdraw, writes FILE",
	"assets patch":     "--config, --access, --file",
	"assets publish":   "--config, --access",
	"assets recover":   "--config, writes --access",
	"assets revisions": "--config, --access",
	"assets transfer":  "--config, --access",
	"audit verify":     "--config, writes --remember",
	"files get":        "--config, writes --to",
	"files upload":     "--config, --access, PATH",
	"log key new":      "--config, writes FILE",
	"log key retire":   "--config, writes FILE",
	"log key rotate":   "--config, writes FILE",
	"log key show":     "--config, writes FILE",
	"sync run":         "--config, --policy",
	"verify":           "--config, --policy, writes --remember, FILE",
}

// TestFilesOfACommandAreCompared runs every command with two files, once for each pair of which it writes one: both
// names lead to one file, by the same name, another path, a hard link or a symbolic link. The command must be refused
// before it writes.
func TestFilesOfACommandAreCompared(t *testing.T) {
	var c commands
	parser := expect.Get(newParser(&c, os.Stdout))(t)
	listed := map[string]string{}
	for _, command := range parser.Model.Leaves(true) {
		var values []*kong.Value
		for _, flags := range command.AllFlags(true) {
			for _, flag := range flags {
				values = append(values, flag.Value)
			}
		}
		values = append(values, command.Positional...)
		var names []string
		var files []*kong.Value
		for _, v := range values {
			if strings.Contains(v.Tag.PlaceHolder, "FILE") && v.Flag != nil && !isFile(v.Tag) {
				t.Errorf("%s: %s has neither the tag in nor out", command.FullPath(), nameOf(v))
			}
			if isFile(v.Tag) {
				files = append(files, v)
				name := nameOf(v)
				if v.Tag.Has("out") {
					name = "writes " + name
				}
				names = append(names, name)
			}
		}
		if len(files) < 2 {
			continue
		}
		path := strings.TrimPrefix(command.FullPath(), "registryctl ")
		listed[path] = strings.Join(names, ", ")
		for i, a := range files {
			for _, b := range files[:i] {
				if a.Tag.Has("out") || b.Tag.Has("out") {
					refusesOneFile(t, path, values, b, a)
				}
			}
		}
	}
	expect.NoDiff(t, cmp.Diff(filesOfCommands, listed), "the commands with two files")
}

// refusesOneFile runs a command with two names of one file, and fills its other required values.
func refusesOneFile(t *testing.T, path string, values []*kong.Value, a, b *kong.Value) {
	t.Helper()
	const held = "{}"
	dir := files(t, map[string]string{"one": held, "given": held})
	at := func(name string) string { return filepath.Join(dir, name) }
	expect.OK(t, errors.Join(os.Link(at("one"), at("hard")), os.Symlink("one", at("soft")), os.Symlink("none", at("dangling")),
		os.Symlink(dir, at("folder"))))
	for _, pair := range [][2]string{
		{at("one"), at("one")}, {at("one"), dir + "/./one"}, {at("one"), at("hard")}, {at("soft"), at("one")},
		{at("one"), at("folder/one")}, {at("none"), at("none")}, {at("none"), at("folder/none")}, {at("dangling"), at("none")},
	} {
		if _, err := os.Stat(pair[0]); err != nil && !(a.Tag.Has("out") && b.Tag.Has("out")) {
			continue // an input must exist
		}
		args := strings.Fields(path)
		for _, v := range values {
			text := at("given")
			switch {
			case v == a:
				text = pair[0]
			case v == b:
				text = pair[1]
			case !v.Required:
				continue
			case v.Tag.Has("out"):
				text = at("new")
			}
			if v.Flag != nil {
				args = append(args, "--"+v.Name)
			}
			args = append(args, text)
		}
		_, err := run(t, args...)
		want := fmt.Sprintf("%s and %s are the same file", nameOf(a), nameOf(b))
		expect.ErrorIf(t, err == nil || !strings.Contains(err.Error(), want) || ExitCode(err) != exitUsage,
			"%q: got %v, want an error with %q", args, err, want)
		if text, err := os.ReadFile(at("one")); err != nil || string(text) != held {
			t.Errorf("%q: got the file %q, %v; want it as it was", args, text, err)
		}
		expect.FailsOf(t, "%q", args)(os.Stat(at("none")))
	}
}

// TestFilesThatNoFlagNames has commands whose files have names that other values imply.
func TestFilesThatNoFlagNames(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	own := defaultConfig()
	expect.OK(t, os.MkdirAll(filepath.Dir(own), 0o700))
	dir := files(t, map[string]string{"rows": "{}\n"})
	at := func(name string) string { return filepath.Join(dir, name) }
	expect.OK(t, os.WriteFile(own, []byte("key: k\n"), 0o600))
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"the file of tokens beside the rows", []string{"assets", "import", at("rows"), "--report", at("rows.access")}, "--access and --report"},
		{"the config file", []string{"assets", "follow", "--state", own}, "your config file and --state"},
	} {
		err := Run(t.Context(), c.args, strings.NewReader(""), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "the same file") {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.says)
		}
	}
}
