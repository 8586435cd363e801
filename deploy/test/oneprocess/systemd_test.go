package oneprocess

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"asset-registry/deploy/test/rig/processes"
	"asset-registry/shared/command"
	"asset-registry/shared/needtest"
	"asset-registry/shared/testing/expect"
)

// units is the directory with the files that an operator copies.
const units = "../../systemd"

// mostExposed is the highest exposure that a unit may have. `systemd-analyze security` computes the exposure.
const mostExposed = 2.0

// logBound matches the settings that bound the lines of a unit in the journal.
var logBound = regexp.MustCompile(`\nLogRateLimitIntervalSec=[1-9]\d*s\nLogRateLimitBurst=[1-9]\d*\n`)

// TestUnitsOfSystemd checks copies of the units. The copies name the programs of this build. systemd-analyze must find
// no fault in them. The exposure of each service must be under mostExposed.
func TestUnitsOfSystemd(t *testing.T) {
	needtest.Commands(t, "systemd-analyze")
	dir := t.TempDir()
	names, err := filepath.Glob(filepath.Join(units, "*.*er"))
	services, err2 := filepath.Glob(filepath.Join(units, "*.service"))
	if err != nil || err2 != nil || len(services) != 4 || len(names) != 2 {
		t.Fatalf("got the timers %q and the services %q, want two and four", names, services)
	}
	args := []string{"verify", "--man=no"}
	for _, name := range append(names, services...) {
		text := expect.Get(os.ReadFile(name))(t)
		if strings.Contains(string(text), "\nType=exec\n") && !logBound.Match(text) {
			t.Errorf("%s: got no bound for its lines in the journal", name)
		}
		here := strings.ReplaceAll(string(text), "/usr/local/bin/registry ", registry("registry")+" ")
		here = strings.ReplaceAll(here, "/etc/registry/alert", filepath.Join(mustAbs(t, units), "alert"))
		copied := filepath.Join(dir, filepath.Base(name))
		expect.OK(t, os.WriteFile(copied, []byte(here), 0o600))
		if !strings.Contains(name, "@") {
			args = append(args, copied)
		}
	}
	if said := must(t, "systemd-analyze", args...); strings.Contains(said, dir) {
		t.Errorf("verify: got %s, want nothing about the units", said)
	}
	level := regexp.MustCompile(`Overall exposure level for .*: ([0-9.]+) `)
	for _, name := range services {
		if strings.Contains(name, "@") {
			continue // this unit runs a script of the operator, which may need more rights
		}
		said := must(t, "systemd-analyze", "security", "--offline=true", "--no-pager", filepath.Join(dir, filepath.Base(name)))
		found := level.FindStringSubmatch(said)
		if found == nil {
			t.Errorf("%s: got %s, want an exposure", name, said)
			continue
		}
		if got, err := strconv.ParseFloat(found[1], 64); err != nil || got >= mostExposed {
			t.Errorf("%s: got the exposure %v, %v, want under %v", name, got, err, mostExposed)
		}
	}
}

// TestAServiceThatDiesEvery11SecondsAlerts reads the unit: so many starts must be fewer than it takes within its interval.
// A wrong setting must not be started again.
func TestAServiceThatDiesEvery11SecondsAlerts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(units, "registry.service"))
	if err != nil {
		t.Fatal(err)
	}
	number := func(setting, unit string) int {
		t.Helper()
		found := regexp.MustCompile(`\n` + setting + `=(\d+)` + unit + `\n`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("got no %s in %s", setting, unit)
		}
		n, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	takes := number("StartLimitBurst", "") * (11 + number("RestartSec", ""))
	if within := number("StartLimitIntervalSec", "h") * 3600; takes >= within {
		t.Errorf("got the limit of starts after %d s, want it within %d s", takes, within)
	}
	if got := number("RestartPreventExitStatus", ""); got != command.BadSettings {
		t.Errorf("got %d not started again, want %d", got, command.BadSettings)
	}
}

// TestCommandsOfUnits runs the commands of the units with the settings of the example, but with directories and
// addresses of this test. The registry must start. The status must say whether a backup was made.
func TestCommandsOfUnits(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "registry.yaml")
	text := expect.Get(os.ReadFile(filepath.Join(units, "registry.yaml")))(t)
	must(t, registry("registry"), "check-config", filepath.Join(units, "registry.yaml"))
	addr := freeAddr(t)
	settings := string(text)
	for was, is := range map[string]string{
		`":443"`: `"` + addr + `"`, "acme: true": "acme: false",
		"127.0.0.1:8079": freeAddr(t), "127.0.0.1:9464": freeAddr(t),
	} {
		if !strings.Contains(settings, was) {
			t.Fatalf("got the settings %s, want %s in them", settings, was)
		}
		settings = strings.ReplaceAll(settings, was, is)
	}
	expect.OK(t, os.WriteFile(config, []byte(settings), 0o600))
	here := strings.NewReplacer("/usr/local/bin/", *bin+"/", "/etc/registry/registry.yaml", config, "/var/lib/", dir+"/")
	line := func(unit string) []string {
		t.Helper()
		text := expect.Get(os.ReadFile(filepath.Join(units, unit)))(t)
		_, start, found := strings.Cut(string(text), "\nExecStart=")
		start, _, _ = strings.Cut(start, "\n")
		if !found {
			t.Fatalf("%s: got no ExecStart", unit)
		}
		return strings.Fields(here.Replace(start))
	}
	output := &processes.Output{}
	serve := line("registry.service")
	p := start(t, addr, output, serve[0], serve[1:]...)
	expect.OK(t, output.Await(t.Context(), "answers at"))
	status := line("registry-status.service")
	if said, code := run(t, status[0], status[1:]...); code != 1 || !strings.Contains(said, "no backup was made") {
		t.Errorf("status before a backup: got exit code %d and %s, want 1 and that there is no backup", code, said)
	}
	backup := line("registry-backup.service")
	must(t, backup[0], backup[1:]...)
	if said, _ := run(t, status[0], status[1:]...); strings.Contains(said, "no backup was made") || !strings.Contains(said, ", checked: ") {
		t.Errorf("status after a backup: got %s, want the backup", said)
	}
	stop(t, p, output)
	alert := exec.CommandContext(t.Context(), filepath.Join(units, "alert"), "registry-backup.service")
	if said, err := alert.CombinedOutput(); err != nil || !strings.Contains(string(said), "registry-backup.service of ") {
		t.Errorf("the alert: got %s, %v, want the unit's name", said, err)
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path = expect.Get(filepath.Abs(path))(t)
	return path
}
