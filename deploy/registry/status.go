package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"asset-registry/deploy/registry/certificate"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/buildinfo"
	"asset-registry/shared/command"
	"asset-registry/shared/errs"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/private"
	"asset-registry/shared/telemetry/export"
)

// ErrProblems is returned together with a status that lists problems.
var ErrProblems = errors.New("the registry has problems")

// Status tells how a running registry is, for its operator. Counters start at zero when the registry starts.
type Status struct {
	Facts    []Fact    `json:"facts"`
	Problems []Problem `json:"problems"`
}

// Fact is a line of a status.
type Fact struct {
	Name string `json:"name"` // subject of the line; "": the subject of the line above
	Says string `json:"says"`
}

// Problem is a fact that the operator must check. Alert is the heading in docs/runbook.md that says what to do. It
// is "" if the text in Says is enough.
type Problem struct {
	Alert string `json:"alert,omitempty"`
	Says  string `json:"says"`
}

func (s *Status) tell(name, format string, args ...any) {
	s.Facts = append(s.Facts, Fact{name, fmt.Sprintf(format, args...)})
}

func (s *Status) found(alert, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{alert, fmt.Sprintf(format, args...)})
}

// Time limits for making a status, and its greatest size. The check of the audit log has its own limit, because it
// reads the whole log.
const (
	statusWithin = 10 * time.Second
	auditWithin  = 5 * time.Second
)

// part is one of the services in this process.
type part struct {
	name    string
	handler http.Handler
}

// observer collects the status of this process.
type observer struct {
	config      Config
	address     string
	started     time.Time
	parts       []part
	figures     func() ([]export.Figure, error)
	certificate func() certificate.State // nil: the registry does not use ACME
	audit       func(context.Context) (adminapi.Verification, error)
}

// look collects the whole status once.
func (o observer) look(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	data, err := filepath.Abs(o.config.Data)
	told, err2 := o.figures()
	backup, err3 := readBackup(data)
	if err := errors.Join(err, err2, err3); err != nil {
		return Status{}, err
	}
	s, f, now := Status{Problems: []Problem{}}, figures(told), time.Now()
	s.tell("registry", "%s, up %s", buildinfo.Read(), span(now.Sub(o.started)))
	at := o.address
	if o.config.BaseURL != "" {
		at += " as " + o.config.BaseURL
	}
	if o.config.Sandbox {
		at += "; SANDBOX KEYS ARE ON"
	}
	s.tell("address", "%s", at)
	name := "services"
	for _, p := range o.parts {
		warnings, err := p.ask(ctx)
		if err != nil {
			s.tell(name, "%s NOT READY: %v", p.name, err)
			s.found("", "%s is not ready: %v", p.name, err)
		} else {
			s.tell(name, "%s %s", p.name, strings.Join(append([]string{"ready"}, warnings...), "; "))
		}
		name = ""
	}
	s.tell("assets", "%s", counted(f.by("registry_assets_stored", "state")))
	s.judge(f)
	s.tellData(data, f)
	s.tellBackup(backup, now)
	s.tellCertificate(f, o.certificate, now)
	s.tell("public log", "%.0f leaves, signed up to %s ago",
		f.sum("registry_log_size"), seconds(f.sum("registry_log_behind_seconds")))
	given := f.by("registry_log_cosignatures_total", "witness", "result", "given")
	missing := f.by("registry_log_cosignatures_total", "witness", "result", "missing")
	for _, witness := range slices.Sorted(maps.Keys(f.by("registry_log_cosignatures_total", "witness"))) {
		s.tell("", "witness %s: cosignatures given %.0f, missing %.0f", witness, given[witness], missing[witness])
	}
	if o.audit != nil {
		s.tellAudit(ctx, o.audit)
	}
	s.tell("limits", "%.0f admitted, refused: %s", f.by("registry_limits_decisions_total", "outcome")["admitted"],
		counts(f.by("registry_limits_refused_total", "policy"), number))
	s.tell("streams", "%.0f open, %.0f ended as too slow, %.0f refused", f.sum("registry_gateway_streams"),
		f.sum("registry_gateway_streams_slow_total"), f.sum("registry_gateway_streams_refused_total"))
	s.tell("webhooks", "%s", counted(f.by("registry_webhooks_endpoints", "state")))
	var behind []string
	for _, what := range []string{"files", "search", "webhooks"} {
		for _, is := range f.by("registry_"+what+"_behind_seconds", "") {
			if is >= lagging {
				behind = append(behind, what+" "+seconds(is))
			}
		}
	}
	s.tell("behind", "%s", cmp.Or(strings.Join(behind, ", "), "none"))
	s.tell("memory", "%s resident, of which Go uses %s",
		size(f.sum("process_resident_memory_bytes")), size(f.sum("go_memory_used_bytes")))
	warnings, open := private.Look(o.config.places()...)
	for _, says := range warnings { // about directories that others may enter or write
		s.tell("warning", "%s", says)
	}
	if open != nil { // the mode was changed after the start
		s.found("", "%v", open)
	}
	return s, nil
}

