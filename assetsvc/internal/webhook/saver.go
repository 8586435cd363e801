package webhook

import (
	"context"
	"errors"
	"time"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/sleep"
)

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
