package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// pathsOfCommands lists every command that takes two files or directories, with what it does to them. The commands
// of registryctl are in a table of their own, filesOfCommands.
var pathsOfCommands = map[string]string{
	"Serve":   "Data CodeLists KeysFile LogKeyFile LogPolicy Synonyms: writes below Data alone",
	"Mirror":  "Data LogPolicy: writes below Data alone",
	"Backup":  "Data Into To: Data must be a registry's, To must not exist, Into must be another directory",
	"Restore": "Data Former From: Data must not exist, or be empty",
}

// TestPathsOfCommandsAreListed looks for flags with files and directories in each command.
func TestPathsOfCommandsAreListed(t *testing.T) {
	got := map[string]string{}
	for command := range reflect.TypeFor[commands]().Fields() {
		var names []string
		for _, flag := range reflect.VisibleFields(command.Type) {
			holder := flag.Tag.Get("placeholder")
			if flag.Name == "Data" {
				names = append([]string{flag.Name}, names...)
			} else if holder == "FILE" || holder == "DIR" || flag.Name == "KeysFile" {
				names = append(names, flag.Name)
			}
		}
		if len(names) > 1 {
			first, others := names[0], names[1:]
			listed, _, _ := strings.Cut(pathsOfCommands[command.Name], ":")
			for _, name := range others {
				expect.ErrorIf(t, !strings.Contains(" "+listed+" ", " "+name+" "),
					"%s: got the path %s, want it in the table", command.Name, name)
			}
			expect.ErrorIf(t, !strings.HasPrefix(listed, first) || len(strings.Fields(listed)) != len(names),
				"%s: got the paths %q, want %q", command.Name, names, listed)
			got[command.Name] = pathsOfCommands[command.Name]
		}
	}
	expect.NoDiff(t, cmp.Diff(pathsOfCommands, got), "the commands with two paths")
}

// TestNoCommandWritesOverAnotherFile names one file or directory for two uses. The command must be refused, and
// everything must stay as it was.
func TestNoCommandWritesOverAnotherFile(t *testing.T) {
	dir := t.TempDir()
	data, secret, link := filepath.Join(dir, "data"), filepath.Join(dir, "data", "secret"), filepath.Join(dir, "link")
	expect.OK(t, errors.Join(os.Mkdir(data, 0o700), os.WriteFile(secret, []byte("held"), 0o600), os.Symlink(data,
		link)))
	for _, c := range []struct{ args, says string }{
		{"backup --data DATA --to DATA/backup.tar", "is in the data directory"},
		{"backup --data DATA --to LINK/backup.tar", "is in the data directory"},
		{"backup --data DATA --into DATA", "is in the data directory"},
		{"backup --data DATA --into LINK", "is in the data directory"},
		{"backup --data DATA --into LINK/new/folder", "is in the data directory"},
		{"restore --from SECRET --data DATA", "is not empty"},
		{"restore --from SECRET --data LINK", "is not empty"},
		{"restore --from SECRET --data SECRET", "it is no backup"},
		{"restore --from SECRET --data DATA --former DATA", "is not empty"},
	} {
		args := strings.Fields(strings.NewReplacer("DATA", data, "SECRET", secret, "LINK", link).Replace(c.args))
		expect.Says(t, run(t.Context(), args), c.says, "%s", c.args)
		entries, err := os.ReadDir(data)
		if text, failed := os.ReadFile(secret); err != nil || failed != nil || len(entries) != 1 || string(text) != "held" {
			t.Errorf("%s: got the secret %q, %v among %d files, %v; want it alone", c.args, text, failed, len(entries), err)
		}
	}
}
