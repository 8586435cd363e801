// Package ratelimit limits how much of the registry each client uses
// (docs/contract.md, "Rate limits").
//
// A table of policies gives every class of request a cost, and limits the sum of the costs in any window of time. A
// request without an API key counts for its address. A request with a key counts for this key and for its tenant. A
// policy that counts bytes takes the size of a write's body from the Content-Length, before the body is read.
// Without this header, a body is counted after it is read, and is refused if too little is left.
//
// # The library, and Take beside it
//
// Wrong API keys are counted for an address, one window at a time. A Limiter of ulule/limiter is enough for
// this. It keeps its counts in our stores. Any other request has up to seven windows: three policies with two or
// more each. A request must take from all of them or from none, in one round trip. The library takes from one
// window at a time. If the second window refused, the first one would already be charged. The stores of the
// library also count in fixed windows. So around the end of a window, up to twice the limit passes. This is why
// Store.Take exists.
//
// # Guarantees
//
// No window ever admits more than the limit, counted over all gateways that share a Redis. This is more
// important than fairness and speed. A window is divided into slots, and a cost counts until its whole slot has
// left the window.
//
// Redis lends tokens in advance, so the requests of a busy client rarely need a round trip. Lent tokens count
// as used from the moment of the loan until one window after the loan's end, so loans never admit more than the
// limit. But loans are less fair. If one gateway holds tokens that it does not need, the others cannot use them
// until its next call to Redis. This takes at most one and a quarter windows. Therefore a loan is at most a
// sixteenth of the limit and half of the tokens that are left. It lasts a quarter of the shortest window. If
// some tokens of a loan were not used, the next loan is only as large as the used part. Near the limit, gateways
// borrow tokens one by one.
//
// A client that rarely sends requests has no valid loan. If the number of gateways is configured, they reserve
// an eighth of every limit and share it equally. Each gateway admits requests from its share without Redis. A
// client that uses only one gateway then has a lower limit: the shares of the other gateways are missing.
//
// BenchmarkBorrower was run on two idle cores. For one client, a request that asks Redis takes 34 times as long
// as one with loans; for 100 clients, 24 times as long. With loans and one client, 1 request in 4,000 asks
// Redis; with 100 clients, 1 in 190.
//
// # Limits of the guarantees
//
//   - If Redis loses its data, each gateway still keeps to the limit by itself,
//     but it does not know what the others have admitted.
//   - While Redis is down, with the fallback "local", each gateway admits costs up
//     to its share. It reports these costs when Redis is back. The window in which
//     Redis goes down may admit up to twice the limit if load moves between gateways.
//   - The clock of Redis is trusted, except when it steps back.
//   - All gateways on one Redis must have the same table.
//   - A refusal takes its waiting time from this gateway's counts and Redis's last
//     answer. If other gateways have made the wait longer, the next refusal says so.
package ratelimit

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/ulule/limiter/v3"

	"asset-registry/shared/clientaddr"
)

// Store counts what clients use. All methods are safe for concurrent use.
type Store interface {
	// Take takes the cost of each bucket from every rate of this bucket. If any rate has too little left, Take takes
	// nothing, and the verdict names that rate. Take appends the state of every rate to states, in the order of the
	// buckets. It may replace the key of a bucket by the key of a prefix. If Take cannot learn how much is left, it
	// returns an error. The error is ErrStoreDown if the fallback refuses everything. A verdict without states means
	// that the store is down and the fallback admits everything.
	Take(ctx context.Context, buckets []Bucket, states []State) (Verdict, error)

	// Charge takes the cost of each bucket from every rate of this bucket, even if too little is left.
	Charge(buckets []Bucket)

	// Peek appends the state of every rate to states, and takes nothing.
	Peek(ctx context.Context, buckets []Bucket, states []State) ([]State, error)
}

// Key names one client under one policy. Requests with the same key count together.
type Key struct {
	Policy string
	Addr   netip.Addr // address of a network; invalid if Name is set
	Bits   uint8      // length of the prefix of Addr that counts together; 0: Addr is one client
	Name   string
}

const widest = 255 // all addresses that a full table does not keep

// wider returns the key of the prefix of an address, or of all addresses for the key of a prefix.
func (k Key) wider() Key {
	if prefix := clientaddr.Prefix(k.Addr); prefix.IsValid() && k.Bits == 0 {
		k.Addr, k.Bits = prefix.Addr(), uint8(prefix.Bits())
		return k
	}
	k.Addr, k.Bits = netip.IPv6Unspecified(), widest
	return k
}

// String returns the key in the form that the Redis store uses.
func (k Key) String() string {
	switch {
	case k.Bits > 0:
		return k.Policy + ":" + k.Addr.String() + "/" + strconv.Itoa(int(k.Bits))
	case k.Addr.IsValid():
		return k.Policy + ":" + k.Addr.String()
	}
	return k.Policy + ":" + k.Name
}

// Bucket says what a request takes from a key: the same cost from each rate. Take needs limits that are not lower than
// the cost.
type Bucket struct {
	Key   Key
	Cost  int64 // at least 1 for Take
	Rates []limiter.Rate
}

// State says what is left of one rate.
type State struct {
	Rate limiter.Rate
	Left int64
	Next time.Duration // time until more is left; 0 if nothing is used
}

// Verdict says whether a request is admitted.
type Verdict struct {
	States  []State
	Wait    time.Duration // time until the request would be admitted; 0: it is admitted now
	Refused int           // index in States of the rate with the longest wait
}

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
