package ratelimit

import (
	"time"

	"github.com/ulule/limiter/v3"
)

const (
	leaseShare  = 4                // a lease lives for this part of its shortest window
	leaseLife   = 10 * time.Second // and no longer than this
	leaseMost   = 16               // a lease is this part of the limit at most
	refusalKept = time.Second      // how long nobody asks again what was refused
)

// lease is what one gateway holds of a key that is counted in Redis.
type lease struct {
	loan
	left    int64   // of the loan's tokens
	until   int64   // when they are worth nothing any more
	most    int64   // tokens to ask for next
	last    int64   // when one was used, of the loan or without
	known   []State // as Redis said with the loan
	knownAt int64

	unlent      int64 // tokens used while Redis was away, which it must be told of
	unlentUntil int64 // when that does not matter any more

	refusal refusal
	flight  *flight // the question under way; nil if none is
}

// refusal is remembered so that a client over its limit costs no round trips.
type refusal struct {
	at, until int64 // when it came, and until when it is remembered
	short     shortage
}

// shortage is what Redis has told of each rate when one had too little: so what
// any other cost must wait for is known too.
type shortage []lack

type lack struct {
	left   int64 // below nought if more than the limit is used
	period time.Duration
	uses   []int64 // pairs, the next to end first: µs until it has left the window, how much it is
}

// wait tells how long a cost must wait, a time after the shortage was told, and
// for which rate. What is above the limit for good waits for a period, again
// and again.
func (s shortage) wait(after time.Duration, cost int64) (wait time.Duration, rate int) {
	for i, l := range s {
		free, end := l.left, time.Duration(0)
		for uses := l.uses; free < cost && len(uses) > 0; uses = uses[2:] {
			end, free = time.Duration(uses[0])*time.Microsecond, free+uses[1]
		}
		if free < cost {
			end = after + l.period
		}
		if end-after > wait {
			wait, rate = end-after, i
		}
	}
	return wait, rate
}

// flight is a question to Redis about one entry, and who waits for its answer.
type flight struct {
	ask
	entry *entry
	sent  int64
	done  chan struct{} // closed when the entry has the answer
}

func (l *lease) idle(now int64) bool {
	return l.flight == nil && now >= l.until && now >= l.refusal.until && (l.unlent == 0 || now >= l.unlentUntil)
}

func (l *lease) has(now, cost int64) bool { return now < l.until && l.left >= cost }

// wait tells how long a request must wait by what Redis has said, and for which
// rate.
func (l *lease) wait(now, cost int64) (time.Duration, int) {
	if now < l.refusal.until {
		return l.refusal.short.wait(time.Duration(now-l.refusal.at), cost)
	}
	return 0, 0
}

// state is what is left of a rate in Redis, in the lease and of what is kept
// apart; local is what this gateway knows by itself.
func (l *lease) state(now int64, rate int, kept int64, local State) State {
	if rate >= len(l.known) {
		return local
	}
	left := l.known[rate].Left + kept
	if now < l.until {
		left += l.left
	}
	if next := l.known[rate].Next - time.Duration(now-l.knownAt); next > 0 {
		local.Next = next
	}
	local.Left = min(local.Left, left)
	return local
}

// depart makes the question that an entry needs answered now: for cost tokens
// at least, and account of the last lease. The caller holds the entry's lock.
func (e *entry) depart(now int64, key string, cost, kept int64) *flight {
	l := &e.lease
	f := &flight{entry: e, sent: now, done: make(chan struct{})}
	f.ask = ask{key: key, rates: e.rates, kept: kept, least: cost, life: lifeOf(e.rates), ago: time.Duration(now - l.last)}
	used := l.tokens - l.left
	switch {
	case l.tokens == 0:
	case now < l.until: // used up before its time
		l.most = 2 * l.tokens
	default:
		l.most = used
	}
	l.most = max(1, min(l.most, mostOf(e.rates)))
	if cost > 0 {
		f.most = max(cost, l.most)
	}
	if now < l.until+int64(longest(e.rates)) { // Redis may still have it
		f.settle, f.used = l.loan, used
	}
	if now < l.unlentUntil {
		f.unlent = l.unlent
	}
	l.loan, l.left, l.until, l.unlent = loan{}, 0, 0, 0
	l.flight = f
	return f
}

// land keeps the answer. The caller does not hold the entry's lock.
func (f *flight) land(now int64, err error) {
	e := f.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.lease
	l.flight = nil
	close(f.done)
	if err != nil { // perhaps it was not told: told twice, it delays, and lets nothing through
		l.unlent += f.unlent
		return
	}
	l.loan, l.left, l.until = f.got, f.got.tokens, f.sent+int64(f.life)
	l.known, l.knownAt = f.states, now
	if wait, _ := f.short.wait(0, f.least); wait > 0 {
		l.refusal = refusal{at: now, until: now + int64(min(wait, refusalKept)), short: f.short}
	}
}

// useUnlent counts a request that Redis was not asked about.
func (e *entry) useUnlent(now, cost int64) {
	e.lease.unlent += cost
	e.lease.last = now
	e.lease.unlentUntil = now + int64(longest(e.rates))
}

func lifeOf(rates []limiter.Rate) time.Duration {
	life := leaseLife
	for i := range rates {
		life = min(life, rates[i].Period/leaseShare)
	}
	return life
}

func mostOf(rates []limiter.Rate) int64 {
	most := rates[0].Limit
	for i := range rates {
		most = min(most, rates[i].Limit)
	}
	return most / leaseMost
}

func longest(rates []limiter.Rate) time.Duration {
	var period time.Duration
	for i := range rates {
		period = max(period, rates[i].Period)
	}
	return period
}
