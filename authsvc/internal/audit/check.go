package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/telemetry"
)

const (
	page     = 500 // maximum number of entries that one call of the log reads
	attempts = 20  // maximum number of repetitions of a check while changes disturb it
)

// Record is a stored broker or key, in the form that the log has.
type Record struct {
	Subject   string
	Text      []byte // in the form that Encode returns
	Unaudited bool   // the log need not have an entry about the record
}

// Records calls the function `visit` with each stored broker and key, until visit returns an error.
type Records func(ctx context.Context, visit func(Record) error) error

// Checker checks the audit log. It is safe for concurrent use.
type Checker struct {
	log     Log
	records Records
	sealer  *Sealer
	now     func() time.Time
	result  *result // metrics of the last check; nil: not measured

	checking chan struct{} // holds one element while a check runs
}

// NewChecker returns a checker of a log and of the records that the log describes.
func NewChecker(log Log, records Records, sealer *Sealer, now func() time.Time) *Checker {
	return &Checker{log: log, records: records, sealer: sealer, now: now, checking: make(chan struct{}, 1)}
}

// Check reads the whole log. Each entry must follow from the previous one and have a seal of this registry.
// Each broker and key must match the last entry about it. So Check finds a change that somebody made in the
// store without an entry.
//
// Check cannot notice that the last entries were removed from the log and their changes undone. For that, a
// client keeps the last head it saw (adminapi.Follow).
//
// A process runs one check at a time; other calls wait.
func (c *Checker) Check(ctx context.Context) (adminapi.Verification, error) {
	select {
	case c.checking <- struct{}{}:
		defer func() { <-c.checking }()
	case <-ctx.Done():
		return adminapi.Verification{}, fmt.Errorf("check audit log: %w", ctx.Err())
	}
	for try := 0; ; try++ {
		found, err := c.check(ctx)
		if err != nil {
			return found, fmt.Errorf("check audit log: %w", err)
		}
		head, err := c.log.Head(ctx)
		if err != nil {
			return found, fmt.Errorf("check audit log: %w", err)
		}
		// A change during the check looks like a problem, so check again.
		if len(found.Problems) == 0 || head.Seq == found.Entries || try == attempts {
			c.result.record(ctx, len(found.Problems), c.now())
			return found, nil
		}
	}
}

// lastEntry is the last entry about a subject. The log can be long, so the check keeps only a hash of the state
// after the change.
type lastEntry struct {
	seq   int64
	after [sha256.Size]byte
}

// findings collects the problems of one check.
type findings struct {
	problems []string
	lost     []string             // adminapi.Verification.Lost
	last     map[string]lastEntry // the keys are subjects
}

func (f *findings) add(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

func (c *Checker) check(ctx context.Context) (adminapi.Verification, error) {
	f := &findings{problems: []string{}, last: map[string]lastEntry{}}
	head, err := c.checkEntries(ctx, f)
	if err != nil {
		return adminapi.Verification{}, err
	}
	if err := c.records(ctx, f.compare); err != nil {
		return adminapi.Verification{}, err
	}
	for _, subject := range slices.Sorted(maps.Keys(f.last)) {
		f.add("%s, described by entry %d, is gone", subject, f.last[subject].seq)
	}
	return adminapi.Verification{Entries: head.Seq, Head: head.Hash, Problems: f.problems, Lost: f.lost}, nil
}

// checkEntries follows the chain of entries and returns the head to which they lead.
func (c *Checker) checkEntries(ctx context.Context, f *findings) (adminapi.Head, error) {
	chain := adminapi.Follow(adminapi.Head{})
	err := Each(ctx, c.log, 0, func(e adminapi.Entry) error {
		chain.Add(e)
		if fault := c.sealer.fault(e); fault != "" {
			f.add("entry %d %s", e.Seq, fault)
		}
		switch {
		case !recorded(e.Subject):
		case len(e.After) == 0: // the entry is about a removal
			delete(f.last, e.Subject)
		default:
			f.last[e.Subject] = lastEntry{e.Seq, sha256.Sum256(e.After)}
		}
		return nil
	})
	if err != nil {
		return chain.Head, err
	}
	f.problems, f.lost = append(f.problems, chain.End()...), chain.Lost
	head, err := c.log.Head(ctx)
	if err != nil {
		return chain.Head, err
	}
	if head != chain.Head {
		f.add("the log ends with entry %d, and should with %d", chain.Head.Seq, head.Seq)
	}
	return chain.Head, nil
}

// compare compares a stored record with the last entry about it.
func (f *findings) compare(r Record) error {
	e, there := f.last[r.Subject]
	delete(f.last, r.Subject)
	switch {
	case !there && !r.Unaudited:
		f.add("no entry describes %s", r.Subject)
	case there && sha256.Sum256(r.Text) != e.after:
		f.add("%s does not match entry %d, the last about it", r.Subject, e.seq)
	}
	return nil
}

// Lister reads the entries of a log, as Log does.
type Lister interface {
	Entries(ctx context.Context, after int64, limit int) ([]adminapi.Entry, error)
}

// Each calls the function `visit`, in order, with each entry whose number is greater than the argument `after`, until
// `visit` returns an error. It returns the error of `visit` or of the log.
func Each(ctx context.Context, log Lister, after int64, visit func(adminapi.Entry) error) error {
	read := func(after int64) ([]adminapi.Entry, error) { return log.Entries(ctx, after, page) }
	return Pages(after, page, read, func(e adminapi.Entry) int64 { return e.Seq }, visit)
}

// Pages calls the function `visit` with every value of a list, until visit returns an error. The function `read`
// returns up to `size` values after a mark, and `mark` the mark of a value.
func Pages[T, M any](
	after M, size int, read func(after M) ([]T, error), mark func(T) M, visit func(T) error,
) error {
	for {
		found, err := read(after)
		if err != nil {
			return err
		}
		for _, value := range found {
			after = mark(value)
			if err := visit(value); err != nil {
				return err
			}
		}
		if len(found) < size {
			return nil
		}
	}
}

// result is the result of the last check as metrics. Alerts watch it.
type result struct {
	problems metric.Int64Gauge
	checked  metric.Float64Gauge // seconds since the Unix epoch
}

// Measure adds the metrics of checks to a meter. Call it before the first check.
func (c *Checker) Measure(meter metric.Meter) {
	c.result = &result{
		problems: telemetry.Must(meter.Int64Gauge("registry.audit.problems", metric.WithUnit("{problem}"),
			metric.WithDescription("Problems that the last check of the audit log by this process found."))),
		checked: telemetry.Must(meter.Float64Gauge("registry.audit.checked.timestamp", metric.WithUnit("s"),
			metric.WithDescription("Time of the last check of the audit log by this process, since the Unix epoch."))),
	}
}

func (r *result) record(ctx context.Context, problems int, now time.Time) {
	if r == nil {
		return
	}
	r.problems.Record(ctx, int64(problems))
	r.checked.Record(ctx, float64(now.UnixMilli())/1000)
}
