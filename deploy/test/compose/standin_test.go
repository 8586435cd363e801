package compose

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// standIn replaces Docker Compose in tests of the operator's scripts. The commands for containers run on this machine
// instead. Redis is real. A file replaces MongoDB, and shell scripts replace the tools of MongoDB.
type standIn struct{ dir, secrets, port string }

// composeScript is the command that the scripts call instead of Compose. It replaces paths in containers by paths
// in $DIR.
const composeScript = `#!/bin/bash
set -euo pipefail
DIR=%[1]q SECRETS=%[2]q PORT=%[3]q
export DIR PORT PATH="$DIR/killers:$DIR/bin:$PATH"
call=$*
echo "${call%%%%$'\n'*}" >>"$DIR/calls" # its first line
start() {
	# A daemon would outlive a test run that is interrupted.
	sed "s#/data#$DIR/data#" %[4]q >"$DIR/tmp/redis-tokens.sh"
	sh "$DIR/tmp/redis-tokens.sh" --port "$PORT" --bind 127.0.0.1 --dir "$DIR/data" --requirepass secret \
		--save "" --appendonly yes --appendfsync always --repl-diskless-sync-delay 0 >/dev/null 2>&1 </dev/null &
	until REDISCLI_AUTH=secret redis-cli ping 2>/dev/null | grep -q PONG; do sleep 0.1; done
}
case $1 in
version) cat "$DIR/version" ;;
config)
	printf 'services:\n  secrets:\n    volumes:\n      - type: bind\n        source: %%s\n        target: /secrets\n' \
		"$SECRETS"
	;;
stop) REDISCLI_AUTH=secret redis-cli shutdown 2>/dev/null || true ;;
up) REDISCLI_AUTH=secret redis-cli ping >/dev/null 2>&1 || start ;;
exec | run)
	[ ! -e "$DIR/down" ] || exit 1 # the container does not run
	for arg; do [[ $arg != SUM=* ]] || export "${arg?}"; done
	script=${!#}
	[ "$script" != volumes ] || exit 0 # it gives the volumes to their users
	script=${script//\/tmp/$DIR/tmp}
	script=${script//\/data/$DIR/data}
	script=${script//\/files/$DIR/files}
	script=${script//\/run\/secrets/$DIR/run}
	ln -sfn "$SECRETS/redis-tokens" "$DIR/run"
	sh -euc "$script"
	;;
esac
`

// tools has the programs that the commands for containers call. The keys are the names of the programs.
var tools = map[string]string{
	// Redis has its default port in the container, but another port here.
	"redis-cli": `#!/bin/bash
[ "$1" = -s ] || set -- -p "$PORT" "$@"
PATH=${PATH#*:} exec redis-cli "$@"
`,
	"mongodump": `#!/bin/bash -e
grep -q "admin:dumper@" "${!#}"
gzip <"$DIR/mongo/registry"
[ ! -e "$DIR/fail" ]
`,
	"mongorestore": `#!/bin/bash -e
grep -q "admin:dumper@" "${!#}"
echo half >"$DIR/mongo/registry"
if [ -e "$DIR/die" ]; then kill -9 "$PPID"; exit 1; fi
[ ! -e "$DIR/fail" ]
gzip -d >"$DIR/mongo/registry"
`,
	"mongosh": `#!/bin/bash -e
script=$(cat "${!#}")
grep -q "admin:dumper@" <<<"$script"
case $script in
*findOne*)
	if [ ! -e "$DIR/mongo/mark" ] && [ -e "$DIR/mongo/registry" ]; then
		echo "MongoDB has assets"
		exit 3
	fi
	touch "$DIR/mongo/mark"
	;;
*registry.dropDatabase*) rm -f "$DIR/mongo/registry" "$DIR/mongo/mark" ;;
*mark.dropDatabase*) rm "$DIR/mongo/mark" ;;
esac
`,
}

// newStandIn starts Redis, and creates the secrets and the file that replaces MongoDB.
func newStandIn(t *testing.T) *standIn {
	t.Helper()
	addr := expect.Get(porttest.FreeAddr())(t)
	dir := t.TempDir()
	s := &standIn{dir: dir, secrets: filepath.Join(dir, "its secrets"), port: addr[strings.LastIndex(addr, ":")+1:]}
	for _, c := range []struct {
		name, text string
	}{
		{"its secrets/shared/registry", "registry"},
		{"its secrets/mongo-init/admin-password", "dumper"},
		{"its secrets/assetsvc/log.key", "log key"},
		{"its secrets/redis-tokens/redis.conf", "requirepass secret"},
		{"mongo/registry", "assets"},
		{"files/0a/0a-1", "bytes"},
		{"files/removed/0b", "a note"},
		{"files/new/0c", "an upload under way"},
		{"data/.keep", ""},
		{"tmp/.keep", ""},
		{"version", "2.40.3\n"},
	} {
		s.write(t, c.name, c.text, 0o644)
	}
	start := expect.Get(filepath.Abs(filepath.Join(root, "deploy/compose/redis-tokens.sh")))(t)
	s.write(t, "compose", fmt.Sprintf(composeScript, dir, s.secrets, s.port, start), 0o755)
	for name, text := range tools {
		s.write(t, "bin/"+name, text, 0o755)
	}
	s.compose(t, "up")
	t.Cleanup(func() { s.compose(t, "stop") })
	return s
}

func (s *standIn) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.OK(t, os.WriteFile(path, []byte(text), mode))
}

// read returns the text of a file, or "" if the file does not exist.
func (s *standIn) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

func (s *standIn) remove(t *testing.T, name string) {
	t.Helper()
	expect.OK(t, os.RemoveAll(filepath.Join(s.dir, name)))
}

func (s *standIn) compose(t *testing.T, args ...string) {
	t.Helper()
	output(t, exec.Command(filepath.Join(s.dir, "compose"), args...))
}

// redis runs a Redis command on the Redis that holds the tokens.
func (s *standIn) redis(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("redis-cli", append([]string{"-p", s.port}, args...)...)
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH=secret")
	return output(t, cmd)
}

// script runs a script of deploy/compose, and returns its output.
func (s *standIn) script(name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(root, "deploy/compose", name), args...)
	cmd.Env = append(os.Environ(), "COMPOSE="+filepath.Join(s.dir, "compose"),
		"DIR="+s.dir, "PATH="+filepath.Join(s.dir, "killers")+":"+os.Getenv("PATH"))
	// The script has its own process group, so that a killer can end the script and everything that it has started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// The method `must` runs a script that must succeed.
func (s *standIn) must(t *testing.T, name string, args ...string) {
	t.Helper()
	if text, err := s.script(name, args...); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, text)
	}
}

// mustFail runs a script. The script must fail, and its output must contain the text in the parameter `why`.
func (s *standIn) mustFail(t *testing.T, why, name string, args ...string) {
	t.Helper()
	text, err := s.script(name, args...)
	if err == nil {
		t.Fatalf("%s %q: got success, want a failure", name, args)
	}
	if !strings.Contains(text, why) {
		t.Errorf("%s %q: got %q, want %q in it", name, args, text, why)
	}
}
