package token

import (
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
)

// TestATransferOfAWrongClockEnds creates transfers with clocks that are right, or a year ahead or behind. A
// transfer of a wrong clock must not be usable.
func TestATransferOfAWrongClockEnds(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		created time.Time
		usable  bool
	}{
		"the right clock":      {now, true},
		"a clock a bit ahead":  {now.Add(time.Minute), true},
		"a clock a year ahead": {now.Add(year), false},
		"a year behind":        {now.Add(-year), false},
	} {
		s, store, _ := newService(t, "a")
		made, err := s.CreateTransfer(t.Context(), "new", c.created)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Transfer(t.Context(), authapi.ReadTransferRequest{ID: made.ID}, now)
		if usable := err == nil; usable != c.usable || err != nil && fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: got %v, want it usable: %v", name, err, c.usable)
		}
		if err := s.Sweep(t.Context(), c.created); err != nil {
			t.Fatal(err)
		}
		if _, err := store.LoadTransfer(t.Context(), made.ID); err != nil {
			t.Errorf("%s: after a sweep by the same clock got %v, want it kept", name, err)
		}
	}
}
