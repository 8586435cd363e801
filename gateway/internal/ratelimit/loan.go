package ratelimit

import (
	"time"

	"github.com/ulule/limiter/v3"
)

const (
	loanPart    = 4                // the length of a loan is the shortest window divided by loanPart
	longestLoan = 10 * time.Second // maximum length of a loan
	tokenPart   = 16               // the maximum number of tokens of a loan is the limit divided by tokenPart
	refusalTTL  = time.Second      // how long a refusal is remembered; meanwhile Redis is not asked about the key
)

// loan holds the tokens that Redis has lent to this gateway for one key. The zero value holds no tokens.
type loan struct {
	grant
	left    int64   // unused tokens of the grant
	until   int64   // when the loan ends
	most    int64   // how many tokens to ask for next time
	last    int64   // time of the last use of a token, lent by Redis or not
	known   []State // for each rate: its state in Redis's answer with the grant
	knownAt int64

	unreported      int64 // tokens used while Redis was down, which Redis does not know about yet
	unreportedUntil int64 // when the unreported tokens have left every window

	refusal refusal
	renewal *renewal // the call that is not finished yet; nil: none
}

// refusal remembers a shortage of tokens. While it is remembered, requests above the limit are refused without
// asking Redis.
type refusal struct {
	at, until int64 // when the refusal came, and until when it is remembered
	shortage  shortage
}

// shortage describes how much of each rate is used in Redis. This determines how long a request of any cost
// must wait.
type shortage []rateShortage

type rateShortage struct {
	left   int64 // negative if more than the limit is used
	period time.Duration
	uses   []int64 // pairs, the oldest first: µs until the cost has left the window, and this cost
}

// wait returns how long a cost must wait, and the index of the rate with the longest wait. The argument `since` is
// the time that has passed since Redis reported the shortage. A cost above the limit always waits for one period.
func (s shortage) wait(since time.Duration, cost int64) (wait time.Duration, rate int) {
	for i, r := range s {
		free, end := r.left, time.Duration(0)
		for uses := r.uses; free < cost && len(uses) > 0; uses = uses[2:] {
			end, free = time.Duration(uses[0])*time.Microsecond, free+uses[1]
		}
		if free < cost {
			end = since + r.period
		}
		if end-since > wait {
			wait, rate = end-since, i
		}
	}
	return wait, rate
}

func (l *loan) idle(now int64) bool {
	reported := l.unreported == 0 || now >= l.unreportedUntil
	return l.renewal == nil && now >= l.until && now >= l.refusal.until && reported
}

// The method `has` reports whether the loan has enough tokens for a cost.
func (l *loan) has(now, cost int64) bool { return now < l.until && l.left >= cost }

// wait returns how long a request with a cost must wait according to the remembered refusal, and the index of the
// rate with the longest wait.
func (l *loan) wait(now, cost int64) (time.Duration, int) {
	if now < l.refusal.until {
		return l.refusal.shortage.wait(time.Duration(now-l.refusal.at), cost)
	}
	return 0, 0
}

// state returns the state of a rate. The argument `local` is the state according to this gateway's own counts. The
// result has the tokens left in Redis, in the loan and in the reserve together, but at most local.Left.
func (l *loan) state(now int64, rate int, reserve int64, local State) State {
	if rate >= len(l.known) {
		return local
	}
	left := l.known[rate].Left + reserve
	if now < l.until {
		left += l.left
	}
	if next := l.known[rate].Next - time.Duration(now-l.knownAt); next > 0 {
		local.Next = next
	}
	local.Left = max(0, min(local.Left, left)) // a charge may have used more than the limit
	return local
}

// renewal is a call to Redis that settles the loan of an entry and asks for a new loan. A renewal without an entry
// only reads.
type renewal struct {
	scriptCall
	entry  *entry
	sent   int64
	done   chan struct{} // closed when the answer has come and is in the entry
	failed bool          // true: no answer has come; set only for a renewal that only reads
}

// renew ends the entry's loan, and returns the call that asks for a new loan of at least `cost` tokens. If `cost`
// is 0, the call only reports the used tokens. If the ended loan was used up before its end, the new loan is twice as
// large; otherwise it is only as large as the used part of the ended loan. The caller holds the entry's lock.
func (e *entry) renew(now int64, key string, cost, gateways int64) *renewal {
	l := &e.loan
	r := &renewal{entry: e, sent: now, done: make(chan struct{})}
	r.scriptCall = scriptCall{
		key: key, rates: e.rates, gateways: gateways,
		least: cost, life: loanLife(e.rates), idle: time.Duration(now - l.last),
	}
	used := l.tokens - l.left
	switch {
	case l.tokens == 0:
	case now < l.until:
		l.most = 2 * l.tokens
	default:
		l.most = used
	}
	l.most = max(1, min(l.most, maxTokens(e.rates)))
	if cost > 0 {
		r.most = max(cost, l.most)
	}
	if now < l.until+int64(longest(e.rates)) { // otherwise the tokens have left every window
		r.settle, r.used = l.grant, used
	}
	if now < l.unreportedUntil {
		r.unreported = l.unreported
	}
	l.grant, l.left, l.until, l.unreported = grant{}, 0, 0, 0
	l.renewal = r
	return r
}

// finish stores the answer in the entry. The caller must not hold the entry's lock.
func (r *renewal) finish(now int64, err error) {
	e := r.entry
	if e == nil {
		r.failed = err != nil
		close(r.done)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.loan
	l.renewal = nil
	close(r.done)
	if err != nil {
		// Redis may have counted these tokens. Reporting them twice makes clients wait longer, but never admits
		// more.
		l.unreported += r.unreported
		return
	}
	l.grant, l.left, l.until = r.granted, r.granted.tokens, r.sent+int64(r.life)
	l.known, l.knownAt = r.states, now
	if wait, _ := r.shortage.wait(0, r.least); wait > 0 {
		l.refusal = refusal{at: now, until: now + int64(min(wait, refusalTTL)), shortage: r.shortage}
	}
}

// useUnreported counts a request that was admitted without asking Redis.
func (e *entry) useUnreported(now, cost int64) {
	e.loan.unreported += cost
	e.loan.last = now
	e.loan.unreportedUntil = now + int64(longest(e.rates))
}

// loanLife returns how long a loan lasts.
func loanLife(rates []limiter.Rate) time.Duration {
	life := longestLoan
	for i := range rates {
		life = min(life, rates[i].Period/loanPart)
	}
	return life
}

// maxTokens returns the maximum number of tokens that a loan may have.
func maxTokens(rates []limiter.Rate) int64 {
	limit := rates[0].Limit
	for i := range rates {
		limit = min(limit, rates[i].Limit)
	}
	return limit / tokenPart
}

func longest(rates []limiter.Rate) time.Duration {
	var period time.Duration
	for i := range rates {
		period = max(period, rates[i].Period)
	}
	return period
}
