package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"asset-registry/deploy/registry/certificate"
	"asset-registry/shared/adminapi"
	"asset-registry/shared/buildinfo"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/private"
	"asset-registry/shared/telemetry/export"
)

// ErrProblems is returned together with a status that lists problems.
var ErrProblems = errors.New("the registry has problems")

// Status is the state of a running registry, for its operator. Counters start at zero when the registry starts.
type Status struct {
	Version     string             `json:"version"`
	Started     time.Time          `json:"started"`
	Address     string             `json:"address"` // address of the public listener
	BaseURL     string             `json:"baseURL,omitempty"`
	Data        string             `json:"data"`
	Sandbox     bool               `json:"sandbox"`
	Problems    []Problem          `json:"problems"`
	Warnings    []string           `json:"warnings,omitempty"` // about directories that others may enter or write
	Services    []Service          `json:"services"`
	Assets      map[string]int64   `json:"assets"` // number of assets by state
	Stores      map[string]int64   `json:"stores"` // bytes
	Disk        Disk               `json:"disk"`
	Backup      LastBackup         `json:"backup"`
	Expires     time.Time          `json:"certificateExpires,omitzero"` // zero: the registry has no certificate
	Certificate *certificate.State `json:"acme,omitempty"`
	Log         PublicLog          `json:"publicLog"`
	Audit       Audit              `json:"audit"`
	Limits      Limits             `json:"limits"`
	Streams     Streams            `json:"streams"`
	Webhooks    map[string]int64   `json:"webhooks"` // number of webhooks by state
	Behind      map[string]float64 `json:"behindSeconds"`
	Memory      Memory             `json:"memory"`
}

// Problem is a fact that the operator must check. Alert is the heading in docs/runbook.md that says what to do. It
// is "" if the text in Says is enough.
type Problem struct {
	Alert string `json:"alert,omitempty"`
	Says  string `json:"says"`
}

// Service is one of the services in the process.
type Service struct {
	Name     string   `json:"name"`
	Ready    bool     `json:"ready"`
	Says     string   `json:"says,omitempty"` // why the service is not ready
	Warnings []string `json:"warnings,omitempty"`
}

// Disk describes the disk with the smallest free share, of all disks with data. Its sizes are in bytes.
type Disk struct {
	Free int64 `json:"free"`
	Size int64 `json:"size"`
}

// PublicLog is the state of the public log.
type PublicLog struct {
	Leaves    int64               `json:"leaves"`
	Behind    float64             `json:"behindSeconds"`
	Damaged   bool                `json:"damaged"`
	Witnesses map[string]Cosigned `json:"witnesses,omitempty"`
}

// Cosigned counts the cosignatures that a witness gave, and the cosignatures that the witness failed to give.
type Cosigned struct {
	Given   int64 `json:"given"`
	Missing int64 `json:"missing"`
}

// Audit is the result of a check of the audit log, made for this status.
type Audit struct {
	Entries  int64    `json:"entries"`
	Problems []string `json:"problems,omitempty"`
	Fault    string   `json:"fault,omitempty"` // why the log could not be checked
}

// Limits counts the requests that the rate limits admitted and refused.
type Limits struct {
	Admitted int64            `json:"admitted"`
	Refused  map[string]int64 `json:"refused"` // by policy; a policy that refused no request is absent
}

// Streams counts streams and long polls.
type Streams struct {
	Open    int64 `json:"open"`
	Slow    int64 `json:"slow"` // streams ended because the client did not read
	Refused int64 `json:"refused"`
}

// Memory has the memory that Go uses, and the resident memory of the process, in bytes.
type Memory struct {
	Used     int64 `json:"used"`
	Resident int64 `json:"resident"`
}

