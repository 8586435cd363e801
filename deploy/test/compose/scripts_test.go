package compose

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"asset-registry/shared/testing/expect"
)

// parts are the files of a complete backup.
var parts = []string{"secrets.tar", "tokens.rdb", "assets.gz", "files.tar"}

func TestABackupIsCompleteAndPrivate(t *testing.T) {
	s := newStandIn(t)
	s.redis(t, "set", "token", "1")
	before := time.Now().Unix()
	to := filepath.Join(s.dir, "backups", "b")
	s.must(t, "backup.sh", to)
	s.checkBackup(t, to)
	if got, err := strconv.ParseInt(s.redis(t, "get", "registry:backup"), 10, 64); err != nil || got < before {
		t.Errorf("got the backup time %d, %v, want %d or later", got, err, before)
	}

	t.Run("a repeat replaces it", func(t *testing.T) {
		s.write(t, "mongo/registry", "newer assets", 0o600)
		s.must(t, "backup.sh", to)
		s.checkBackup(t, to)
		s.remove(t, "mongo/registry")
		s.must(t, "restore-assets.sh", filepath.Join(to, "assets.gz"))
		expect.Equal(t, s.read(t, "mongo/registry"), "newer assets", "from the backup")
	})
	t.Run("one part alone", func(t *testing.T) {
		one := filepath.Join(s.dir, "backups", "one")
		s.redis(t, "del", "registry:backup")
		s.must(t, "backup.sh", one, "tokens")
		if files, err := os.ReadDir(one); err != nil || len(files) != 1 || files[0].Name() != "tokens.rdb" {
			t.Errorf("got %v, %v, want tokens.rdb", files, err)
		}
		if got := s.redis(t, "exists", "registry:backup"); got != "0" {
			t.Error("got a backup time after a backup of one part, want none")
		}
		s.mustFail(t, "there is no part keys", "backup.sh", one, "keys")
	})
}

// checkBackup checks that a directory has a complete backup that only its owner can read. It also checks that the
// scripts have left no other files.
func (s *standIn) checkBackup(t *testing.T, dir string) {
	t.Helper()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("got the backup %v, %v, want a directory of mode 0700", info, err)
	}
	for _, name := range parts {
		info := expect.Get(os.Stat(filepath.Join(dir, name)))(t)
		if got := info.Mode().Perm(); got != 0o600 || info.Size() == 0 {
			t.Errorf("%s: got mode %v and %d bytes, want 0600 and some", name, got, info.Size())
		}
	}
	s.checkNothingLeft(t)
}

// checkNothingLeft checks that the scripts have removed their temporary files.
func (s *standIn) checkNothingLeft(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		for _, left := range []string{".unfinished", "backup.rdb", "dump.yaml", "restore.yaml", "restore.js",
			"restoring", "replaced", "complete", "mark", "log.key.before"} {
			if strings.HasSuffix(path, left) {
				t.Errorf("got the temporary file %s, want it removed", path)
			}
		}
		return err
	})
	expect.Try(t, err)
}

func TestAFailedBackupKeepsTheLastOne(t *testing.T) {
	s := newStandIn(t)
	to := filepath.Join(s.dir, "b")
	s.must(t, "backup.sh", to)
	before := map[string]string{}
	for _, name := range parts {
		before[name] = s.read(t, "b/"+name)
	}
	s.redis(t, "set", "registry:backup", "then")
	s.redis(t, "set", "token", "changed")
	s.write(t, "mongo/registry", "changed", 0o600)
	s.write(t, "fail", "", 0o600)

	s.mustFail(t, "", "backup.sh", to)
	for _, name := range parts {
		if s.read(t, "b/"+name) != before[name] {
			t.Errorf("%s: got another file after a failed backup, want the old one", name)
		}
	}
	if got := s.redis(t, "get", "registry:backup"); got != "then" {
		t.Errorf("got the backup time %s, want the old backup's time", got)
	}
	s.mustFail(t, "", "backup.sh", filepath.Join(s.dir, "other"))
	if _, err := os.Stat(filepath.Join(s.dir, "other")); !os.IsNotExist(err) {
		t.Errorf("got a directory of a failed backup, want none: %v", err)
	}
	s.checkNothingLeft(t)
	s.remove(t, "fail")
	s.must(t, "backup.sh", filepath.Join(s.dir, "other"))
}

