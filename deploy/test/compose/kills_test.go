package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// killer replaces a command such as mv. It counts the commands that a script runs. Before the command whose number
// is in the file kill-at, it kills the script and everything that the script has started.
const killer = `#!/bin/bash
step=$(($(cat "$DIR/steps" 2>/dev/null || echo 0) + 1))
echo $step >"$DIR/steps"
[ "$step" != "$(cat "$DIR/kill-at")" ] || kill -9 0
PATH=${PATH//"$DIR/killers:"/} exec "${0##*/}" "$@"
`

// killBefore prepares the kill of the next script. The argument `step` is the number of a command of the script, from
// 1. The script is killed before this command. If step is 0, the script is not killed.
func (s *standIn) killBefore(t *testing.T, step int) {
	t.Helper()
	s.remove(t, "steps")
	s.write(t, "kill-at", strconv.Itoa(step), 0o600)
	for _, name := range []string{"mv", "rm", "rmdir", "mkdir", "touch", "sync", "tar", "redis-check-rdb", "mongosh",
		"mongorestore"} {
		s.write(t, "killers/"+name, killer, 0o755)
	}
}

// TestARestoreSurvivesAKillAtEachStep kills each script that moves secrets or data, before each of its commands.
// After a kill, the script's promises for that moment must hold, and the script must work when it runs again.
func TestARestoreSurvivesAKillAtEachStep(t *testing.T) {
	for _, c := range []struct {
		script, file string
		prepare      func(*testing.T, *standIn)
		killed       func(*testing.T, *standIn) // checks what must hold after a kill
		done         func(*testing.T, *standIn) bool
		repeated     func(*testing.T, *standIn)
	}{
		{
			script: "restore-tokens.sh", file: "tokens.rdb",
			prepare: func(t *testing.T, s *standIn) { s.redis(t, "set", "token", "changed") },
			killed: func(t *testing.T, s *standIn) {
				s.compose(t, "up") // Redis must start with all old data, or with all data of the backup
				if got := s.redis(t, "get", "token"); got != "kept" && got != "changed" {
					t.Errorf("got the token %q after a kill and a start, want the old token or the backup's", got)
				}
			},
			done: func(*testing.T, *standIn) bool { return false },
			repeated: func(t *testing.T, s *standIn) {
				if got := s.redis(t, "get", "token"); got != "kept" {
					t.Errorf("got the token %q after the repeat, want the backup's token", got)
				}
			},
		},
		{
			script: "restore-assets.sh", file: "assets.gz",
			prepare: func(t *testing.T, s *standIn) { s.remove(t, "mongo/registry") },
			killed: func(t *testing.T, s *standIn) {
				key := s.read(t, "its secrets/assetsvc/log.key") + s.read(t, "its secrets/assetsvc/log.key.before")
				if got := s.read(t, "mongo/registry"); got != "assets" && key != "log key" {
					t.Errorf("got the log's key %q with %q in MongoDB, want the key while the assets are not restored", key, got)
				}
			},
			done: func(t *testing.T, s *standIn) bool {
				if _, err := os.Stat(filepath.Join(s.dir, "mongo/mark")); err == nil || s.read(t, "mongo/registry") != "assets" {
					return false
				}
				s.remove(t, "tmp/restore.js") // the container removes this file itself
				return true
			},
			repeated: func(t *testing.T, s *standIn) {
				expect.Equal(t, s.read(t, "mongo/registry"), "assets", "after the repeat")
				expect.Equal(t, s.read(t, "its secrets/assetsvc/log.key"), "", "the log's key, beside restored assets")
			},
		},
		{
			script: "restore-files.sh", file: "files.tar",
			prepare: func(t *testing.T, s *standIn) {
				s.remove(t, "files")
				s.write(t, "files/.keep", "", 0o644)
				s.remove(t, "files/.keep")
			},
			killed: func(t *testing.T, s *standIn) {
				if got := s.read(t, "files/0a/0a-1"); got != "" && got != "bytes" {
					t.Errorf("got the file %q after a kill, want all of it or none", got)
				}
			},
			done: func(t *testing.T, s *standIn) bool {
				_, err := os.Stat(filepath.Join(s.dir, "files/restoring/complete"))
				return s.read(t, "files/0a/0a-1") == "bytes" && err != nil
			},
			repeated: func(t *testing.T, s *standIn) {
				// A restore that was killed before its last command leaves this empty directory.
				s.remove(t, "files/restoring")
				if got := s.read(t, "files/0a/0a-1") + s.read(t, "files/removed/0b"); got != "bytesa note" {
					t.Errorf("got the files %q after the repeat, want the backup's files", got)
				}
			},
		},
		{
			script: "restore-secrets.sh", file: "secrets.tar",
			prepare: func(t *testing.T, s *standIn) { s.remove(t, "its secrets") },
			killed: func(t *testing.T, s *standIn) {
				if _, err := os.Stat(s.secrets); err == nil && s.read(t, "its secrets/shared/registry") != "registry" {
					t.Error("got a part of the secrets in their place, want all or none")
				}
			},
			done: func(t *testing.T, s *standIn) bool { return s.read(t, "its secrets/shared/registry") == "registry" },
			repeated: func(t *testing.T, s *standIn) {
				expect.Equal(t, s.read(t, "its secrets/shared/registry"), "registry", "the secret, after the repeat")
			},
		},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			for step := 1; ; step++ {
				s := newStandIn(t)
				s.redis(t, "set", "token", "kept")
				s.must(t, "backup.sh", filepath.Join(s.dir, "b"))
				c.prepare(t, s)
				s.killBefore(t, step)
				file := filepath.Join(s.dir, "b", c.file)
				if _, err := s.script(c.script, file); err == nil { // the script ended before it could be killed
					if step < 3 {
						t.Errorf("got %d steps, want more", step-1)
					}
					return
				}
				s.killBefore(t, 0)
				c.killed(t, s)
				if !c.done(t, s) { // after a finished restore, the script would refuse to replace the data
					s.must(t, c.script, file)
				}
				c.repeated(t, s)
				s.checkNothingLeft(t)
				s.compose(t, "stop")
				if t.Failed() {
					t.Fatalf("%s was killed before command %d", c.script, step)
				}
			}
		})
	}
}