// problems returns the problems of the status, for the start page of the console. It does not check the audit log,
// which would read all of it. It returns an error until the registry has started.
func (o *observer) problems(ctx context.Context) ([]string, error) {
	if o == nil {
		return nil, errors.New("the registry is starting: ask again in a moment")
	}
	brief := *o
	brief.audit = nil
	s, err := brief.look(ctx)
	found := []string{}
	for _, p := range s.Problems {
		found = append(found, p.Says)
	}
	return found, err
}

// ask returns the warnings of a service, or the reason why it is not ready.
func (p part) ask(ctx context.Context) (warnings []string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://registry/readyz", nil)
	if err != nil {
		return nil, err
	}
	resp, err := httpserver.InProcess(p.handler).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, faulthttp.Read(resp)
	}
	var answer struct{ Warnings []string }
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return answer.Warnings, err
}

// figures are the metrics of the process.
type figures []export.Figure

// by adds up a metric for each value of a label. It takes only figures that have the other labels, which are pairs of
// a name and a value.
func (f figures) by(metric, label string, others ...string) map[string]float64 {
	sums := map[string]float64{}
	for _, one := range f {
		if one.Name == metric && (len(others) == 0 || one.Labels[others[0]] == others[1]) {
			sums[one.Labels[label]] += one.Value
		}
	}
	return sums
}

func (f figures) sum(metric string) (sum float64) {
	for _, value := range f.by(metric, "") {
		sum += value
	}
	return sum
}

// rule is an alert that fires if a metric is above a limit. A status reports it immediately. The same alert in
// deploy/observability/rules first waits for some minutes.
type rule struct {
	alert, metric string
	above         float64
	says          string
}

var rules = []rule{
	{"PublicLogBehind", "registry_log_behind_seconds", 60, "the public log is %.0f s behind"},
	{"PublicLogDamaged", "registry_log_damaged", 0, "the public log is damaged"},
	{"SearchBehind", "registry_search_behind_seconds", 300, "the index of the search is %.0f s behind"},
	{"FilesBehind", "registry_files_behind_seconds", 300, "files are %.0f s behind the feed"},
	{"WebhooksBehind", "registry_webhooks_behind_seconds", 30, "webhooks are %.0f s behind"},
}

// lagging is the number of seconds from which a service is shown as behind. An idle one looks once a second.
const lagging = 5

// The limits of the other alerts that a status reports.
const (
	backupWithin      = 36 * time.Hour
	certificateWithin = 14 * 24 * time.Hour
	leastFree         = 0.2 // part of a disk that must be free
)

// judge finds the problems that the rules name.
func (s *Status) judge(f figures) {
	for _, r := range rules {
		switch value := f.sum(r.metric); {
		case value <= r.above:
		case r.above == 0:
			s.found(r.alert, "%s", r.says)
		default:
			s.found(r.alert, r.says, value)
		}
	}
}

// tellData tells the sizes of the stores, and of the disk with the smallest free share.
func (s *Status) tellData(data string, f figures) {
	least, free, all := 1.0, 0.0, 0.0
	frees := f.by("registry_store_disk_free_bytes", "store")
	for store, size := range f.by("registry_store_disk_size_bytes", "store") {
		if share := frees[store] / size; size > 0 && (all == 0 || share < least) {
			least, free, all = share, frees[store], size
		}
	}
	s.tell("data", "%s: %s; disk: %s of %s free", data, counts(f.by("registry_store_size_bytes", "store"), size),
		size(free), size(all))
	if least < leastFree {
		s.found("StoreDiskNearFull", "less than %.0f %% of the disk is free: %s of %s", 100*leastFree, size(free), size(all))
	}
}