// Time limits for making a status, and its greatest size. The check of the audit log has its own limit, because it
// reads the whole log.
const (
	statusWithin = 10 * time.Second
	auditWithin  = 5 * time.Second
	maxStatus    = 1 << 20 // bytes
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
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Version: buildinfo.Read().String(), Started: o.started, Address: o.address, BaseURL: o.config.BaseURL,
		Data: data, Sandbox: o.config.Sandbox, Problems: []Problem{}, Audit: o.checkAudit(ctx),
	}
	for _, p := range o.parts {
		s.Services = append(s.Services, p.ask(ctx))
	}
	told, err := o.figures()
	if err != nil {
		return Status{}, err
	}
	s.take(told)
	if s.Backup, err = readBackup(data); err != nil {
		return Status{}, err
	}
	if o.certificate != nil {
		state := o.certificate()
		s.Certificate = &state
	}
	warnings, open := private.Look(o.config.places()...)
	if s.Warnings = warnings; open != nil { // the mode was changed after the start
		s.Problems = append(s.Problems, Problem{Says: open.Error()})
	}
	s.judge(told, time.Now())
	return s, nil
}

func (o observer) checkAudit(ctx context.Context) Audit {
	ctx, cancel := context.WithTimeout(ctx, auditWithin)
	defer cancel()
	found, err := o.audit(ctx)
	a := Audit{Entries: found.Entries, Problems: found.Problems}
	if err != nil {
		a.Fault = err.Error()
	}
	return a
}

// ask asks whether a service is ready.
func (p part) ask(ctx context.Context) Service {
	s := Service{Name: p.name}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://registry/readyz", nil)
	if err != nil {
		s.Says = err.Error()
		return s
	}
	resp, err := httpserver.InProcess(p.handler).RoundTrip(r)
	if err != nil {
		s.Says = err.Error()
		return s
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.Says = faulthttp.Read(resp).Error()
		return s
	}
	s.Ready = true
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		s.Ready, s.Says = false, err.Error()
	}
	return s
}

// take fills the status from the figures of the metrics.
func (s *Status) take(told []export.Figure) {
	s.Assets, s.Stores, s.Webhooks = map[string]int64{}, map[string]int64{}, map[string]int64{}
	s.Behind, s.Limits.Refused = map[string]float64{}, map[string]int64{}
	s.Log.Witnesses = map[string]Cosigned{}
	for _, f := range told {
		count := int64(f.Value)
		switch f.Name {
		case "registry_assets_stored":
			s.Assets[f.Labels["state"]] = count
		case "registry_store_size_bytes":
			s.Stores[f.Labels["store"]] = count
		case "registry_tls_expires_seconds":
			if count > 0 {
				s.Expires = time.Unix(count, 0).UTC()
			}
		case "registry_log_size":
			s.Log.Leaves = count
		case "registry_log_behind_seconds":
			s.Log.Behind = f.Value
		case "registry_log_damaged":
			s.Log.Damaged = count > 0
		case "registry_log_cosignatures_total":
			w := s.Log.Witnesses[f.Labels["witness"]]
			if f.Labels["result"] == "given" {
				w.Given = count
			} else {
				w.Missing = count
			}
			s.Log.Witnesses[f.Labels["witness"]] = w
		case "registry_limits_decisions_total":
			if f.Labels["outcome"] == "admitted" {
				s.Limits.Admitted += count
			}
		case "registry_limits_refused_total":
			if count > 0 {
				s.Limits.Refused[f.Labels["policy"]] = count
			}
		case "registry_gateway_streams":
			s.Streams.Open = count
		case "registry_gateway_streams_slow_total":
			s.Streams.Slow = count
		case "registry_gateway_streams_refused_total":
			s.Streams.Refused += count
		case "registry_webhooks_endpoints":
			s.Webhooks[f.Labels["state"]] = count
		case "registry_webhooks_behind_seconds":
			s.Behind["webhooks"] = f.Value
		case "registry_search_behind_seconds":
			s.Behind["search"] = f.Value
		case "registry_files_behind_seconds":
			s.Behind["files"] = f.Value
		case "go_memory_used_bytes":
			s.Memory.Used += count
		case "process_resident_memory_bytes":
			s.Memory.Resident = count
		}
	}
	s.Disk = leastDisk(told)
}

