package ratelimit

import (
	"time"

	"github.com/ulule/limiter/v3"
)

// slots is into how many parts a window is divided. What was used counts until
// all of its slot has left the window: a limit is never exceeded, and what was
// used is back a thirty-second of the window late at most.
const slots = 32

// slotWidth is the time that one slot of a window takes.
func slotWidth(period time.Duration) int64 { return (int64(period) + slots - 1) / slots }

// window counts what was used in the last period of one rate. Times are
// nanoseconds since whenever; one that steps back delays, and lets nothing through.
type window struct {
	marks []mark // ascending
	used  int64  // in all marks
}

// mark is what was used in one slot.
type mark struct{ slot, n int64 }

// end is when a mark has left the window.
func (m mark) end(period time.Duration) int64 { return (m.slot+1)*slotWidth(period) + int64(period) }

// forget drops what has left the window.
func (w *window) forget(now int64, period time.Duration) {
	gone := 0
	for gone < len(w.marks) && w.marks[gone].end(period) <= now {
		w.used -= w.marks[gone].n
		gone++
	}
	if gone > 0 {
		w.marks = w.marks[:copy(w.marks, w.marks[gone:])]
	}
}

// wait tells how long it is until cost more may be used, 0 if now. What is
// above the limit for good waits for a period, again and again.
func (w *window) wait(now, cost, limit int64, period time.Duration) time.Duration {
	w.forget(now, period)
	used := w.used
	for _, m := range w.marks {
		if used+cost <= limit {
			break
		}
		used -= m.n
		if used+cost <= limit {
			return time.Duration(m.end(period) - now)
		}
	}
	if used+cost > limit {
		return period
	}
	return 0
}

// add counts cost as used now.
func (w *window) add(now, cost int64, period time.Duration) {
	slot := now / slotWidth(period)
	w.used += cost
	if last := len(w.marks) - 1; last >= 0 && w.marks[last].slot >= slot {
		w.marks[last].n += cost
		return
	}
	w.marks = append(w.marks, mark{slot, cost})
}

// state is what is left of rate.
func (w *window) state(now int64, rate limiter.Rate, limit int64) State {
	s := State{Rate: rate, Left: max(0, limit-w.used)}
	if len(w.marks) > 0 {
		s.Next = time.Duration(w.marks[0].end(rate.Period) - now)
	}
	return s
}
