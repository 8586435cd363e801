// Package booted tries the units in a booted Debian.
package booted

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"asset-registry/shared/needtest"
	"asset-registry/shared/porttest"
	"asset-registry/shared/testing/expect"
)

var bin = flag.String("bin", "", "directory with the programs")

// units is the directory with the files that an operator copies.
const units = "../../systemd"

// debian has what a machine of an operator has. The mail server is one that others wrote.
const debian = "--include=systemd,systemd-sysv,dbus,curl,msmtp,ca-certificates,python3-aiosmtpd"

// machine is a booted Debian with the units. It shares its network with the test.
type machine struct {
	*testing.T
	init string // number of its first process
}

// boot starts a machine. It keeps nothing: the next one is as fresh.
func boot(t *testing.T) *machine {
	t.Helper()
	needtest.Commands(t, "debootstrap", "systemd-nspawn", "nsenter")
	cache := expect.Get(os.UserCacheDir())(t)
	root := filepath.Join(cache, "asset-registry-tools", "booted")
	if _, err := os.Stat(root + ".whole"); err != nil {
		expect.OK(t, os.RemoveAll(root))
		made := exec.CommandContext(t.Context(), "debootstrap", "--variant=minbase", debian, "stable", root)
		if said, err := made.CombinedOutput(); err != nil {
			needtest.Missing(t, "packages", fmt.Sprintf("%v: %.500s", err, said))
		}
		expect.OK(t, os.WriteFile(root+".whole", nil, 0o600))
	}
	nspawn := exec.Command("systemd-nspawn", "--quiet", "--directory="+root, "--volatile=overlay", "--register=no",
		"--keep-unit", "--console=pipe", "--boot", "--bind-ro="+absolute(t, units)+":/root/units",
		"--bind-ro="+absolute(t, filepath.Join(*bin, "registry"))+":/usr/local/bin/registry")
	expect.OK(t, nspawn.Start())
	t.Cleanup(func() {
		_ = nspawn.Process.Signal(syscall.SIGTERM)
		_ = nspawn.Wait()
	})
	m := &machine{T: t}
	soon(t, "the machine is up", func() bool {
		m.init, _ = run(t, "pgrep", "--parent", strconv.Itoa(nspawn.Process.Pid))
		m.init = strings.TrimSpace(m.init)
		said := ""
		if m.init != "" {
			said, _ = m.try("systemctl is-system-running")
		}
		return strings.HasPrefix(said, "running") || strings.HasPrefix(said, "degraded")
	})
	return m
}

func (m *machine) try(script string) (string, int) {
	m.Helper()
	return run(m.T, "nsenter", "--target", m.init, "-m", "-u", "-i", "-p", "-C", "sh", "-c", script)
}

func (m *machine) must(script string) string {
	m.Helper()
	text, code := m.try(script)
	if code != 0 {
		m.Fatalf("%s: got exit code %d, want 0; it printed %s", script, code, text)
	}
	return text
}

// await waits until the output of a script matches a pattern.
func (m *machine) await(script, pattern string) {
	m.Helper()
	soon(m.T, script+" prints "+pattern, func() bool {
		text, _ := m.try(script)
		return regexp.MustCompile(pattern).MatchString(text)
	})
}

// inbox keeps the bodies of requests.
type inbox struct {
	mu   sync.Mutex
	text string
}

func (i *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.text += string(body)
}

func (i *inbox) has(text string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Contains(i.text, text)
}

// TestBootedSystemd installs the units as an operator does. The alert must reach a web address and a mail server, and a
// lost alert must be told. A wrong setting must end the service at once, and anything else must not.
func TestBootedSystemd(t *testing.T) {
	m, got := boot(t), &inbox{}
	server := httptest.NewServer(got)
	defer server.Close()
	mail, addr := expect.Get(porttest.FreeAddr())(t), expect.Get(porttest.FreeAddr())(t)
	script := string(expect.Get(os.ReadFile(filepath.Join(units, "alert")))(t))
	for _, change := range [][2]string{{`(?m)^# (printf .*)`, "$1"}, {`https://alerts\.example/registry`, server.URL},
		{`--host=.*? --from`, "--host=127.0.0.1 --port=" + mail[strings.Index(mail, ":")+1:] + " --from"}} {
		script = regexp.MustCompile(change[0]).ReplaceAllString(script, change[1])
	}
	m.must("useradd --system registry; mkdir /etc/registry; cp /root/units/*.service /etc/systemd/system/")
	m.must("systemctl daemon-reload")
	m.write("/etc/registry/alert", script)
	m.must("systemd-run --unit=mail python3 -u -m aiosmtpd -n -l " + mail)
	soon(t, "the mail server listens", func() bool {
		conn, err := net.Dial("tcp", mail)
		return err == nil && conn.Close() == nil
	})
	m.await("systemctl start registry-alert@test; journalctl --unit mail", "Subject: test has failed")
	if !got.has("test of ") {
		t.Errorf("the web address: got %q, want the unit's name", got.text)
	}
	m.write("/etc/registry/alert", "#!/bin/sh\nexit 1\n")
	if _, code := m.try("systemctl start registry-alert@lost"); code == 0 {
		t.Error("an alert that fails: got success, want a failure")
	}
	m.await("journalctl --priority emerg --output cat", "alert about lost reached nobody")
	m.await("systemctl show --property SubState registry-alert@lost", "auto-restart")
	m.write("/etc/registry/alert", script)

	start := func(at string) {
		m.write("/etc/registry/registry.yaml", "addr: "+at+"\n")
		m.must("systemctl reset-failed registry; systemctl start registry")
	}
	const state = "systemctl show --property NRestarts,ExecMainStatus,ActiveState registry | tr '\\n' ' '"
	isUp := func() { m.await("curl --silent --show-error http://"+addr+"/readyz", `"status":"ok"`) }
	start("443x")
	m.await(state, "NRestarts=0 ExecMainStatus=78 ActiveState=failed")
	soon(t, "an alert about a wrong setting", func() bool { return got.has("registry.service of ") })
	start(addr)
	isUp()
	for n, signal := range []string{"KILL", "ABRT"} { // Go answers the second one as it ends after a panic
		m.must("systemctl kill --signal " + signal + " registry")
		m.await(state, fmt.Sprintf("NRestarts=%d .*ActiveState=active", n+1))
		isUp()
	}
	m.must("systemctl stop registry")
	busy := expect.Get(net.Listen("tcp", addr))(t)
	start(addr)
	m.await(state, "NRestarts=[2-9] ExecMainStatus=2 ")
	expect.OK(t, busy.Close())
	isUp()
}

// write writes a program into the machine.
func (m *machine) write(path, text string) {
	m.Helper()
	m.must(fmt.Sprintf("cat > %s <<'END'\n%sEND\nchmod 755 %[1]s", path, text))
}

// run runs a program, and returns its output and its exit code.
func run(t *testing.T, program string, args ...string) (text string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	printed, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	return string(printed), cmd.ProcessState.ExitCode()
}

// The function `soon` waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}

func absolute(t *testing.T, path string) string { return expect.Get(filepath.Abs(path))(t) }
