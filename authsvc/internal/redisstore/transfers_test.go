package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"asset-registry/authsvc/internal/token"
	"asset-registry/shared/redistest"
	"asset-registry/shared/testing/expect"
)

// leap stands for a Redis whose clock is set: it takes a time from the rest of the life of each name, or adds it.
func (s *Store) leap(t *testing.T, ahead time.Duration) {
	t.Helper()
	names, err := s.client.Keys(t.Context(), "*").Result()
	for _, name := range names {
		if left := s.client.PTTL(t.Context(), name).Val(); left > 0 && err == nil {
			err = s.client.PExpire(t.Context(), name, left-ahead).Err() // removes the name if nothing is left
		}
	}
	expect.OK(t, err)
}

// TestAClockOfRedisThatIsSet sets the clock of Redis once. A transfer lasts 90 days by the clock of Redis, and the end of a
// session 4 hours and a minute. A clock that is further ahead forgets them; a clock that is behind does not matter.
func TestAClockOfRedisThatIsSet(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	s := open(t, redistest.Start(t).URL())
	for ahead, c := range map[time.Duration]struct{ transfer, session bool }{
		-10 * year: {true, true}, -day: {true, true}, -time.Minute: {true, true}, time.Minute: {true, true},
		day: {true, false}, 10 * year: {false, false},
	} {
		made := token.Transfer{ID: fmt.Sprint(ahead), Broker: "b", Expires: time.Now().Add(90 * day).UnixMicro()}
		expect.OK(t, s.CreateTransfer(t.Context(), made))
		expect.OK(t, s.EndSession(t.Context(), made.ID, 4*time.Hour+time.Minute))
		s.leap(t, ahead)
		_, err := s.LoadTransfer(t.Context(), made.ID)
		ended, err2 := s.SessionEnded(t.Context(), made.ID)
		if (err == nil) != c.transfer || ended != c.session || err2 != nil {
			t.Errorf("Redis %v ahead: got the transfer: %v, the session ended: %t, %v; want %+v", ahead, err, ended, err2, c)
		}
		s.leap(t, -ahead)
	}
}

// TestALateChangeReplacesNoUse sends changes by callers that read a transfer too early: another caller has
// claimed or used the transfer since. It also restores the transfer from a copy that is older than the use. The
// use must stay.
func TestALateChangeReplacesNoUse(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	expires := time.Now().Add(time.Hour).UnixMicro()
	made := token.Transfer{ID: "one", Broker: "b", Expires: expires}
	expect.OK(t, s.CreateTransfer(t.Context(), made))
	claim := token.Claim{AssetID: "asset", Generation: 1, Date: 5, Expires: expires}
	expect.Get(s.ClaimTransfer(t.Context(), "one", claim))(t)
	want, err := s.SettleTransfer(t.Context(), "one", claim, true)
	if err != nil || want.AssetID != "asset" {
		t.Fatalf("settle: got %+v, %v; want the use by the asset", want, err)
	}
	for _, late := range [][]any{ // the values of claimFields before and after a change
		{lifeOf(expires), "", "", "5 another", "1 1"},
		{lifeOf(expires), "5 asset", fmt.Sprint("1 ", expires), "", ""},
	} {
		expect.OK(t, replace.Run(t.Context(), s.client, []string{transferKey("one")}, late...).Err())
	}
	made.Claim = token.Claim{AssetID: "another", Generation: 1, Date: 6, Expires: expires}
	expect.OK(t, s.RestoreTransfer(t.Context(), made))
	if left, err := s.client.PTTL(t.Context(), transferKey("one")).Result(); err != nil || left >= 0 {
		t.Errorf("got %v until the use expires, %v; want no end", left, err)
	}
	expect.Value(t, want, "")(s.LoadTransfer(t.Context(), "one"))
}