func TestScriptsRefuseAnOldCompose(t *testing.T) {
	s := newStandIn(t)
	s.must(t, "backup.sh", filepath.Join(s.dir, "b"))
	for _, version := range []string{"2.26.0", "v2.9.5", "1.29.2"} {
		s.write(t, "version", version+"\n", 0o644)
		for _, script := range []string{"backup.sh", "restore-assets.sh", "restore-tokens.sh", "restore-secrets.sh",
			"upgrade.sh"} {
			s.mustFail(t, "is too old: use 2.26.1 or newer", script, filepath.Join(s.dir, "b", "assets.gz"))
		}
	}
	for _, version := range []string{"2.26.1", "2.26.1-4", "v2.40.3", "5.0.0"} {
		s.write(t, "version", version+"\n", 0o644)
		s.must(t, "backup.sh", filepath.Join(s.dir, "b"))
	}
}

// composeOfUpgrade replaces Compose, and dockerOfUpgrade replaces Docker. Both record how they are called. They
// report that authsvc does not run.
const (
	composeOfUpgrade = `#!/bin/bash
echo "compose $*" >>"$DIR/calls"
case $* in
"version --short") echo 2.26.1 ;;
"config --services") printf '%s\n' authsvc assetsvc searchsvc gateway balancer prometheus ;;
"ps --status running --quiet authsvc") ;;
"ps --status running --quiet searchsvc") echo searchsvc-old ;;
"ps --status running --quiet "*) printf '%s\n' "${!#}-old1" "${!#}-old2" ;;
esac
`
	dockerOfUpgrade = `#!/bin/bash
echo "docker $*" >>"$DIR/calls"
case $* in
*Config.Image*) echo "asset-registry/${!#}:1.0" ;;
"inspect "*) echo sha256:running ;;
esac
`
)

// TestAnUpgradeReplacesWhatRuns runs upgrade.sh while authsvc is stopped. The script must replace all services that
// run, and must not start authsvc.
func TestAnUpgradeReplacesWhatRuns(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"compose": composeOfUpgrade, "docker": dockerOfUpgrade} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	upgrade := exec.Command(filepath.Join(root, "deploy/compose/upgrade.sh"))
	upgrade.Env = append(os.Environ(), "DIR="+dir, "COMPOSE="+filepath.Join(dir, "compose"), "PATH="+dir+":"+os.Getenv("PATH"))
	if text, err := upgrade.CombinedOutput(); err != nil || !strings.Contains(string(text), "authsvc does not run") {
		t.Fatalf("got %v and %q, want a note that authsvc does not run", err, text)
	}
	calls := expect.Get(os.ReadFile(filepath.Join(dir, "calls")))(t)
	for _, want := range []string{
		"compose up --detach --no-build --no-recreate --scale assetsvc=4 --wait assetsvc\n",
		"docker rm assetsvc-old2\n",
		"docker rm searchsvc-old\ncompose up --detach --no-build --no-recreate --wait searchsvc\n",
		"compose up --detach --no-build --no-recreate --scale gateway=4 --wait gateway\n",
		"docker tag sha256:running asset-registry/gateway-old1:former\n",
		"compose exec -T balancer sh -c kill -s USR2 1\n",
		"compose exec -T prometheus sh -c kill -s HUP 1\n",
	} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("got no call %q, want one in:\n%s", want, calls)
		}
	}
	for _, unwanted := range []string{"authsvc=0", "--wait authsvc"} {
		if strings.Contains(string(calls), unwanted) {
			t.Errorf("got a call with %q, want a stopped service left alone", unwanted)
		}
	}
}

// TestNoScriptStartsWithoutDependencies checks that no script and no guide uses "up" with --no-deps. With that
// flag, Compose 2.26.1 makes a container with a different configuration, and the next "docker compose up" replaces
// the container.
func TestNoScriptStartsWithoutDependencies(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "deploy/compose/*.sh"))
	if err != nil || len(files) < 6 {
		t.Fatalf("got the scripts %q, %v, want at least 6", files, err)
	}
	found := 0
	guides, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(guides) < 10 {
		t.Fatalf("got the guides %q, %v, want at least 10", guides, err)
	}
	for _, path := range slices.Concat(files, guides, []string{filepath.Join(root, "README.md")}) {
		text := expect.Get(os.ReadFile(path))(t)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "ompose up ") || strings.Contains(line, "COMPOSE up ") {
				found++
				if strings.Contains(line, "--no-deps") {
					t.Errorf("%s: got %q, want it without --no-deps", path, strings.TrimSpace(line))
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("got %d lines with up, want at least 5", found)
	}
}
