package token

import (
	"testing"
	"time"

	"asset-registry/shared/authapi"
	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
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
		"a minute behind":      {now.Add(-time.Minute), true},
		"a day ahead":          {now.AddDate(0, 0, 1), false},
		"a day behind":         {now.AddDate(0, 0, -1), true},
		"a year behind":        {now.Add(-year), false},
		"ten years ahead":      {now.Add(10 * year), false},
		"ten years behind":     {now.Add(-10 * year), false},
	} {
		s, store, _ := newService(t, "a")
		made, err := s.CreateTransfer(t.Context(), "new", c.created)
		expect.OK(t, err)
		_, err = s.Transfer(t.Context(), authapi.ReadTransferRequest{ID: made.ID}, now)
		if usable := err == nil; usable != c.usable || err != nil && fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: got %v, want it usable: %v", name, err, c.usable)
		}
		expect.OK(t, s.Sweep(t.Context(), c.created))
		if _, err := store.LoadTransfer(t.Context(), made.ID); err != nil {
			t.Errorf("%s: after a sweep by the same clock got %v, want it kept", name, err)
		}
	}
}

// TestAClaimOfAWrongClockEnds claims a transfer with a clock that is ahead. The asset is not written. If the claim's
// time cannot be right, the transfer must be unusable until the next request for the asset. This request must free the
// transfer.
func TestAClaimOfAWrongClockEnds(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		over  bool   // the transfer is unusable
		want  string // the asset that claims the transfer after the next request
	}{
		{clockError - time.Microsecond, false, asset}, {clockError, false, ""}, {clockError + time.Microsecond, true, ""},
	} {
		h := newHandover(t)
		expect.Get(h.ChangeOwner(t.Context(), h.request(), now.Add(c.ahead)))(t)
		if got, err := h.read("", now); (fault.KindOf(err) == fault.NotFound) != c.over || (err == nil) == c.over {
			t.Errorf("%v ahead: got %+v, %v; want it out of use: %t", c.ahead, got, err, c.over)
		}
		h.refuse(t, h.request())
		if got, err := h.read("", now); err != nil || got.Claimed != c.want {
			t.Errorf("%v ahead: got %+v, %v; want it claimed by %q", c.ahead, got, err, c.want)
		}
	}
	h := newHandover(t)
	changed, err := h.ChangeOwner(t.Context(), h.request(), now.Add(2*clockError))
	expect.OK(t, err)
	r := h.request()
	r.Sealed = changed.Sealed // the asset was written
	h.refuse(t, r)
	if got, err := h.read("", now); err != nil || got.AssetID != asset {
		t.Errorf("used by a clock that is ahead: got %+v, %v; want the transfer of the asset", got, err)
	}
}

// refuse sends a request with a wrong token. The service must refuse it, but it sees the sealed record in the request.
func (h *handover) refuse(t *testing.T, r authapi.ChangeOwnerRequest) {
	t.Helper()
	r.TransferHash = authapi.Hash("x")
	expect.FaultOf(t, fault.Forbidden, "a wrong token")(h.ChangeOwner(t.Context(), r, now))
}
