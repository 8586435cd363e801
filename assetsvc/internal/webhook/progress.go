package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/sleep"
)

// shown has the values that metrics report for an endpoint.
type shown struct {
	state string
	waits time.Time // since when a change waits for the sender, not for the receiver; zero: no change waits
}

// succeed records a success in the progress p.
func succeed(p *Progress) {
	p.Failures, p.FailedAt, p.LastError, p.Next = 0, time.Time{}, "", time.Time{}
	p.Succeeded = time.Now()
}

// fail records and saves a failure, with the time of the next attempt. If the endpoint has failed for longer than
// the argument `most`, it is disabled for the given reason.
func (w *worker) fail(p Progress, a answer, least, most time.Duration, reason Reason) error {
	p = p.failed(time.Now(), a, least, most, reason)
	w.t.s.log.Debug("a message to a webhook failed", "webhook", w.e.ID, "fault", a.fault)
	if err := w.save(p); err != nil {
		return err
	}
	if p.State == Disabled {
		w.t.s.log.Warn("a webhook is disabled", "webhook", w.e.ID, "reason", p.Reason, "failures", p.Failures)
	}
	return nil
}

// failed returns the progress after a failure.
func (p Progress) failed(now time.Time, a answer, least, most time.Duration, reason Reason) Progress {
	p.Failures++
	// The time between two attempts is at most retryMost. If the first failure is longer ago than this allows, the
	// clock was wrong or the registry was down. Then the failures count as if the first one had happened now.
	since := now.Sub(p.FailedAt)
	if p.FailedAt.IsZero() || since < 0 || since > time.Duration(p.Failures)*(retryMost+waitMost) {
		p.FailedAt = now
	}
	p.LastError = a.told()
	p.Next = now.Add(max(backoff(p.Failures), a.after, least))
	switch {
	case a.status == http.StatusGone:
		p.State, p.Reason = Disabled, Gone
	case now.Sub(p.FailedAt) >= most:
		p.State, p.Reason = Disabled, reason
	}
	if p.State == Disabled {
		p.Next = time.Time{}
	}
	return p
}

// rest returns how long to wait before the next attempt. No attempt is put off for longer than retryMost, so a
// longer wait means that the clock was wrong.
func (p Progress) rest(now time.Time) time.Duration {
	if wait := p.Next.Sub(now); wait <= retryMost {
		return wait
	}
	return 0
}

// save stores the progress. The worker sends nothing more before the progress is stored (docs/webhooks.md, W2).
func (w *worker) save(p Progress) error {
	if err := w.t.saver.save(w.t.ctx, Step{ID: w.e.ID, Generation: w.e.Generation, Progress: p}); err != nil {
		return err
	}
	w.e.Progress, w.kept = p, time.Now()
	w.at = max(w.at, p.Position)
	w.changed()
	return nil
}

// stateOf returns the state of an endpoint as metrics name it: one of the values of State, or "failing".
func stateOf(e Endpoint) string {
	if e.State == Active && e.Failures > 0 {
		return failing
	}
	return string(e.State)
}

// changed updates the metrics: it sets the state of the endpoint, and records that no change waits.
func (w *worker) changed() { w.show.Store(&shown{state: stateOf(w.e)}) }

// waits updates the metrics: it stores that a change has waited for the sender since the time `since`.
func (w *worker) waits(since time.Time) {
	if now := w.show.Load(); !now.waits.Equal(since) {
		w.show.Store(&shown{now.state, since})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

const (
	waitLeast  = time.Second
	waitMost   = time.Hour
	retryMost  = 6 * time.Hour      // the longest wait that a receiver can ask for
	giveUp     = 3 * 24 * time.Hour // how long an endpoint may fail, without a success, before it is disabled
	answerFor  = 24 * time.Hour     // how long an endpoint may leave its challenges without an answer
	challenges = time.Minute        // least time between two challenges
)

// backoff returns the time to wait after a number of failures in a row. The time begins at one second, and each
// failure doubles it, up to one hour. Then a random part, less than half of the time, is subtracted.
func backoff(failures int) time.Duration {
	wait := waitMost
	if n := max(failures, 1) - 1; n < 12 { // otherwise the wait is waitMost: 2^12 s is more than an hour
		wait = min(waitLeast<<n, waitMost)
	}
	return wait - rand.N(wait/2)
}

// retryAfter returns the time that a receiver asks to wait (RFC 9110, 10.2.3), at most retryMost. If the header
// is missing or malformed, retryAfter returns 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if isDigits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(retryMost/time.Second) {
			return retryMost
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), retryMost)
}

func isDigits(text string) bool {
	return strings.Trim(text, "0123456789") == ""
}

const (
	gather     = 20 * time.Millisecond // steps that come within this time are saved together
	maxSteps   = 500                   // maximum number of steps of one save
	saveWithin = 5 * time.Second
	saveAgain  = 200 * time.Millisecond // pause before a save is repeated after a failure
)

// saver stores the progress of all endpoints in one term. It stores steps that come at about the same time with
// one write.
type saver struct {
	store    Store
	term     int64
	steps    chan pending
	lost     func() // ends the term for this process
	failures *failurelog.Log
}

// pending is a step that waits to be stored.
type pending struct {
	Step
	done chan error // gets nil, ErrStale, ErrTermOver, or the error of a context
}

// save stores a step. It returns nil once the step is durable, ErrStale if the endpoint has changed, ErrTermOver
// if the term has ended, or the error of ctx. It waits as long as the store does not answer.
func (v *saver) save(ctx context.Context, s Step) error {
	p := pending{s, make(chan error, 1)}
	select {
	case v.steps <- p:
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-p.done // the method `run` always sends a result for a step that it has received
}

// run stores steps until ctx ends.
func (v *saver) run(ctx context.Context) {
	for {
		select {
		case p := <-v.steps:
			v.write(ctx, v.more(p))
		case <-ctx.Done():
			return
		}
	}
}

// The method `more` returns the first step, and the steps that come soon after it.
func (v *saver) more(first pending) []pending {
	all := []pending{first}
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for len(all) < maxSteps {
		select {
		case p := <-v.steps:
			all = append(all, p)
		case <-timer.C:
			return all
		}
	}
	return all
}

// write makes one write, and repeats it until the store answers.
func (v *saver) write(ctx context.Context, all []pending) {
	steps := make([]Step, len(all))
	for i, p := range all {
		steps[i] = p.Step
	}
	for {
		within, cancel := context.WithTimeout(ctx, saveWithin)
		stale, err := v.store.Save(within, v.term, steps)
		cancel()
		switch {
		case err == nil:
			gone := make(map[string]bool, len(stale))
			for _, id := range stale {
				gone[id] = true
			}
			for _, p := range all {
				if gone[p.ID] {
					p.done <- ErrStale
				} else {
					p.done <- nil
				}
			}
			return
		case errors.Is(err, ErrTermOver):
			v.lost()
		case ctx.Err() == nil:
			v.failures.Failed(err)
			if sleep.For(ctx, saveAgain) {
				continue
			}
			err = ctx.Err()
		}
		for _, p := range all {
			p.done <- err
		}
		return
	}
}