// TestTransfersAreRestored restores three transfers of another store: one is not claimed, one is claimed, and one
// is used. It restores each of them twice. Only the used one must never expire.
func TestTransfersAreRestored(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	now := time.Now()
	unused := token.Transfer{
		ID: "unused", Broker: "b", OwnerHash: "o", TransferHash: "t", Date: 1, Expires: now.Add(time.Hour).UnixMicro(),
	}
	claimed := unused
	claimed.ID = "claimed"
	claimed.Claim = token.Claim{AssetID: "asset", Generation: 2, Date: 5, Expires: now.Add(2 * time.Hour).UnixMicro()}
	used := unused
	used.ID, used.AssetID, used.Date, used.Expires = "used", "asset", 6, 0
	for _, c := range []struct {
		want token.Transfer
		life time.Duration // time until the transfer expires; 0: it never does
	}{{unused, time.Hour}, {claimed, 2 * time.Hour}, {used, 0}} {
		for range 2 {
			expect.OK(t, s.RestoreTransfer(t.Context(), c.want))
			expect.Value(t, c.want, "")(s.LoadTransfer(t.Context(), c.want.ID))
			left, err := s.client.PTTL(t.Context(), transferKey(c.want.ID)).Result()
			if err != nil || (left < 0) != (c.life == 0) || c.life > 0 && (left > c.life || left < c.life-10*time.Minute) {
				t.Errorf("%s: got %v until the end, %v; want %v", c.want.ID, left, err, c.life)
			}
		}
	}
	older := claimed
	older.Claim = token.Claim{}
	expect.OK(t, s.RestoreTransfer(t.Context(), older))
	expect.Value(t, claimed, "from before the claim")(s.LoadTransfer(t.Context(), claimed.ID))
	broken := used
	broken.ID = "broken"
	expect.OK(t, s.client.Set(t.Context(), transferKey(broken.ID), "no hash", 0).Err())
	expect.Fails(t, s.RestoreTransfer(t.Context(), broken), "restore over a value of another type")
}

// TestADamagedClaimIsAnError damages a claim while a change of its transfer is in progress. The change must report the
// damage. If it returned an empty transfer instead, the caller would believe that nobody has claimed the transfer.
func TestADamagedClaimIsAnError(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	expect.OK(t, s.CreateTransfer(t.Context(), token.Transfer{ID: "one", Broker: "b"}))
	got, err := s.changeTransfer(t.Context(), "one", func(has token.Transfer) token.Transfer {
		expect.Try(t, s.client.HSet(t.Context(), transferKey("one"), claimField, "x asset").Err())
		return has.Claimed(token.Claim{AssetID: "asset", Generation: 1})
	})
	if err == nil || !strings.Contains(err.Error(), `"x asset"`) {
		t.Errorf("got %+v, %v; want an error with the damaged claim", got, err)
	}
}

// TestAClaimIsTriedAgain lets a request claim a transfer. An older request of the same asset claims it just before the
// first try of the newer request, or just before each of its tries. If only the first try comes too late, the newer
// request must get its claim. If all tries come too late, it must get an error.
func TestAClaimIsTriedAgain(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	expires := time.Now().Add(time.Hour).UnixMicro()
	newer := token.Claim{AssetID: "asset", Generation: 2, Date: 1, Expires: expires}
	for id, late := range map[string]int{"once": 1, "always": changeTries} {
		expect.OK(t, s.CreateTransfer(t.Context(), token.Transfer{ID: id, Broker: "b", Expires: expires}))
		looks := 0
		got, err := s.changeTransfer(t.Context(), id, func(has token.Transfer) token.Transfer {
			if looks++; looks <= late {
				older := token.Claim{AssetID: "asset", Generation: 1, Date: int64(looks), Expires: expires}
				expect.ErrOf(t, nil, "")(s.ClaimTransfer(t.Context(), id, older))
			}
			return has.Claimed(newer)
		})
		if fails := late == changeTries; (err != nil) != fails || !fails && got.Claim != newer {
			t.Errorf("%s too late: got %+v, %v; want the claim %+v, or an error: %t", id, got, err, newer, fails)
		}
	}
}
