package publiclog_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// load simulates several writers of one log under steady load, in virtual time.
type load struct {
	*world
	t       *testing.T
	start   time.Time
	writers int
	every   time.Duration // time between two changes
	lasts   time.Duration

	longest time.Duration // longest time without a new checkpoint
	signed  int           // number of checkpoints
	behind  time.Duration // longest delay of a report during the load
	covered time.Time     // a writer has reported that all changes up to this time are covered
}

// position returns the position of a change that is made at a time, in microseconds. The position is odd, because
// the function `change` makes a public change for each odd position.
func (l *load) position(at time.Time) int64 { return at.UnixMicro() | 1 }

// grow adds changes, one after the other. It sets the horizon just above the newest change and below the next
// one, as if a batch were always in flight.
func (l *load) grow() {
	for time.Since(l.start) < l.lasts {
		time.Sleep(l.every)
		at := l.position(time.Now())
		l.mu.Lock()
		l.changes = append(l.changes, change(l.t, at))
		l.horizon = at + 1
		l.mu.Unlock()
	}
}

// watch measures the longest time in which no new checkpoint appears.
func (l *load) watch() {
	var newest []byte
	since := l.start
	for time.Since(l.start) < l.lasts {
		time.Sleep(10 * time.Millisecond)
		l.mu.Lock()
		now := l.head.Checkpoint
		l.mu.Unlock()
		if !bytes.Equal(now, newest) {
			newest, since = now, time.Now()
			l.signed++
		}
		l.longest = max(l.longest, time.Since(since))
	}
}

// report verifies the report of a writer: the newest checkpoint must cover all changes up to the reported time.
func (l *load) report(upto time.Time, err error) {
	expect.Nil(l.t, err, "step")
	if upto.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if upto.After(l.covered) {
		l.covered = upto
	}
	covered := int64(0)
	if l.head.Checkpoint != nil {
		covered = parse(l.head.Checkpoint).Size
	}
	public := int64(0)
	for _, c := range l.changes {
		if c.Position < l.position(upto) && c.Change != nil {
			public++
		}
	}
	if covered < public {
		l.t.Errorf("a writer says that all is covered up to %v: got a checkpoint of %d leaves, want %d",
			upto.Sub(l.start), covered, public)
	}
	if time.Since(l.start) > time.Second && time.Since(l.start) < l.lasts {
		l.behind = max(l.behind, time.Since(upto))
	}
}

func (l *load) run() {
	l.start = time.Now()
	o := publiclog.Options{Keys: []translog.Key{key(l.t)}}
	var writers, others sync.WaitGroup
	ctx, stop := context.WithCancel(l.t.Context())
	for range l.writers {
		writers.Go(func() { publiclog.NewWriter(l, l, o).Run(ctx, l.report) })
	}
	others.Go(l.grow)
	others.Go(l.watch)
	others.Wait()
	l.mu.Lock()
	grown := l.covered
	l.mu.Unlock()
	if behind := time.Since(grown); behind > 6*time.Second {
		l.t.Errorf("got reports up to %v ago at the end of the load, want at most 6s", behind)
	}
	time.Sleep(10 * time.Second) // a quiet time: no changes
	stop()
	writers.Wait()
	if behind := time.Since(l.covered); behind > 3*time.Second {
		l.t.Errorf("got reports up to %v ago after a quiet time, want at most 3s", behind)
	}
}

// TestTheLogIsSignedUnderSteadyLoad lets several services extend and sign one log while changes are added
// without a pause. New checkpoints must appear often, and the reports must not fall far behind.
// Promises: checkpoint-pace
func TestTheLogIsSignedUnderSteadyLoad(t *testing.T) {
	for _, c := range []struct {
		name    string
		writers int
		every   time.Duration
		takes   time.Duration
		gap     time.Duration // longest accepted time without a new checkpoint
		behind  time.Duration // longest accepted delay of a report
	}{
		{"one service", 1, 1250 * time.Microsecond, 3 * time.Millisecond, 2 * time.Second, 6 * time.Second},
		{"three services", 3, 1250 * time.Microsecond, 3 * time.Millisecond, 2 * time.Second, 6 * time.Second},
		{"eight services", 8, 5 * time.Millisecond, time.Millisecond, 2 * time.Second, 6 * time.Second},
		// A step takes at least 90 ms here. The pause after a step is four times as long as the step. A writer that
		// finds that another writer was faster waits for up to ten pauses.
		{"a slow store", 4, 100 * time.Millisecond, 30 * time.Millisecond, 6 * time.Second, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &load{world: newWorld(1), t: t, writers: c.writers, every: c.every, lasts: 10 * time.Second}
				l.takes, l.most = c.takes, 10_000
				l.run()
				if l.longest > c.gap {
					t.Errorf("got %v without another checkpoint, want at most %v", l.longest, c.gap)
				}
				if most := 20; l.signed > most {
					t.Errorf("got %d checkpoints in %v, want at most %d", l.signed, l.lasts, most)
				}
				if l.behind > c.behind {
					t.Errorf("got a writer that says it is %v behind, want at most %v", l.behind, c.behind)
				}
				// A look at the log makes three calls of the store, and a checkpoint makes two. Each writer
				// looks 5 times a second.
				if most := c.writers * 20 * 5 * 6; l.calls > most {
					t.Errorf("got %d calls of the store, want at most %d", l.calls, most)
				}
				t.Logf("longest gap %v, behind %v, %d calls", l.longest, l.behind, l.calls)
			})
		})
	}
}
