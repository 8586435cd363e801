package docs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

// goWords are words that come from Go, its packages and the system. Users of a program must not see them.
var goWords = []string{
	"invalid syntax", "strconv", "no such file or directory", "is a directory", "not a directory", "file exists",
	"permission denied", "missing port in address", "unknown port", "invalid port", "dial ", "listen tcp", "lookup ",
	"connection refused", "already in use", "cannot assign", "EOF", "JSON input", "unmarshal", "Unmarshal", "context ",
	"x509:", "tls:", " json:", "netip.", "slog:", "time:", "strings.", "unsupported protocol", "out of range", "bit int",
	"envar", "stat ", "mkdir ", "topology", "%!",
}

// TestAFaultIsToldInOnePlainLine runs programs with impossible command lines and settings. Each must report the
// fault in one plain line. In the rows of the test, the registry and MongoDB are at ports where no process listens.
func TestAFaultIsToldInOnePlainLine(t *testing.T) {
	programs, dir := build(t), t.TempDir()
	for name, text := range map[string]string{
		"text": "x\n", "a.json": "{}\n", "broken.json": `{"data":`, "list.json": "[1]", "empty": "",
		"secret": strings.Repeat("0123456789", 4) + "\n", "bad.yaml": "a: [\n", "number.yaml": "max-body: 2MB\n",
		"rows.csv": "id,title\n1,x\n",
	} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	expect.OK(t, os.Mkdir(filepath.Join(dir, "lists"), 0o700))
	for _, name := range []string{"pipe", "lists/CPV.txt"} {
		expect.OK(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	addr, err := porttest.FreeAddr()
	expect.OK(t, err)
	made, err := processes.Standalone(t.Context(), programs, addr, filepath.Join(dir, "data"), &processes.Output{})
	expect.OK(t, err)
	expect.OK(t, made.Stop())
	const (
		redis, mongo = "redis://127.0.0.1:1/0", "mongodb://127.0.0.1:1/x"
		service      = " --secret-file secret --addr 127.0.0.1:0"
	)
	for _, c := range []struct {
		line string // the word "" is an empty argument; words before the program's name are environment variables
		code int
		says string
	}{
		{"registryctl verify", 2, "--public-key"},
		{"registryctl verify --public-key x", 2, "--public-key"},
		{"registryctl verify --policy none", 2, `--policy: "none": there is no such file`},
		{"registryctl verify --policy text", 2, "text: malformed policy: line 1"},
		{"registryctl verify none --public-key x", 2, "FILE"},
		{"registryctl verify-release . --public-key x", 2, "--public-key"},
		{"registryctl verify-release none --public-key x", 2, "--public-key"},
		{"registryctl me --url 127.0.0.1:8080", 2, "--url must be an address such as"},
		{"registryctl me --url http://127.0.0.1:99999", 2, "--url must be an address such as"},
		{"registryctl me --url http://u:hunter2@127.0.0.1:1", 2, "--url must have no user"},
		{"REGISTRYCTL_URL=x registryctl me", 2, "--url must be an address such as"},
		{"registryctl me", 3, "http://127.0.0.1:1 does not answer: nothing listens there"},
		{"registryctl me --url http://none.invalid", 3, "the name none.invalid has no address"},
		{"registryctl assets create -f none", 2, `--file: "none"`},
		{"registryctl assets create -f .", 2, "it is a folder"},
		{"registryctl assets create -f broken.json", 2, "broken.json is not a JSON object"},
		{"registryctl assets create -f list.json", 2, "list.json is not a JSON object"},
		{"registryctl assets create -f empty", 2, "empty is not a JSON object"},
		{"registryctl assets create -f a.json --access none/x", 2, `--access: "none"`},
		{"registryctl assets create -f a.json --access text", 2, `"text": it is there already`},
		{`registryctl assets create -f a.json --access "" --once x`, 2, "--access: it must not be empty"},
		{"registryctl assets import none.csv", 2, `немає такого файлу чи папки: none.csv`},
		{"registryctl assets import rows.csv --mapping none", 2, `--mapping: "none"`},
		{"registryctl assets import rows.csv --folder none", 2, "none"},
		{"registryctl assets import rows.csv --rows 257", 2, "--rows: it must be 1 to 256"},
		{"LC_ALL=C registryctl assets import rows.csv", 1, "rows.csv has"},
		{`registryctl assets get ""`, 2, "ID: it must not be empty"},
		{"registryctl assets list --limit 0", 2, "--limit: it must be 1 or more"},
		{"registryctl assets list --limit 1.5", 2, "--limit: want a whole number"},
		{"registryctl assets list --mode real", 2, "--mode: it must be test or _all_"},
		{"registryctl assets follow --state text", 2, "text holds no position"},
		{"registryctl assets follow --pause 5", 2, "--pause: want a duration with its unit"},
		{"registryctl assets follow --pause -5s", 2, "--pause: it must be 0s or more"},
		{"registryctl assets publish x --access none", 2, `--access: "none"`},
		{`registryctl sync ""`, 2, "DIR: it must not be empty"},
		{"registryctl sync text", 2, `"text": it is not a folder`},
		{"registryctl sync copy --verify-sample 0", 2, "--verify-sample: it must be 1 or more"},
		{"registryctl sync export none", 2, "none"},
		{"registryctl keys list --admin-url ftp://x", 2, "--admin-url must be an address such as"},
		{"registryctl keys list --admin-url http://", 2, "--admin-url must be an address such as"},
		{"registryctl keys list", 3, "nothing listens there"},
		{"registryctl keys list --state lost", 2, "active, expired, revoked or blocked"},
		{"registryctl keys create --role boss", 2, "--role: it must be broker"},
		{"registryctl keys create --expires soon", 2, "--expires must be"},
		{"registryctl keys rotate k --grace 9", 2, "--grace: want a duration"},
		{"registryctl keys usage k --days -3", 2, "--days: it must be 1 or more"},
		{"registryctl keys usage k --days 99999999999999999999", 2, "--days: want a whole number, at most"},
		{"registryctl brokers raise b --times 101", 2, "--times: it must be 2 to 100"},
		{"registryctl brokers raise b --for 745h", 2, "--for: it must be 1s to 744h"},
		{"registryctl audit verify --head 1", 2, "--head"},
		{"registryctl log key show none", 2, `"none"`},
		{"registryctl prove x --revision -1", 2, "--revision"},
		{"registryctl webhooks new https://x --filter colour=red", 2, `--filter: unknown field "colour"`},
		{"registryctl files upload x none --type notice", 2, `PATH: "none"`},
		{"registryctl files get x --to text", 2, "it is there already"},
		{"registryctl --config none me", 2, `"none"`},

		{"registry serve --data new --trusted-proxies 1.2.3", 78, "--trusted-proxies: want a network such as"},
		{"registry serve --data new --addr nope", 78, `--addr: want an address such as`},
		{"registry serve --data new --addr 1.2.3.4:99999", 78, `got "1.2.3.4:99999"`},
		{"registry serve --data new --addr :http-ish", 78, `got ":http-ish"`},
		{"registry serve --data new --addr 192.0.2.1:8080", 2, "does not have the address"},
		{"registry serve --data new --addr 127.0.0.1:0 --metrics-addr x", 78, "--metrics-addr"},
		{"registry serve --data new --addr 127.0.0.1:0 --admin-addr x:y", 78, "--admin-addr"},
		{"registry serve --data new --base-url=http://a%zz", 78, "--base-url: want an address"},
		{"registry serve --data new --memory 1G", 78, "--memory: want a whole number"},
		{"registry serve --data new --log-level loud", 78, "--log-level: want debug, info"},
		{"registry serve --data new --addr 127.0.0.1:0 --tls-cert text --tls-key text", 78, "PEM"},
		{"registry serve --data /dev/null/x --addr 127.0.0.1:0", 78, "it is not a folder"},
		{"registry serve --config none", 78, `--config: "`},
		{"registry serve --config number.yaml", 78, "config file: --max-body: want a whole number"},
		{"registry check-config bad.yaml", 2, "config file"},
		{"REGISTRY_MAX_BODY=2MB registry serve --data new", 78, "(from the environment, REGISTRY_MAX_BODY)"},
		{"registry check-config pipe", 2, `--config: "pipe": it is a named pipe: name a file`},
		{"registry serve --config /dev/zero", 78, `--config: "/dev/zero": it is a device: name a file`},
		{"REGISTRY_LOG_KEY_FILE=/dev/zero registry serve --data new --addr 127.0.0.1:0", 78, `--log-key-file: "/dev/zero": it is a device`},
		{"registry restore --from pipe --data restored", 2, `--from: "pipe": it is a named pipe`},
		{"gateway --secret-file pipe", 78, `--secret-file: "pipe": it is a named pipe`},
		{"assetsvc" + service + " --store file:a.db --code-lists lists", 78, "it is a named pipe"},
		{"registryctl --config pipe me", 2, `"pipe": it is a named pipe`},
		{"registryctl verify --policy pipe", 2, `--policy: "pipe": it is a named pipe`},
		{"registryctl audit verify --remember pipe", 2, `--remember: "pipe": it is a named pipe`},
		{"registryctl assets import pipe --check", 2, `"pipe": it is a named pipe`},
		{"registry restore --from a.json --data restored", 2, "a.json: it is no backup"},
		{"registry restore --from none --data restored", 2, `--from: "none"`},
		{"registry backup --data data --to none/x", 2, `create the backup: "none/x": there is no such`},
		{"registry backup --data none --into x", 2, "name it with --data"},
		{"registry status --data none", 2, "no registry runs"},
		{"registry backup --data none --to x", 2, "name it with --data"},
		{"registry check --data none", 2, "name it with --data"},
		{"registry compact --data none", 2, "name it with --data"},
		{"registry admin-key --data none --name x", 2, "name it with --data"},
		{"registry migrate --from file:data --to " + mongo + " --redis " + redis, 2, "127.0.0.1:1 does not answer"},
		{"registry migrate --from file:none --to " + mongo + " --redis " + redis, 2, "name it with --data"},
		{"registry new-key --broker b --id k --levels 33", 2, `levels "33" must name each level once`},
		{"registry new-key --broker b --id k --levels 7", 2, `levels "7"`},
		{"registry mirror --of x --data new", 78, "--of"},
		{"registry health http://127.0.0.1:1/", 2, "nothing listens there"},

		{"gateway --secret-file none", 78, `"none"`},
		{"gateway --secret-file secret --addr nope", 78, "--addr: want"},
		{"gateway --secret-file secret --trusted-proxies x", 78, "--trusted-proxies: want a network"},
		{"gateway check --secret-file secret --base-url=http://a%zz", 2, "--base-url: want"},
		{"assetsvc" + service + " --store file:none/a.db", 2, `"none/a.db": there is no such`},
		{"assetsvc" + service + " --store file:a.db --log-key-file none", 78, `"none"`},
		{"assetsvc log-key none/x", 2, `"none/x"`},
		{"assetsvc reseal --secret-file secret --store " + mongo, 2, "no server of MongoDB answers"},
		{"authsvc" + service + " --store file:t.db --keys-file none", 78, `"none"`},
		{"authsvc" + service + " --store file:t.db --admin-addr nope", 78, "--admin-addr: want"},
		{"authsvc reseal --secret-file secret --store " + redis, 2, "127.0.0.1:1 does not answer"},
		{"searchsvc --addr 127.0.0.1:0 --of x --data s", 78, "--of"},
		{"searchsvc --addr 127.0.0.1:0 --synonyms none --data s", 78, `--synonyms: "none"`},
		{"filesvc" + service + " --store file:f.db --data /dev/null/x", 2, "it is not a folder"},
	} {
		t.Run(c.line, func(t *testing.T) {
			code, said := runLine(t, programs, dir, c.line)
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("got the code %d and %q, want %d and %q", code, said, c.code, c.says)
			}
			if strings.Count(said, "\n") != 1 {
				t.Errorf("got %q, want one line", said)
			}
			parts := strings.Split(strings.TrimSpace(said), "; ")
			for i, part := range parts {
				if i > 0 && strings.HasSuffix(parts[0], part) {
					t.Errorf("got %q, want each fault once", said)
				}
			}
			for _, word := range append(goWords, "hunter2") {
				if strings.Contains(said, word) {
					t.Errorf("got %q, want no %q in it", said, word)
				}
			}
		})
	}
}

// TestEachServerTellsItsVersion asks servers for their build, by a flag and by a word.
func TestEachServerTellsItsVersion(t *testing.T) {
	programs := build(t)
	for _, name := range []string{"registry", "gateway", "assetsvc", "authsvc", "filesvc", "searchsvc"} {
		flag := expect.Get(exec.CommandContext(t.Context(), filepath.Join(programs, name), "--version").Output())(t)
		word := expect.Get(exec.CommandContext(t.Context(), filepath.Join(programs, name), "version").Output())(t)
		if string(word) != string(flag) || !strings.HasPrefix(string(flag), name+" ") {
			t.Errorf("%s: got %q for version and %q for --version, want the build twice", name, word, flag)
		}
	}
}

// runLine runs a command line. It returns the exit code, and the text on stderr without the program's log.
func runLine(t *testing.T, programs, dir, line string) (code int, said string) {
	t.Helper()
	words := strings.Fields(line)
	env := []string{
		"HOME=" + dir, "REGISTRYCTL_URL=http://127.0.0.1:1", "REGISTRYCTL_ADMIN_URL=http://127.0.0.1:1",
		"REGISTRYCTL_KEY=k", "REGISTRYCTL_ADMIN_KEY=k",
	}
	for strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	for i, word := range words {
		if word == `""` {
			words[i] = ""
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a program that does not end by itself
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(programs, words[0]), words[1:]...)
	var stderr strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, `{"time"`) {
			said += line
		}
	}
	return cmd.ProcessState.ExitCode(), said
}
