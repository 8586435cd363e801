package oneprocess

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"asset-registry/deploy/test/rig/mirrors"
	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/testing/expect"
)

// TestAnOpenUmaskOpensNothing runs the programs under umask 000, and looks at the mode of everything that they make
// while they run: data, index, snapshots, sockets, locks, keys, backups, copies, reports and tokens.
func TestAnOpenUmaskOpensNothing(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	here, addr, following := t.TempDir(), freeAddr(t), freeAddr(t)
	at := func(name string) string { return filepath.Join(here, name) }
	output := &processes.Output{}
	p := ready(t, addr, output, at("data"), "--search")
	publish(t, addr)
	must(t, registry("registry"), "admin-key", "--data", at("data"), "--name", "Olha")
	must(t, registry("registry"), "snapshot", "--data", at("data"))
	m, err := mirrors.Start(t.Context(), *bin, following, "http://"+addr, at("mirror"), &processes.Output{})
	expect.OK(t, err)
	t.Cleanup(func() { m.Kill() })
	must(t, registry("registry"), "backup", "--data", at("data"), "--into", at("backups"))
	must(t, registry("registry"), "backup", "--data", at("data"), "--to", at("backup.tar"))
	must(t, registry("registry"), "restore", "--from", at("backup.tar"), "--data", at("restored"))
	must(t, registry("assetsvc"), "log-key", at("log.key"))
	ctl := func(args ...string) {
		t.Helper()
		must(t, registry("registryctl"), append([]string{"--url", "http://" + addr}, args...)...)
	}
	row := `{"reference":"1","documents":[{"documentType":"notice","file":"rows"}],` + strings.TrimPrefix(newAsset, "{") + "\n"
	expect.OK(t, os.WriteFile(at("rows"), []byte(row), 0o600))
	ctl("sync", at("copy"), "--once")
	ctl("--key", "broker", "assets", "import", at("rows"), "--folder", here, "--access", at("access"), "--report", at("report"))
	made := 0
	err = filepath.WalkDir(here, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == here {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		made++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: got the mode %v, want none of 0077", strings.TrimPrefix(path, here), info.Mode())
		}
		return nil
	})
	if err != nil || made < 30 {
		t.Errorf("got %d files and directories, %v; want all that the programs make", made, err)
	}
	stop(t, p, output)
}

// TestADirectoryThatOthersMayUse starts registries on directories that exist. If others may only enter, a warning is in
// the log, in the status and in the answer of check-config; if they may write, the start is refused.
func TestADirectoryThatOthersMayUse(t *testing.T) {
	data, addr := filepath.Join(t.TempDir(), "data"), freeAddr(t)
	expect.OK(t, os.Mkdir(data, 0o700))
	chmod := func(mode os.FileMode) {
		t.Helper()
		expect.OK(t, os.Chmod(data, mode))
	}
	const may = "other users of this machine may "
	chmod(0o777)
	for command, want := range map[string]int{"serve": 78, "check-config": 2} {
		said, code := run(t, registry("registry"), command, "--data", data, "--addr", addr)
		if code != want || !strings.Contains(said, may+"write") || !strings.Contains(said, "chmod 700 "+data) {
			t.Errorf("mode 0777: %s: got exit code %d and %q, want %d and the command that helps", command, code, said, want)
		}
	}
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("mode 0777: got %v, %v; want an empty directory", left, err)
	}
	chmod(0o755)
	output := &processes.Output{}
	ready(t, addr, output, data)
	if !strings.Contains(output.String(), may+"enter") {
		t.Errorf("mode 0755: got the log %s, want a warning", output)
	}
	if said, _ := run(t, registry("registry"), "status", "--data", data); !strings.Contains(said, may+"enter") {
		t.Errorf("mode 0755: got the status %s, want a warning", said)
	}
	if said, code := run(t, registry("registry"), "check-config", "--data", data); code != 0 || !strings.Contains(said, may+"enter") {
		t.Errorf("mode 0755: check-config: got exit code %d and %q, want 0 and a warning", code, said)
	}
}
