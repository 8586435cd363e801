package apikey

import (
	"context"
	"slices"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// Meter stores the gateways' reports about the use of keys.
type Meter struct {
	uses Recorder
	now  func() time.Time
}

// NewMeter returns a meter that stores reports in the argument `uses`.
func NewMeter(uses Recorder, now func() time.Time) *Meter { return &Meter{uses, now} }

// Report adds a gateway's report. A gateway that gets no answer sends the report again, and Report may then
// count it twice: usage is information, not a bill. Report ignores counts of unknown classes, because a newer
// gateway may have more classes. If a gateway's clock is wrong, a day far from today counts as today, and a time
// in the future as now. A malformed report is a fault of kind Invalid.
func (m *Meter) Report(ctx context.Context, r authapi.ReportUsageRequest) error {
	if len(r.Uses) > authapi.MaxReport || len(r.Counts) > authapi.MaxReport ||
		slices.ContainsFunc(r.Uses, malformedUse) || slices.ContainsFunc(r.Counts, malformedCount) {
		return fault.New(fault.Invalid, fault.Body, "data", "This is not a report about the use of keys.")
	}
	known := slices.DeleteFunc(slices.Clone(r.Counts), func(c authapi.Count) bool {
		return !slices.Contains(authapi.Classes(), c.Class)
	})
	now := m.now().UTC()
	oldest, newest := now.AddDate(0, 0, -UsageDays).Format(time.DateOnly), now.AddDate(0, 0, 1).Format(time.DateOnly)
	for i, c := range known {
		if c.Day < oldest || c.Day > newest {
			known[i].Day = now.Format(time.DateOnly)
		}
	}
	uses := slices.Clone(r.Uses)
	for i := range uses {
		uses[i].Micros = min(uses[i].Micros, now.UnixMicro())
	}
	return m.uses.AddUsage(ctx, uses, known)
}

func malformedUse(u authapi.Use) bool {
	return !IsID(u.KeyID) || !u.Addr.IsValid() || u.Addr.Zone() != ""
}

func malformedCount(c authapi.Count) bool {
	_, err := time.Parse(time.DateOnly, c.Day)
	return err != nil || !IsID(c.KeyID) || c.Requests < 0
}
