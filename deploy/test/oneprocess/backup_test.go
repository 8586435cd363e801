package oneprocess

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// TestBackupsAreChecked makes a backup of a running registry, in a directory where a killed backup has left files.
// It then stops the registry and replaces its secret. The next backup must be refused, because nobody could use it.
func TestBackupsAreChecked(t *testing.T) {
	data, into, addr, metrics := filepath.Join(t.TempDir(), "data"), t.TempDir(), freeAddr(t), freeAddr(t)
	output := &processes.Output{}
	p := start(t, addr, output, registry("registry"), "serve", "--data", data, "--addr", addr, "--metrics-addr", metrics)
	expect.OK(t, output.Await(t.Context(), "answers at"))
	finished := func() string {
		t.Helper()
		return secured{metrics: metrics}.told(t, "registry_backup_finished_timestamp_seconds")
	}
	expect.Equal(t, finished(), "0", "before a backup, the end")
	if got := problems(t, data); !slices.Contains(got, "BackupTooOld") {
		t.Errorf("before a backup: got the problems %q, want BackupTooOld", got)
	}
	expect.OK(t, os.MkdirAll(filepath.Join(into, "unchecked.new1", "x"), 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(into, "unchecked.tar"), nil, 0o600))
	said := must(t, registry("registry"), "backup", "--data", data, "--into", into)
	if !strings.Contains(said, "assets.db: ok") || !strings.Contains(said, "kept: 1, removed: 0") {
		t.Errorf("got %q, want it to say what was checked and kept", said)
	}
	good := backups(t, into)
	if len(good) != 1 || !strings.HasSuffix(good[0], "Z.tar") {
		t.Fatalf("got %q, want one backup and nothing besides", good)
	}
	if got := finished(); got == "0" || got == "" {
		t.Errorf("after a backup: got the end %q, want a time", got)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	must(t, registry("registry"), "restore", "--from", good[0], "--data", restored)
	must(t, registry("registry"), "check", "--data", restored)
	if got := problems(t, data); slices.Contains(got, "BackupTooOld") {
		t.Errorf("after a backup: got the problems %q, want none of backups", got)
	}
	stop(t, p, output)
	if said, code := run(t, registry("registry"), "status", "--data", data); code != 2 || !strings.Contains(said, "no registry runs") {
		t.Errorf("status of a stopped registry: got exit code %d and %q, want 2 and the reason", code, said)
	}

	secret := strings.Repeat("5", 64) + "\n"
	expect.OK(t, os.WriteFile(filepath.Join(data, "secret"), []byte(secret), 0o600))
	said, code := run(t, registry("registry"), "backup", "--data", data, "--into", into)
	if code != 1 || !strings.Contains(said, "secret") {
		t.Errorf("a backup with a foreign secret: got exit code %d, want 1 and the fault; it printed %s", code, said)
	}
	if got := backups(t, into); len(got) != 2 || got[0] != good[0] || filepath.Base(got[1]) != "unchecked.tar" {
		t.Errorf("a backup with a foreign secret: got the files %q, want the good one and unchecked.tar", got)
	}
	var last struct {
		File, Fault string
		Checked     bool
	}
	text, err := os.ReadFile(filepath.Join(data, "backup.json"))
	if err != nil || json.Unmarshal(text, &last) != nil || last.File != good[0] || last.Fault == "" || !last.Checked {
		t.Errorf("got the note %s, %v; want the good backup and the fault", text, err)
	}
}

// problems returns the alerts in the status of a running registry. Some may be due to the test machine.
func problems(t *testing.T, data string) (alerts []string) {
	t.Helper()
	said, code := run(t, registry("registry"), "status", "--data", data, "-o", "json")
	text, _, _ := strings.Cut(said, "\n}\n")
	var told struct {
		Problems []struct{ Alert string }
		Facts    []struct{ Name, Says string }
	}
	if err := json.Unmarshal([]byte(text+"}"), &told); err != nil {
		t.Fatalf("status: %v in %s", err, said)
	}
	if (code == 1) != (len(told.Problems) > 0) || code > 1 {
		t.Errorf("status: got exit code %d with %d problems", code, len(told.Problems))
	}
	ready := slices.DeleteFunc(told.Facts, func(f struct{ Name, Says string }) bool { return !strings.Contains(f.Says, "svc ready") })
	expect.Equal(t, len(ready), 3, "status, services beside the gateway that are ready")
	for _, p := range told.Problems {
		alerts = append(alerts, p.Alert)
	}
	return alerts
}

// backups returns the files in a directory of backups, without the lock file.
func backups(t *testing.T, into string) (files []string) {
	t.Helper()
	files = expect.Get(filepath.Glob(filepath.Join(into, "[^l]*")))(t)
	return files
}
