package ratelimit

import (
	"time"

	"github.com/ulule/limiter/v3"
)

// slots is the number of slots in a window. A cost counts until its whole slot has left the window. So no window
// exceeds its limit. A cost may count longer than a window, by at most 1/32 of the window.
const slots = 32

// slotWidth returns the length of one slot in nanoseconds.
func slotWidth(period time.Duration) int64 { return (int64(period) + slots - 1) / slots }

// window counts the costs of one rate in the last period. Times are in nanoseconds since any fixed moment. If
// the clock steps back, requests wait longer, but never more is admitted. The zero value is an empty window.
type window struct {
	marks []mark // one mark for each slot with a cost, in ascending order
	used  int64  // sum of all marks
}

// mark is the cost counted in one slot.
type mark struct{ slot, n int64 }

// end returns when the mark leaves the window.
func (m mark) end(period time.Duration) int64 { return (m.slot+1)*slotWidth(period) + int64(period) }

// forget drops the marks that have left the window.
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

// wait returns the time until the limit has room for the cost; 0 if it has room now. For a cost above the limit
// it always returns the whole period.
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

// add counts a cost.
func (w *window) add(now, cost int64, period time.Duration) {
	slot := now / slotWidth(period)
	w.used += cost
	if last := len(w.marks) - 1; last >= 0 && w.marks[last].slot >= slot {
		w.marks[last].n += cost
		return
	}
	w.marks = append(w.marks, mark{slot, cost})
}

// state returns the state of a rate with the given limit.
func (w *window) state(now int64, rate limiter.Rate, limit int64) State {
	s := State{Rate: rate, Left: max(0, limit-w.used)}
	if len(w.marks) > 0 {
		s.Next = time.Duration(w.marks[0].end(rate.Period) - now)
	}
	return s
}
