package registry

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/deploy/registry/certificate"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/buildinfo"
	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/telemetry/export"
	"asset-registry/shared/testing/expect"
)

func figure(name string, value float64, labels ...string) export.Figure {
	f := export.Figure{Name: name, Labels: map[string]string{}, Value: value}
	for i := 0; i < len(labels); i += 2 {
		f.Labels[labels[i]] = labels[i+1]
	}
	return f
}

// healthy returns an observer of a registry that has no problem.
func healthy(t *testing.T) *observer {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, formatFile)
	expect.OK(t, writeBackup(dir, LastBackup{File: "a.tar", Finished: time.Now(), Checked: true}))
	ready := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"status":"ok"}`) })
	return &observer{
		config: Config{Data: dir}, parts: []part{{"gateway", ready}, {"authsvc", ready}},
		figures: func() ([]export.Figure, error) { return nil, nil },
		audit:   func(context.Context) (adminapi.Verification, error) { return adminapi.Verification{Entries: 3}, nil },
	}
}

// TestStatusNamesEachProblem breaks one part of a healthy registry at a time. The status must name the problem.
func TestStatusNamesEachProblem(t *testing.T) {
	tells := func(told ...export.Figure) func(*observer) {
		return func(o *observer) { o.figures = func() ([]export.Figure, error) { return told, nil } }
	}
	soon := float64(time.Now().Add(time.Hour).Unix())
	for _, c := range []struct {
		name, want string
		change     func(*observer)
	}{
		{"nothing", "", func(*observer) {}},
		{"figures at their limits", "", tells(figure("registry_log_behind_seconds", 60), figure("registry_log_damaged", 0),
			figure("registry_search_behind_seconds", 300), figure("registry_files_behind_seconds", 300),
			figure("registry_webhooks_behind_seconds", 30), figure("registry_store_disk_free_bytes", 20, "store", "assets"),
			figure("registry_store_disk_size_bytes", 100, "store", "assets"))},
		{"the log is behind", "PublicLogBehind", tells(figure("registry_log_behind_seconds", 61))},
		{"the log is damaged", "PublicLogDamaged", tells(figure("registry_log_damaged", 1))},
		{"the index is behind", "SearchBehind", tells(figure("registry_search_behind_seconds", 301))},
		{"files are behind", "FilesBehind", tells(figure("registry_files_behind_seconds", 301))},
		{"webhooks are behind", "WebhooksBehind", tells(figure("registry_webhooks_behind_seconds", 31))},
		{"one disk of two is full", "StoreDiskNearFull", tells(
			figure("registry_store_disk_free_bytes", 90, "store", "assets"),
			figure("registry_store_disk_size_bytes", 100, "store", "assets"),
			figure("registry_store_disk_free_bytes", 19, "store", "files"),
			figure("registry_store_disk_size_bytes", 100, "store", "files"))},
		{"no certificate", "CertificateExpires", tells(figure("registry_tls_expires_timestamp_seconds", 0))},
		{"a certificate that expires", "CertificateExpires", tells(figure("registry_tls_expires_timestamp_seconds", soon))},
		{"no backup", "BackupTooOld", func(o *observer) { o.config.Data = t.TempDir() }},
		{"a failed backup", "the last backup failed: no room", func(o *observer) {
			expect.Try(t, noteFailure(o.config.Data, errors.New("no room")))
		}},
		{"a broken audit log", "AuditLogBroken", func(o *observer) {
			o.audit = func(context.Context) (adminapi.Verification, error) {
				return adminapi.Verification{Problems: []string{"entry 2 is not sealed"}}, nil
			}
		}},
		{"an audit log that takes too long", "AuditLogUnchecked", func(o *observer) {
			o.audit = func(ctx context.Context) (adminapi.Verification, error) {
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("got a check of the audit log without an end")
				}
				return adminapi.Verification{}, context.DeadlineExceeded
			}
		}},
		{"a service that is not ready", "authsvc is not ready: url/store: no room", func(o *observer) {
			o.parts[1].handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				faulthttp.Write(w, fault.New(fault.Unavailable, fault.URL, "store", "no room"))
			})
		}},
	} {
		o := healthy(t)
		c.change(o)
		s, err := o.look(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, p := range s.Problems {
			if p.Alert == "" {
				got = append(got, p.Says)
			} else {
				got = append(got, p.Alert)
			}
		}
		expect.ErrorIf(t, strings.Join(got, "; ") != c.want, "%s: got the problems %q, want %q", c.name, got, c.want)
	}
}

// TestAlmostEnoughOfADiskIsNotEnough judges a disk whose free share would round up to the limit.
func TestAlmostEnoughOfADiskIsNotEnough(t *testing.T) {
	var s Status
	s.tellData("", figures{figure("registry_store_disk_free_bytes", 199<<20, "store", "assets"),
		figure("registry_store_disk_size_bytes", 1000<<20, "store", "assets")})
	want := []Problem{{"StoreDiskNearFull", "less than 20 % of the disk is free: 199.0 MiB of 1000.0 MiB"}}
	expect.NoDiff(t, cmp.Diff(want, s.Problems), "problems")
}

// TestTheGreetingHasThePublicAddress makes greetings with a public address and without one.
func TestTheGreetingHasThePublicAddress(t *testing.T) {
	for base, want := range map[string]string{
		"":                          "answers at http://127.0.0.1:9, with",
		"https://registry.example/": "answers at https://registry.example and listens at 127.0.0.1:9, with",
	} {
		got := Greeting(Config{BaseURL: base, Sandbox: true, Data: "d"}, "127.0.0.1:9")
		expect.ErrorIf(t, !strings.Contains(got, want) || base != "" && strings.Contains(got, "http://127.0.0.1:9"),
			"%q: got %s, want %q and no other address", base, got, want)
	}
}

// TestProblemsHaveTheLimitsOfTheAlerts compares the limits of the status with the limits in the alert rules of
// Prometheus. They must be equal.
func TestProblemsHaveTheLimitsOfTheAlerts(t *testing.T) {
	text := expect.Get(os.ReadFile("../observability/rules/alerts.yaml"))(t)
	want := map[string][]string{
		"BackupTooOld":       {"registry_backup_finished_timestamp_seconds", "> " + strconv.Itoa(int(backupWithin.Hours())) + " * 3600"},
		"CertificateExpires": {"registry_tls_expires_timestamp_seconds", "< " + strconv.Itoa(int(certificateWithin.Hours()/24)) + " * 86400"},
		"StoreDiskNearFull":  {"registry_store_disk_free_bytes / registry_store_disk_size_bytes", "< " + strconv.FormatFloat(leastFree, 'f', -1, 64)},
		"AuditLogBroken":     {"registry_audit_problems"},
		"AuditLogUnchecked":  {"registry_audit_checked_timestamp_seconds"},
	}
	for _, r := range rules {
		want[r.alert] = []string{r.metric, "> " + strconv.FormatFloat(r.above, 'f', -1, 64) + "\n"}
	}
	for alert, parts := range want {
		_, rule, found := strings.Cut(string(text), "- alert: "+alert+"\n")
		rule, _, _ = strings.Cut(rule, "labels:")
		for _, part := range parts {
			if !found || !strings.Contains(strings.ReplaceAll(rule, ")\n", "\n"), part) {
				t.Errorf("%s: got the rule %q, want %q in it", alert, rule, part)
			}
		}
	}
}

// TestStatusOnAScreen prints a status in which every part is set. Some texts come from other servers and contain
// commands for a terminal. The screen must not have these commands.
func TestStatusOnAScreen(t *testing.T) {
	now := time.Now()
	o := healthy(t)
	o.started, o.address, o.config.BaseURL = now.Add(-72*time.Hour), ":443", "https://registry.example"
	o.parts[0].handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"warnings":["beware"]}`) })
	o.parts[1].handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		faulthttp.Write(w, fault.New(fault.Unavailable, fault.URL, "store", "no room"))
	})
	expect.OK(t, writeBackup(o.config.Data, LastBackup{
		File: "a.tar", Bytes: 3 << 20, Finished: now.Add(-3 * time.Hour), Checked: true, Failed: now.Add(-time.Minute), Fault: "x",
	}))
	o.certificate = func() certificate.State {
		return certificate.State{Host: "registry.example", Failures: 2, Cause: "\x1b[2Jwrong\nPROBLEM", Next: now.Add(time.Hour)}
	}
	o.figures = func() ([]export.Figure, error) {
		return []export.Figure{
			figure("registry_assets_stored", 12, "state", "active"), figure("registry_assets_stored", 0, "state", "draft"),
			figure("registry_store_size_bytes", 2048, "store", "assets"), figure("registry_log_size", 7),
			figure("registry_log_cosignatures_total", 5, "witness", "w", "result", "given"),
			figure("registry_log_cosignatures_total", 1, "witness", "w", "result", "missing"),
			figure("registry_limits_decisions_total", 2, "class", "read", "outcome", "admitted"),
			figure("registry_limits_decisions_total", 3, "class", "list", "outcome", "admitted"),
			figure("registry_limits_refused_total", 4, "policy", "key-read"), figure("registry_gateway_streams", 6),
			figure("registry_webhooks_endpoints", 1, "state", "failing"), figure("registry_search_behind_seconds", 48),
			figure("registry_files_behind_seconds", 4.9), figure("registry_tls_expires_timestamp_seconds", float64(now.AddDate(0, 0, 80).Unix())),
			figure("go_memory_used_bytes", 1024, "go_memory_type", "stack"), figure("go_memory_used_bytes", 1024, "go_memory_type", "other"),
			figure("process_resident_memory_bytes", 4<<20),
		}, nil
	}
	s := expect.Get(o.look(t.Context()))(t)
	s.Facts = slices.DeleteFunc(s.Facts, func(f Fact) bool { return f.Name == "warning" }) // about the machine's folders
	var got strings.Builder
	expect.OK(t, s.WriteText(&got))
	want := `registry     VERSION, up 3 days
address      :443 as https://registry.example
services     gateway ready; beware
             authsvc NOT READY: url/store: no room
assets       active 12
data         /data: assets 2.0 KiB; disk: 0 B of 0 B free
backup       3 hours ago, checked: a.tar, 3.0 MiB; a later one failed 60 s ago
certificate  expires in 80 days, of registry.example, next attempt in 60 min, failures: 2, the last: ?[2Jwrong?PROBLEM
public log   7 leaves, signed up to 0 s ago
             witness w: cosignatures given 5, missing 1
audit log    3 entries, the chain is whole
limits       5 admitted, refused: key-read 4
streams      6 open, 0 ended as too slow, 0 refused
webhooks     failing 1
behind       search 48 s
memory       4.0 MiB resident, of which Go uses 2.0 KiB
PROBLEM      authsvc is not ready: url/store: no room
PROBLEM      the last backup failed: x
`
	screen := strings.NewReplacer(buildinfo.Read().String(), "VERSION", o.config.Data, "/data").Replace(got.String())
	expect.NoDiff(t, cmp.Diff(want, screen), "the screen differs")
}

// TestAnEndlessStatusIsCutOff has a control socket whose answer never ends. Reading the status must end with an
// error.
func TestAnEndlessStatusIsCutOff(t *testing.T) {
	dir, err := os.MkdirTemp("", "control") // the path of a socket must be short
	expect.OK(t, err)
	defer os.RemoveAll(dir)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	}))
	server.Listener.Close()
	server.Listener, err = net.Listen("unix", filepath.Join(dir, controlFile))
	expect.OK(t, err)
	server.Start()
	defer server.Close()
	expect.SaysOf(t, "read the registry's status", "")(ReadStatus(t.Context(), dir))
}
