package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/testing/expect"
)

// scripted is a store whose saves return the errors of a list, one after the other, and then succeed. It
// records the number of steps in each save.
type scripted struct {
	Store
	mu    sync.Mutex
	errs  []error
	stale []string
	hangs bool // the store answers when the context ends
	sizes []int
}

func (s *scripted) Save(ctx context.Context, _ int64, steps []Step) (stale []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, len(steps))
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if len(s.errs) > 0 {
		err, s.errs = s.errs[0], s.errs[1:]
		return nil, err
	}
	return s.stale, nil
}

// TestProgressIsSavedOrTheTermEnds saves a step while the store fails in several ways. Either the step must be
// stored, or the term must end: a message counts as sent only after its step is stored.
func TestProgressIsSavedOrTheTermEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		errs  []error
		stale []string
		leave bool // cancel the context while the store fails
		want  error
		saves int
		lost  bool
	}{
		{"the store works", nil, nil, false, nil, 1, false},
		{"the endpoint has changed", nil, []string{"a"}, false, ErrStale, 1, false},
		{"another endpoint has changed", nil, []string{"b"}, false, nil, 1, false},
		{"the store fails twice", []error{broken, broken}, nil, false, nil, 3, false},
		{"the term is over", []error{ErrTermOver}, nil, false, ErrTermOver, 1, true},
		{"the term is over after a failure", []error{broken, ErrTermOver}, nil, false, ErrTermOver, 2, true},
		{"the process ends", slices.Repeat([]error{broken}, 1000), nil, true, context.Canceled, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				store, lost := &scripted{errs: c.errs, stale: c.stale}, false
				log := failurelog.New(slog.New(slog.DiscardHandler), "save")
				defer log.Close()
				v := &saver{store: store, steps: make(chan pending), lost: func() { lost = true }, failures: log}
				go v.run(ctx)
				done := make(chan error)
				go func() { done <- v.save(ctx, Step{ID: "a"}) }()
				if c.leave {
					time.Sleep(2 * gather) // virtual time, in which the first save fails
					leave()
				}
				err := <-done
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || lost != c.lost {
					t.Errorf("got %v and the term lost: %t, want %v and %t", err, lost, c.want, c.lost)
				}
				if c.saves > 0 && len(store.sizes) != c.saves {
					t.Errorf("got %d saves, want %d", len(store.sizes), c.saves)
				}
				leave()
				expect.Err(t, v.save(ctx, Step{ID: "a"}), context.Canceled, "after the end")
			})
		})
	}
}

// TestAStoreThatFailsIsInTheLog saves a step while the store fails, or while the process ends. The log must report
// a failure of the store. It must not report the end of the process as such a failure.
func TestAStoreThatFailsIsInTheLog(t *testing.T) {
	for _, c := range []struct {
		name  string
		store *scripted
		want  int // warnings
	}{
		{"the store fails twice", &scripted{errs: slices.Repeat([]error{errors.New("broken")}, 2)}, 1},
		{"the process ends during a save", &scripted{hangs: true}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithTimeout(t.Context(), saveWithin/2)
			defer leave()
			var lines bytes.Buffer
			log := failurelog.New(slog.New(slog.NewTextHandler(&lines, nil)), "positions cannot be stored")
			v := &saver{store: c.store, steps: make(chan pending), failures: log}
			go v.run(ctx)
			err := v.save(ctx, Step{ID: "a"})
			log.Close()
			if ended := err != nil; ended != c.store.hangs {
				t.Errorf("%s: got %v", c.name, err)
			}
			if n := strings.Count(lines.String(), "positions cannot be stored"); n != c.want {
				t.Errorf("%s: got %d warnings, want %d:\n%s", c.name, n, c.want, &lines)
			}
		})
	}
}

// TestOneSaveHasABoundedNumberOfSteps saves more steps at the same time than one save may have. They must be
// stored in several saves.
func TestOneSaveHasABoundedNumberOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		store := &scripted{}
		v := &saver{store: store, steps: make(chan pending)}
		go v.run(ctx)
		var callers sync.WaitGroup
		for n := range maxSteps + 10 {
			callers.Go(func() {
				expect.Try(t, v.save(ctx, Step{ID: fmt.Sprint(n)}))
			})
		}
		callers.Wait()
		if want := []int{maxSteps, 10}; !slices.Equal(store.sizes, want) {
			t.Errorf("got saves of %v steps, want %v", store.sizes, want)
		}
	})
}