func TestRestoreTokensReplacesAllOrNothing(t *testing.T) {
	s := newStandIn(t)
	s.redis(t, "set", "token", "old")
	to := filepath.Join(s.dir, "b")
	s.must(t, "backup.sh", to, "tokens")
	s.redis(t, "set", "token", "new")
	for _, c := range []struct {
		name, text string
	}{{"broken", "REDIS0011 and no more"}, {"empty", ""}, {"cut", s.read(t, "b/tokens.rdb")[:60]}} {
		s.write(t, c.name, c.text, 0o600)
		s.mustFail(t, "", "restore-tokens.sh", filepath.Join(s.dir, c.name))
		if got := s.redis(t, "get", "token"); got != "new" {
			t.Errorf("after a file that is %s: got the token %q, want the old one", c.name, got)
		}
		s.checkNothingLeft(t)
	}
	if strings.Contains(s.read(t, "calls"), "stop") {
		t.Error("got a stop of Redis for a bad file, want none")
	}
	for range 2 {
		s.must(t, "restore-tokens.sh", filepath.Join(to, "tokens.rdb"))
		if got := s.redis(t, "get", "token"); got != "old" {
			t.Errorf("got the token %q, want the backup's token", got)
		}
		s.checkNothingLeft(t)
	}
	s.compose(t, "stop") // the restored data must be on the disk, so that it survives a restart
	s.compose(t, "up")
	if got := s.redis(t, "get", "token"); got != "old" {
		t.Errorf("got the token %q after a restart, want the backup's token", got)
	}
}

func TestRestoreAssetsRestoresAllOrNothing(t *testing.T) {
	s := newStandIn(t)
	to := filepath.Join(s.dir, "b")
	s.must(t, "backup.sh", to)
	file := filepath.Join(to, "assets.gz")
	s.mustFail(t, "MongoDB has assets", "restore-assets.sh", file)
	if got := s.read(t, "its secrets/assetsvc/log.key"); got != "log key" {
		t.Errorf("got the log's key %q after a refused restore, want the old one", got)
	}
	expect.Equal(t, s.read(t, "mongo/registry"), "assets", "in MongoDB")
	s.remove(t, "mongo/registry")
	s.write(t, "down", "", 0o600)
	s.mustFail(t, "nothing was changed", "restore-assets.sh", file)
	if got := s.read(t, "its secrets/assetsvc/log.key"); got != "log key" {
		t.Errorf("got the log's key %q while MongoDB is down, want the old one", got)
	}
	s.remove(t, "down")
	s.write(t, "broken", s.read(t, "b/assets.gz")[:10], 0o600)
	s.write(t, "empty", "", 0o600)
	for _, name := range []string{"broken", "empty"} {
		s.mustFail(t, "nothing was changed", "restore-assets.sh", filepath.Join(s.dir, name))
	}
	s.write(t, "fail", "", 0o600)
	s.mustFail(t, "nothing was restored", "restore-assets.sh", file)
	expect.Equal(t, s.read(t, "mongo/registry"), "", "after a failed restore")
	if got := s.read(t, "its secrets/assetsvc/log.key"); got != "log key" {
		t.Errorf("got the log's key %q after a failed restore, want the old one", got)
	}
	s.checkNothingLeft(t)
	s.remove(t, "fail")

	s.write(t, "die", "", 0o600)
	s.mustFail(t, "", "restore-assets.sh", file)
	expect.Equal(t, s.read(t, "mongo/registry"), "half\n", "after a killed restore")
	s.remove(t, "die")
	s.must(t, "restore-assets.sh", file)
	expect.Equal(t, s.read(t, "mongo/registry"), "assets", "after the repeat")
	if _, err := os.Stat(filepath.Join(s.secrets, "assetsvc/log.key")); !os.IsNotExist(err) {
		t.Errorf("got the log's key beside restored assets, want none: %v", err)
	}
	s.checkNothingLeft(t)
}

