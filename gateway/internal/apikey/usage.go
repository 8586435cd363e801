package apikey

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// Reporter takes reports about the use of keys. For a report that it will never accept, it returns a fault of
// kind Invalid.
type Reporter interface {
	ReportUsage(ctx context.Context, r authapi.ReportUsageRequest) error
}

const (
	day         = 24 * time.Hour
	reportEvery = 2 * time.Second
	lastReport  = time.Second // timeout of the last report, when Run ends
	maxPending  = 10_000      // maximum number of uses, and of counts, that wait for a report; further ones are dropped
)

// Usage counts how API keys are used, and reports the counts from time to time.
// If the process is killed, the counts since the last report are lost. A Usage is
// safe for concurrent use.
type Usage struct {
	to  Reporter
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	uses   map[use]int64 // maps a use to its last time, in µs
	counts map[count]int64
	today  string    // the day of the last request
	until  time.Time // when today ends
}

type use struct {
	key    string
	secret int
	addr   netip.Addr
}

type count struct{ key, day, class string }

// NewUsage returns a counter. Once Run is called, the counter sends its reports to the given Reporter.
func NewUsage(to Reporter, log *slog.Logger, now func() time.Time) *Usage {
	return &Usage{to: to, log: log, now: now, uses: map[use]int64{}, counts: map[count]int64{}}
}

// Used remembers that a key was used from an address. It does nothing if the address is invalid.
func (u *Usage) Used(k authapi.Key, from netip.Addr) {
	if !from.IsValid() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.uses) < maxPending {
		u.uses[use{k.KeyID, k.Secret, from.Unmap().WithZone("")}] = u.now().UnixMicro()
	}
}

// Count counts a request of a class with a key.
func (u *Usage) Count(keyID, class string) {
	now := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !now.Before(u.until) || now.Before(u.until.Add(-day)) {
		u.until = now.UTC().Truncate(day).Add(day)
		u.today = now.UTC().Format(time.DateOnly)
	}
	if len(u.counts) < maxPending {
		u.counts[count{keyID, u.today, class}]++
	}
}

// Run reports every two seconds until ctx is done, and once more at the end.
func (u *Usage) Run(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			u.tryReport(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReport)
			defer cancel()
			u.tryReport(last)
			return
		}
	}
}

func (u *Usage) tryReport(ctx context.Context) {
	if err := u.report(ctx); err != nil && !errors.Is(err, context.Canceled) {
		u.log.Debug("the use of API keys could not be reported; trying again", "error", err)
	}
}

// report sends all counts, in several reports if necessary. If a report fails, its counts wait for the next
// report. A report that gets a fault of kind Invalid is dropped.
func (u *Usage) report(ctx context.Context) error {
	for {
		r := u.take()
		if len(r.Uses)+len(r.Counts) == 0 {
			return nil
		}
		err := u.to.ReportUsage(ctx, r)
		switch {
		case fault.KindOf(err) == fault.Invalid:
			u.log.Warn("authsvc refused a report of the use of API keys; it is dropped",
				"uses", len(r.Uses), "counts", len(r.Counts), "error", err)
		case err != nil:
			u.putBack(r)
			return err
		}
	}
}

// take removes as many counts as fit into one report, and returns a report with these counts.
func (u *Usage) take() (r authapi.ReportUsageRequest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for used, micros := range u.uses {
		if len(r.Uses) == authapi.MaxReport {
			break
		}
		r.Uses = append(r.Uses, authapi.Use{KeyID: used.key, Secret: used.secret, Addr: used.addr, Micros: micros})
		delete(u.uses, used)
	}
	for counted, requests := range u.counts {
		if len(r.Counts) == authapi.MaxReport {
			break
		}
		r.Counts = append(r.Counts, authapi.Count{
			KeyID: counted.key, Day: counted.day, Class: counted.class, Requests: requests,
		})
		delete(u.counts, counted)
	}
	return r
}

// putBack adds the content of a report to the counts again.
func (u *Usage) putBack(r authapi.ReportUsageRequest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, back := range r.Uses {
		used := use{back.KeyID, back.Secret, back.Addr}
		u.uses[used] = max(u.uses[used], back.Micros)
	}
	for _, back := range r.Counts {
		u.counts[count{back.KeyID, back.Day, back.Class}] += back.Requests
	}
}
