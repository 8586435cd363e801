package admin

import (
	"context"
	"slices"
	"time"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// Meter takes what gateways tell of the use of keys.
type Meter struct{ store Store }

// NewMeter returns a meter that adds to store.
func NewMeter(store Store) *Meter { return &Meter{store} }

// Report adds a gateway's report to what is known. A report whose answer was
// lost, and which is sent again, counts twice: usage is no account.
func (m *Meter) Report(ctx context.Context, r authapi.ReportUsageRequest) error {
	bad := len(r.Uses) > authapi.MaxReport || len(r.Counts) > authapi.MaxReport ||
		slices.ContainsFunc(r.Uses, func(u authapi.Use) bool { return !apikey.IsID(u.KeyID) || !u.Addr.IsValid() || u.Addr.Zone() != "" }) ||
		slices.ContainsFunc(r.Counts, func(c authapi.Count) bool {
			_, err := time.Parse(time.DateOnly, c.Day)
			return !apikey.IsID(c.KeyID) || err != nil || c.Requests < 0 || !slices.Contains(authapi.Classes(), c.Class)
		})
	if bad {
		return fault.New(fault.Invalid, fault.Body, "data", "This is no report of the use of keys.")
	}
	return m.store.AddUsage(ctx, r.Uses, r.Counts)
}
