package ratelimit

import (
	"context"
	"time"
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