// leastDisk returns the disk with the smallest free share.
func leastDisk(told []export.Figure) (least Disk) {
	disks := map[string]Disk{}
	for _, f := range told {
		d := disks[f.Labels["store"]]
		switch f.Name {
		case "registry_store_disk_free_bytes":
			d.Free = int64(f.Value)
		case "registry_store_disk_size_bytes":
			d.Size = int64(f.Value)
		default:
			continue
		}
		disks[f.Labels["store"]] = d
	}
	for _, d := range disks {
		if least.Size == 0 || d.share() < least.share() {
			least = d
		}
	}
	return least
}

// share returns the free share of the disk, from 0 to 1. It is 1 if the size is not known.
func (d Disk) share() float64 {
	if d.Size == 0 {
		return 1
	}
	return float64(d.Free) / float64(d.Size)
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

// The limits of the other alerts that a status reports.
const (
	backupWithin      = 36 * time.Hour
	certificateWithin = 14 * 24 * time.Hour
	leastFree         = 0.2 // part of a disk that must be free
)

// judge finds the problems and adds them to the status.
func (s *Status) judge(told []export.Figure, now time.Time) {
	found := func(alert, says string, args ...any) {
		s.Problems = append(s.Problems, Problem{alert, fmt.Sprintf(says, args...)})
	}
	for _, service := range s.Services {
		if !service.Ready {
			found("", "%s is not ready: %s", service.Name, service.Says)
		}
	}
	for _, r := range rules {
		for _, f := range told {
			if f.Name == r.metric && f.Value > r.above {
				says := r.says
				if r.above > 0 {
					says = fmt.Sprintf(says, f.Value)
				}
				found(r.alert, "%s", says)
			}
		}
	}
	if s.Disk.share() < leastFree {
		found("StoreDiskNearFull", "%.0f %% of the disk are free", 100*s.Disk.share())
	}
	if age := now.Sub(s.Backup.Finished); age > backupWithin || s.Backup.isWrong(now) {
		found("BackupTooOld", "no backup was made within %.0f hours", backupWithin.Hours())
	}
	if s.Backup.Fault != "" {
		found("", "the last backup failed: %s", s.Backup.Fault)
	}
	secured := slices.ContainsFunc(told, func(f export.Figure) bool { return f.Name == "registry_tls_expires_seconds" })
	switch {
	case secured && s.Expires.IsZero():
		found("CertificateExpires", "there is no certificate")
	case secured && s.Expires.Sub(now) < certificateWithin:
		found("CertificateExpires", "the certificate expires at %s", s.Expires.Format(time.RFC3339))
	}
	if len(s.Audit.Problems) > 0 {
		found("AuditLogBroken", "problems of the audit log: %d", len(s.Audit.Problems))
	}
	if s.Audit.Fault != "" {
		found("AuditLogUnchecked", "the audit log could not be checked: %s", s.Audit.Fault)
	}
}

// answerStatus answers a request with the status that the function `look` returns.
func answerStatus(look func(context.Context) (Status, error), log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := look(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if err := json.NewEncoder(w).Encode(s); err != nil {
			log.Warn("answer the status", "error", err)
		}
	}
}

// ReadStatus asks the registry that runs on a data directory for its status. It does not open the stores.
func ReadStatus(ctx context.Context, dir string) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*statusWithin)
	defer cancel()
	resp, err := ask(ctx, dir, http.MethodGet, statusPath)
	if errors.Is(err, errNoneRuns) {
		return Status{}, fmt.Errorf("no registry runs on the data directory %s", dir)
	}
	if err != nil {
		return Status{}, fmt.Errorf("ask the registry for its status: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	switch {
	case err != nil:
		return Status{}, fmt.Errorf("ask the registry for its status: %w", err)
	case resp.StatusCode != http.StatusOK:
		return Status{}, fmt.Errorf("the registry tells no status: it answered %d %s", resp.StatusCode, text)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return Status{}, fmt.Errorf("read the registry's status: %w", err)
	}
	return s, nil
}
