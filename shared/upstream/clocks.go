package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"asset-registry/shared/fault"
)

const (
	maxOff   = time.Minute            // a clock that is further off the majority's time is wrong
	shownFor = 10 * time.Second       // a reading of a clock counts for this time
	halfDate = 500 * time.Millisecond // the header Date shows the last whole second, so the time is half a second later
)

// Clocks compares the clock of this machine with those of other machines (docs/architecture.md, "Wrong clocks"). It is
// safe for concurrent use.
type Clocks struct {
	own func() time.Time
	log *slog.Logger

	mu    sync.Mutex
	shown map[string]reading // by machine
	split bool               // when they were last compared, no majority agreed
}

// reading says what a clock showed, and when this was, by the monotonic clock of this process.
type reading struct{ clock, at time.Time }

// theStore is the name of the store's clock among the readings.
const theStore = ""

// NewClocks returns Clocks that know only the clock of this machine, the function `own`.
func NewClocks(own func() time.Time, log *slog.Logger) *Clocks {
	return &Clocks{own: own, log: log, shown: map[string]reading{}}
}

// Note records what the clock of another machine shows now.
func (c *Clocks) Note(machine string, clock time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown[machine] = reading{clock, time.Now()}
}

// Others returns what the clocks of other machines show now, without the store's.
func (c *Clocks) Others() (others []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for machine, r := range c.shown {
		if machine != theStore && time.Since(r.at) <= shownFor {
			others = append(others, r.now())
		}
	}
	return others
}

// The method `now` returns what the clock shows now, if nobody has set it.
func (r reading) now() time.Time { return r.clock.Add(time.Since(r.at)) }

// majority returns the median of all clocks, and whether more than half of them are near it. It forgets old readings.
func (c *Clocks) majority() (most time.Time, agreed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []time.Time{c.own()}
	for machine, r := range c.shown {
		if time.Since(r.at) > shownFor {
			delete(c.shown, machine)
			continue
		}
		all = append(all, r.now())
	}
	slices.SortFunc(all, time.Time.Compare)
	most = all[len(all)/2]
	near := 0
	for _, clock := range all {
		if clock.Sub(most).Abs() <= maxOff {
			near++
		}
	}
	return most, 2*near > len(all)
}

// wrong returns an error if a majority agrees, and a clock that shows the given time is wrong.
func (c *Clocks) wrong(clock time.Time) error {
	most, agreed := c.majority()
	off, side := clock.Sub(most), "ahead of"
	if off < 0 {
		side = "behind"
	}
	if !agreed || off.Abs() <= maxOff {
		return nil
	}
	return fmt.Errorf("is %v %s those of most others", off.Abs().Round(time.Second), side)
}

// checkClock notes the header Date of a server, and returns an error if that clock is wrong.
func (p *Pool) checkClock(server, date string) error {
	clock, err := http.ParseTime(date)
	if p.clocks == nil || err != nil {
		return nil
	}
	clock = clock.Add(halfDate)
	p.clocks.Note(server, clock)
	if err := p.clocks.wrong(clock); err != nil {
		return fmt.Errorf("its clock %w", err)
	}
	return nil
}

// Ready returns a check that calls the given one, and then fails if the clock of this machine is wrong. If the given
// store has a method Clock, its clock is read for this.
func (c *Clocks) Ready(next func(context.Context) error, store any) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := next(ctx); err != nil {
			return err
		}
		if s, has := store.(interface {
			Clock(context.Context) (time.Time, error)
		}); has {
			if clock, err := s.Clock(ctx); err == nil {
				c.Note(theStore, clock)
			}
		}
		if err := c.wrong(c.own()); err != nil {
			return fault.New(fault.Unavailable, fault.URL, "readyz", "The clock of this machine %v. Set it (NTP).", err)
		}
		return nil
	}
}

// Warnings returns a function that returns the warnings of the given one, which may be nil, and one more if the clocks
// have no majority. It logs when this begins and ends.
func (c *Clocks) Warnings(next func(context.Context) []string) func(context.Context) []string {
	const split = "the clocks of this machine, of its peers and of the store differ, and no majority of them agrees"
	return func(ctx context.Context) (warnings []string) {
		if next != nil {
			warnings = next(ctx)
		}
		_, agreed := c.majority()
		c.mu.Lock()
		was := c.split
		c.split = !agreed
		c.mu.Unlock()
		switch {
		case !agreed && !was:
			c.log.Warn(split)
		case agreed && was:
			c.log.Info("most clocks agree again")
		}
		if !agreed {
			warnings = append(warnings, split)
		}
		return warnings
	}
}
