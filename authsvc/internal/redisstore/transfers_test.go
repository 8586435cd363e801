package redisstore

import (
	"fmt"
	"testing"
	"time"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/redistest"
)

// TestALateChangeReplacesNoUse sends changes of callers that have read a transfer before another one claimed it, or before
// that one used it. It also restores the transfer from before the use.
func TestALateChangeReplacesNoUse(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	expires := time.Now().Add(time.Hour).UnixMicro()
	made := token.Transfer{ID: "one", Broker: "b", Expires: expires}
	if err := s.CreateTransfer(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	claim := token.Claim{AssetID: "asset", Generation: 1, Date: 5, Expires: expires}
	if _, err := s.ClaimTransfer(t.Context(), "one", claim); err != nil {
		t.Fatal(err)
	}
	want, err := s.SettleTransfer(t.Context(), "one", claim, true)
	if err != nil || want.AssetID != "asset" {
		t.Fatalf("settle: got %+v, %v; want the use by the asset", want, err)
	}
	for _, late := range [][]any{ // what claimFields gives before and after a change
		{lifeOf(expires), "", "", "5 another", "1 1"},
		{lifeOf(expires), "5 asset", fmt.Sprint("1 ", expires), "", ""},
	} {
		if err := replace.Run(t.Context(), s.client, []string{transferKey("one")}, late...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	made.Claim = token.Claim{AssetID: "another", Generation: 1, Date: 6, Expires: expires}
	if err := s.RestoreTransfer(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if left, err := s.client.PTTL(t.Context(), transferKey("one")).Result(); err != nil || left >= 0 {
		t.Errorf("got %v until the use expires, %v; want no end", left, err)
	}
	if got, err := s.LoadTransfer(t.Context(), "one"); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}
