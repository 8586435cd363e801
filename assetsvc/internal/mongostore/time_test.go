package mongostore

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/mongotest"
	"asset-registry/shared/testing/expect"
)

// TestPositionsFollowTheStoresClock gives a machine a clock that differs from the store's clock. In some cases, the
// machine's clock also jumps after both clocks were read. Positions must follow the store's clock, unless it is far
// ahead of the machine's clock even without the jump.
func TestPositionsFollowTheStoresClock(t *testing.T) {
	for _, c := range []struct {
		name              string
		ahead, jump, want time.Duration // ahead, jump: of the machine's clock; want: lead over the store's clock
	}{
		{"both agree", 0, 0, 0},
		{"100 ms behind", -100 * time.Millisecond, 0, 0},
		{"100 ms ahead", 100 * time.Millisecond, 0, 0},
		{"a day ahead", 24 * time.Hour, 0, 0},
		{"a jump of an hour ahead", 0, time.Hour, 0},
		{"a jump of an hour back", 0, -time.Hour, 0},
		{"a clock that was an hour behind is set", -time.Hour, time.Hour, 0},
		{"the store's clock is an hour ahead", -time.Hour, 0, -time.Hour},
		{"the store's clock is a minute ahead", -time.Minute, 0, -time.Minute},
		{"the store's clock is a day ahead", -24 * time.Hour, 0, -24 * time.Hour},
		{"the store's clock is ten years ahead", -87600 * time.Hour, 0, -87600 * time.Hour},
		{"the store's clock is a minute behind", time.Minute, 0, 0},
		{"the store's clock is ten years behind", 87600 * time.Hour, 0, 0},
		{"a jump of ten years ahead", 0, 87600 * time.Hour, 0},
		{"a jump of ten years back", 0, -87600 * time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ahead := c.ahead
			s := newStoreTime(func() time.Time { return time.Now().Add(ahead) }, nil, slog.New(slog.DiscardHandler))
			s.store, s.at = time.Now(), time.Now()
			time.Sleep(time.Minute)
			ahead += c.jump
			expect.Equal(t, time.Until(s.now()), c.want, "%s, positions, ahead", c.name)
		})
	}
}

// TestAMachineBehindFollowsTwoWitnesses has a machine whose clock is an hour behind the store's.
func TestAMachineBehindFollowsTwoWitnesses(t *testing.T) {
	s := open(t, mongotest.Start(t), "behind", time.Now)
	behind := func() time.Time { return time.Now().Add(-time.Hour) }
	for _, c := range []struct {
		name string
		peer func() time.Time // nil: no peer is known
		last time.Time
		want bool
	}{
		{"the peer and the newest position", time.Now, time.Now(), true},
		{"the peer alone", time.Now, behind(), false},
		{"the newest position alone", behind, time.Now(), false},
		{"no peer is known", nil, time.Now(), false},
	} {
		peers := func() (all []time.Time) {
			if c.peer != nil {
				all = append(all, c.peer())
			}
			return all
		}
		clock := newStoreTime(behind, peers, slog.New(slog.DiscardHandler))
		expect.Get(clock.measure(t.Context(), s.db, c.last.UnixMicro()))(t)
		expect.Equal(t, clock.now().Sub(behind()) > time.Minute, c.want, "%s, the store's time", c.name)
	}
	if got, err := s.Clock(t.Context()); err != nil || time.Since(got).Abs() > time.Minute {
		t.Errorf("got the store's clock %v and %v, want the time", got, err)
	}
}