func (s *Status) tellBackup(b LastBackup, now time.Time) {
	says := "none"
	if !b.Finished.IsZero() {
		checked := "checked"
		if !b.Checked {
			checked = "NOT CHECKED"
		}
		says = fmt.Sprintf("%s ago, %s: %s, %s", span(now.Sub(b.Finished)), checked, b.File, size(float64(b.Bytes)))
	}
	if age := now.Sub(b.Finished); age > backupWithin || b.isWrong(now) {
		s.found("BackupTooOld", "no backup was made within %.0f hours", backupWithin.Hours())
	}
	if b.Fault != "" {
		says += fmt.Sprintf("; a later one failed %s ago", span(now.Sub(b.Failed)))
		s.found("", "the last backup failed: %s", b.Fault)
	}
	s.tell("backup", "%s", says)
}

const expiresMetric = "registry_tls_expires_timestamp_seconds"

func (s *Status) tellCertificate(f figures, acme func() certificate.State, now time.Time) {
	says, expires := []string{"none"}, time.Unix(int64(f.sum(expiresMetric)), 0).UTC()
	isSecured := len(f.by(expiresMetric, "")) > 0
	switch {
	case isSecured && expires.Unix() == 0:
		s.found("CertificateExpires", "there is no certificate")
	case isSecured:
		says[0] = "expires in " + span(expires.Sub(now))
		if expires.Sub(now) < certificateWithin {
			s.found("CertificateExpires", "the certificate expires at %s", expires.Format(time.RFC3339))
		}
	}
	if acme != nil {
		a := acme()
		says = append(says, "of "+a.Host)
		if !a.Next.IsZero() {
			says = append(says, "next attempt in "+span(a.Next.Sub(now)))
		}
		if a.Failures > 0 {
			says = append(says, fmt.Sprintf("failures: %d, the last: %s", a.Failures, a.Cause))
		}
	}
	s.tell("certificate", "%s", strings.Join(says, ", "))
}

// tellAudit checks the audit log.
func (s *Status) tellAudit(ctx context.Context, check func(context.Context) (adminapi.Verification, error)) {
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	found, err := check(ctx)
	switch {
	case err != nil:
		s.tell("audit log", "NOT CHECKED: %v", err)
		s.found("AuditLogUnchecked", "the audit log could not be checked: %v", err)
	case len(found.Problems) > 0:
		s.tell("audit log", "%d entries, BROKEN: %s", found.Entries, strings.Join(found.Problems, "; "))
		s.found("AuditLogBroken", "problems of the audit log: %d", len(found.Problems))
	default:
		s.tell("audit log", "%d entries, the chain is whole", found.Entries)
	}
}

// WriteText writes the status as text that fits on one screen.
func (s Status) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, f := range s.Facts {
		fmt.Fprintf(w, "%s\t%s\n", f.Name, command.Plain(f.Says))
	}
	for _, p := range s.Problems {
		hint := ""
		if p.Alert != "" {
			hint = " (docs/runbook.md#" + strings.ToLower(p.Alert) + ")"
		}
		fmt.Fprintf(w, "PROBLEM\t%s%s\n", command.Plain(p.Says), hint)
	}
	if len(s.Problems) == 0 {
		fmt.Fprint(w, "problems\tnone\n")
	}
	return w.Flush()
}

// counts returns a text with the names and their values, ordered by name. It skips values that are 0.
func counts(of map[string]float64, text func(float64) string) string {
	var says []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] != 0 {
			says = append(says, name+" "+text(of[name]))
		}
	}
	return cmp.Or(strings.Join(says, ", "), "none")
}

// counted returns counts of numbers, or that there is no figure yet.
func counted(of map[string]float64) string {
	if len(of) == 0 {
		return "not known yet"
	}
	return counts(of, number)
}

func number(n float64) string { return fmt.Sprintf("%.0f", n) }

func seconds(s float64) string { return span(time.Duration(s * float64(time.Second))) }

// span returns a duration as text with one unit.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

// size returns a number of bytes as text with one unit.
func size(bytes float64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%.0f B", bytes)
	}
	unit := "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if bytes < 1024 {
			break
		}
		bytes, unit = bytes/1024, next
	}
	return fmt.Sprintf("%.1f %s", bytes, unit)
}

// ReadStatus asks the registry that runs on a data directory for its status. It does not open the stores.
func ReadStatus(ctx context.Context, dir string) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*statusWithin)
	defer cancel()
	text, err := order(ctx, dir, http.MethodGet, statusPath, "status")
	if errors.Is(err, errNoneRuns) {
		return s, fmt.Errorf("%w %s: start it, or name another", err, dir)
	}
	if err == nil {
		err = errs.In(json.Unmarshal([]byte(text), &s), "read the registry's status")
	}
	return s, err
}
