package ratelimit

import (
	"context"
	"time"

	"github.com/ulule/limiter/v3"
)

// Memory is a Store in the memory of this process.
type Memory struct {
	table *table
	clock clock
}

// NewMemory returns an empty store. Its counts take about the given number of bytes at most; 0 stands for 16 MiB.
func NewMemory(now func() time.Time, bytes int64) *Memory {
	return &Memory{table: newTable(bytes), clock: startClock(now)}
}

// Take implements Store. It returns no error.
func (m *Memory) Take(_ context.Context, buckets []Bucket, states []State) (Verdict, error) {
	now := m.clock.elapsed()
	var few [4]*entry
	entries := m.table.lock(buckets, now, few[:0])
	defer m.table.unlock(entries)
	wait, refused := localWait(entries, buckets, now, 1)
	if wait == 0 {
		commit(entries, buckets, now)
	}
	return Verdict{States: localStates(entries, buckets, now, states, 1), Wait: wait, Refused: refused}, nil
}

// Peek implements Store. It returns no error.
func (m *Memory) Peek(_ context.Context, buckets []Bucket, states []State) ([]State, error) {
	now := m.clock.elapsed()
	var few [4]*entry
	entries := m.table.lock(buckets, now, few[:0])
	defer m.table.unlock(entries)
	forget(entries, buckets, now)
	return localStates(entries, buckets, now, states, 1), nil
}

// share returns one gateway's part of a limit when each gateway counts alone. The part is at least the cost of the
// request, but never more than the limit.
func share(limit, cost, gateways int64) int64 { return max(limit/gateways, min(limit, max(cost, 1))) }

// localWait returns how long a request must wait. It counts only the requests that this process has admitted. The
// result `refused` is the index of the rate with the longest wait among the rates of all buckets.
func localWait(entries []*entry, buckets []Bucket, now, gateways int64) (wait time.Duration, refused int) {
	n := 0
	for i := range buckets {
		b := &buckets[i]
		for j := range b.Rates {
			r := &b.Rates[j]
			if w := entries[i].windows[j].wait(now, b.Cost, share(r.Limit, b.Cost, gateways), r.Period); w > wait {
				wait, refused = w, n
			}
			n++
		}
	}
	return wait, refused
}

// localStates appends the state of every rate. It counts only the requests that this process has admitted.
func localStates(entries []*entry, buckets []Bucket, now int64, states []State, gateways int64) []State {
	for i := range buckets {
		b := &buckets[i]
		for j, rate := range b.Rates {
			states = append(states, entries[i].windows[j].state(now, rate, share(rate.Limit, b.Cost, gateways)))
		}
	}
	return states
}

// forget drops the costs that have left their windows.
func forget(entries []*entry, buckets []Bucket, now int64) {
	for i := range buckets {
		for j := range buckets[i].Rates {
			entries[i].windows[j].forget(now, buckets[i].Rates[j].Period)
		}
	}
}

// commit counts an admitted request.
func commit(entries []*entry, buckets []Bucket, now int64) {
	for i := range buckets {
		for j := range buckets[i].Rates {
			entries[i].windows[j].add(now, buckets[i].Cost, buckets[i].Rates[j].Period)
		}
	}
}

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