func TestRestoreSecretsNeverReplacesSecrets(t *testing.T) {
	s := newStandIn(t)
	s.must(t, "backup.sh", filepath.Join(s.dir, "b"), "secrets")
	file := filepath.Join(s.dir, "b", "secrets.tar")
	s.mustFail(t, "is not empty", "restore-secrets.sh", file)
	s.remove(t, "its secrets")
	s.write(t, "broken", s.read(t, "b/secrets.tar")[:700], 0o600)
	s.mustFail(t, "", "restore-secrets.sh", filepath.Join(s.dir, "broken"))
	if _, err := os.Stat(s.secrets); !os.IsNotExist(err) {
		t.Errorf("got secrets from a broken file, want none: %v", err)
	}
	s.checkNothingLeft(t)
	s.must(t, "restore-secrets.sh", file)
	expect.Equal(t, s.read(t, "its secrets/shared/registry"), "registry", "the secret")
	if _, err := os.Stat(filepath.Join(s.secrets, "assetsvc/log.key")); !os.IsNotExist(err) {
		t.Errorf("got the log's key from a backup, want none: %v", err)
	}
	if info, err := os.Stat(s.secrets); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got the secrets %v, %v, want a directory of mode 0700", info, err)
	}
	s.checkNothingLeft(t)
}

func TestRestoreFilesRestoresAllOrNothing(t *testing.T) {
	s := newStandIn(t)
	to := filepath.Join(s.dir, "b")
	s.must(t, "backup.sh", to)
	file := filepath.Join(to, "files.tar")
	s.mustFail(t, "the volume has files", "restore-files.sh", file)
	if got := s.read(t, "files/0a/0a-1"); got != "bytes" {
		t.Errorf("got the file %q after a refused restore, want the old bytes", got)
	}
	s.remove(t, "files")
	for _, name := range []string{"files/0a", "files/new", "files/removed"} { // the directories that filesvc creates
		expect.OK(t, os.MkdirAll(filepath.Join(s.dir, name), 0o755))
	}
	whole := s.read(t, "b/files.tar")
	for name, text := range map[string]string{"empty": "", "cut": whole[:700], "other": s.read(t, "b/secrets.tar")} {
		s.write(t, name, text, 0o600)
		s.mustFail(t, "nothing was changed", "restore-files.sh", filepath.Join(s.dir, name))
	}
	s.checkNothingLeft(t)
	s.write(t, "files/restoring/complete", "the sum of another archive\n", 0o644)
	s.mustFail(t, "a restore of another archive was stopped halfway", "restore-files.sh", file)
	s.remove(t, "files/restoring")
	for _, hostile := range []*tar.Header{
		{Name: "../escaped", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "0a/../../escaped", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "/escaped", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "0a/link", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
		{Name: "0a/hard", Typeflag: tar.TypeLink, Linkname: "removed"},
		{Name: "0a/device", Typeflag: tar.TypeChar},
	} {
		s.write(t, "hostile.tar", archive(t, &tar.Header{Name: "removed/", Typeflag: tar.TypeDir, Mode: 0o755}, hostile), 0o600)
		s.mustFail(t, "nothing was changed", "restore-files.sh", filepath.Join(s.dir, "hostile.tar"))
	}
	s.checkNothingLeft(t)
	s.must(t, "restore-files.sh", file)
	for name, want := range map[string]string{"0a/0a-1": "bytes", "removed/0b": "a note", "new/0c": ""} {
		expect.Equal(t, s.read(t, "files/"+name), want, "%s, after a restore", name)
	}
	s.checkNothingLeft(t)
}

// archive returns a tar archive whose members are empty.
func archive(t *testing.T, members ...*tar.Header) string {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		expect.OK(t, w.WriteHeader(m))
	}
	expect.OK(t, w.Close())
	return out.String()
}

// TestABackupLeavesOutFilesThatGo removes a file while tar reads the directory; the backup must succeed without it.
// If a file cannot be read, the backup must fail.
func TestABackupLeavesOutFilesThatGo(t *testing.T) {
	for _, c := range []struct {
		name, says string
		fails      bool
	}{
		{"a file of Alpine's tar is gone", "tar: can't open '0a/0a-2': No such file or directory", false},
		{"a file of Debian's tar is gone", "tar: 0a/0a-2: File removed before we read it", false},
		{"a file cannot be read", "tar: can't open '0a/0a-2': I/O error", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStandIn(t)
			s.write(t, "bin/tar", "#!/bin/bash\nPATH=${PATH#*:*:} tar \"$@\"\n"+
				"[[ $* != *removed* ]] || { echo \""+c.says+"\" >&2; exit 1; }\n", 0o755)
			if c.fails {
				s.mustFail(t, "I/O error", "backup.sh", filepath.Join(s.dir, "b"), "files")
				return
			}
			s.must(t, "backup.sh", filepath.Join(s.dir, "b"), "files")
		})
	}
}
