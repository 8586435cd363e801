package publiclog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/assetsvc/internal/publiclog"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/testing/expect"
	"asset-registry/shared/translog"
)

// process is the view that one process has of the log and the record. It notes some calls of this process.
type process struct {
	*world
	looks     int               // number of calls of LogHead
	after     []int64           // the argument After of each call of Changes
	meanwhile func()            // called before the head is stored; nil: nothing is called
	changing  func() error      // called by Changes, which returns its error; nil: Changes returns no error
	o         publiclog.Options // options of the process's writer
}

func (p *process) LogHead(ctx context.Context) (publiclog.Head, error) {
	p.looks++
	return p.world.LogHead(ctx)
}

func (p *process) Changes(ctx context.Context, q registry.ChangesQuery) (registry.ChangesPage, error) {
	p.after = append(p.after, q.After)
	if p.changing != nil {
		if err := p.changing(); err != nil {
			return registry.ChangesPage{}, err
		}
	}
	return p.world.Changes(ctx, q)
}

func (p *process) ExtendLog(ctx context.Context, head publiclog.Head, parts []translog.Part) (bool, error) {
	if p.meanwhile != nil {
		p.meanwhile()
	}
	return p.world.ExtendLog(ctx, head, parts)
}

// newProcess returns a process and its writer. The store is quick and does not fail.
func newProcess(t *testing.T, w *world) (*process, *publiclog.Writer) {
	t.Helper()
	w.calm, w.takes = true, 1
	p := &process{world: w, o: publiclog.Options{Keys: []translog.Key{key(t)}}}
	return p, publiclog.NewWriter(p, p, p.o)
}

// grown adds changes up to a position, and makes this position the horizon.
func (w *world) grown(t *testing.T, upto int64) {
	t.Helper()
	for position := w.horizon + 1; position <= upto; position++ {
		w.changes = append(w.changes, change(t, position))
	}
	w.horizon = upto
}

// step runs one step of a writer, and returns the report of that step.
func step(t *testing.T, writer *publiclog.Writer) (upto time.Time, err error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	writer.Run(ctx, func(until time.Time, failed error) {
		upto, err = until, failed
		stop()
	})
	return upto, err
}

// running runs a writer for some time, and returns the reports of its steps.
func running(t *testing.T, writer *publiclog.Writer, lasts time.Duration) (upto []time.Time, errs []error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), lasts)
	defer stop()
	writer.Run(ctx, func(until time.Time, err error) { upto, errs = append(upto, until), append(errs, err) })
	return upto, errs
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	expect.OK(t, errors.Join(errs...))
}

func extended(t *testing.T, writer *publiclog.Writer) {
	t.Helper()
	_, won, err := writer.Extend(t.Context())
	expect.FatalIf(t, err != nil || !won, "extend: got %v, %v; want true", won, err)
}

func signed(t *testing.T, writer *publiclog.Writer) {
	t.Helper()
	if won, err := writer.Sign(t.Context()); err != nil || !won {
		t.Fatalf("sign: got %v, %v; want true", won, err)
	}
}

// TestAWriterSaysWhatOthersHaveCovered lets one process extend and sign the log. The reports of another process
// must say up to which time the checkpoint covers all changes.
func TestAWriterSaysWhatOthersHaveCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.most = 1000
		_, writes := newProcess(t, w)
		p, _ := newProcess(t, w)
		p.o.Signed = time.Hour // this process signs nothing after its first step, so only the other process signs
		looks := publiclog.NewWriter(p, p, p.o)
		says := func(when string, want time.Time) {
			t.Helper()
			if got, err := step(t, looks); err != nil || !got.Equal(want) {
				t.Errorf("%s: got %v, %v; want %v", when, got, err, want)
			}
		}
		at := time.UnixMicro
		must(t, func() error { _, err := step(t, looks); return err }())
		w.grown(t, 11)
		extended(t, writes)
		says("nothing is signed", time.Time{})
		signed(t, writes)
		w.grown(t, 21)
		extended(t, writes)
		says("the tree before is signed", at(11))
		w.grown(t, 31)
		extended(t, writes)
		signed(t, writes)
		says("the tree is signed", at(31))
		w.grown(t, 41)
		extended(t, writes)
		says("the tree has grown", at(31))
	})
}

// TestAWriterSaysNothingBeforeALogIsSigned uses witnesses that do not answer, so no checkpoint is signed. Each step
// must ask them once, and report their error. The reported time must be zero.
func TestAWriterSaysNothingBeforeALogIsSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.grown(t, 10)
		asked := 0
		p, _ := newProcess(t, w)
		p.o.Cosign = func(context.Context, translog.Checkpoint, []byte) ([]byte, error) {
			asked++
			return nil, errDown
		}
		upto, errs := running(t, publiclog.NewWriter(p, p, p.o), 2*time.Second)
		for i, err := range errs {
			if !errors.Is(err, errDown) || !upto[i].IsZero() {
				t.Errorf("step %d: got %v, %v; want no time and the error of the witnesses", i, upto[i], err)
			}
		}
		expect.ErrorIf(t, w.head.Checkpoint != nil, "got the checkpoint %q, want none", w.head.Checkpoint)
		if asked != len(errs) || asked < 9 { // five steps a second: errors do not make the pauses longer
			t.Errorf("got %d questions to the witnesses in %d steps, want one in each of 9 or 10", asked, len(errs))
		}
	})
}

// TestARecordThatDoesNotAnswerIsReported makes the reads of the record fail, while the log could be signed. Each
// step must report the error, and sign nothing.
func TestARecordThatDoesNotAnswerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.grown(t, 10)
		p, writer := newProcess(t, w)
		extended(t, writer)
		p.changing = func() error { return errDown }
		_, errs := running(t, writer, 10*time.Second)
		for i, err := range errs {
			if !errors.Is(err, errDown) || w.head.Checkpoint != nil {
				t.Errorf("step %d: got %v and the checkpoint %q, want the error of the record and none", i, err, w.head.Checkpoint)
			}
		}
		if got := len(errs); got < 45 {
			t.Errorf("got %d steps in 10 s, want 50: a writer does not rest behind an error", got)
		}
	})
}

// TestAnEndedWriterReportsNothing ends a writer and a copier in the middle of a step. Neither may report the
// interrupted step.
func TestAnEndedWriterReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p, writer := newProcess(t, newWorld(1))
		p.changing = func() error {
			stop()
			return ctx.Err()
		}
		writer.Run(ctx, func(_ time.Time, err error) { t.Errorf("a writer: got the report %v, want none", err) })
		ctx, stop = context.WithCancel(t.Context())
		o := newOrigin(t, "log.example/log", 1)
		o.asked = func() error {
			stop()
			return ctx.Err()
		}
		copier, _ := newCopier(t, o)
		copier.Run(ctx, func(err error) { t.Errorf("a copier: got the report %v, want none", err) })
	})
}

// TestAWriterKeepsItsPace counts steps and checkpoints in 60 seconds in which the record grows ten times a second.
// The numbers must fit the options. Then it counts the reads of the head in 60 seconds without a change: some to begin
// with, and one in the time of ten checkpoints.
func TestAWriterKeepsItsPace(t *testing.T) {
	for _, c := range []struct {
		name                  string
		every, signed         time.Duration
		steps, checkpoints    int
		lessSteps, lessSigned int // how many of the steps and checkpoints may be missing
	}{
		{"by itself", 0, 0, 800, 100, 40, 30},
		{"as set", time.Second, 5 * time.Second, 60, 12, 3, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(1)
			w.most = 1000
			p, _ := newProcess(t, w)
			p.o.Every, p.o.Signed = c.every, c.signed
			checkpoints := 0
			p.o.Cosign = func(_ context.Context, _ translog.Checkpoint, signed []byte) ([]byte, error) {
				checkpoints++
				return signed, nil
			}
			writer := publiclog.NewWriter(p, p, p.o)
			go func() {
				for range 600 {
					time.Sleep(100 * time.Millisecond)
					w.mu.Lock()
					w.grown(t, w.horizon+1)
					w.mu.Unlock()
				}
			}()
			upto, _ := running(t, writer, time.Minute)
			if got := len(upto); got > c.steps+1 || got < c.steps-c.lessSteps {
				t.Errorf("%s: got %d steps, want about %d", c.name, got, c.steps)
			}
			if checkpoints > c.checkpoints+1 || checkpoints < c.checkpoints-c.lessSigned {
				t.Errorf("%s: got %d checkpoints, want about %d", c.name, checkpoints, c.checkpoints)
			}
			synctest.Wait()
			before := p.looks
			running(t, writer, time.Minute)
			if got, most := p.looks-before, c.checkpoints/10+5; got > most {
				t.Errorf("%s: got %d looks without a change, want at most %d", c.name, got, most)
			}
		})
	}
}

// TestABacklogIsLoggedWithoutPauses starts a writer on a record that needs 21 steps. Only the report of the last
// step, and later reports, may say that all changes are covered.
func TestABacklogIsLoggedWithoutPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.most = 2
		for position := int64(1); position <= 41; position++ {
			c := change(t, position)
			if position > 1 {
				c.Change = nil // makes the change not public
			}
			w.changes = append(w.changes, c)
		}
		w.horizon = 41
		_, writer := newProcess(t, w)
		began := time.Now()
		upto, errs := running(t, writer, 2*time.Second)
		for i := range upto {
			if covers := upto[i].After(time.UnixMicro(41)); covers != (i >= 20) || errs[i] != nil {
				t.Errorf("step %d: got %v, %v; want all covered: %v", i, upto[i], errs[i], i >= 20)
			}
		}
		if len(upto) < 21 || upto[20].Sub(began) > 700*time.Millisecond {
			t.Errorf("got %d steps, and all covered after %v; want 21 at once", len(upto), upto[len(upto)-1].Sub(began))
		}
	})
}

// TestAnEmptyRecordIsReadFromItsEnd has a record without changes below the horizon. The second read must begin
// at the horizon.
func TestAnEmptyRecordIsReadFromItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.horizon = 400 // no change is stored up to this position
		p, writer := newProcess(t, w)
		extended(t, writer)
		extended(t, writer)
		if len(p.after) != 2 || p.after[1] != 400 {
			t.Errorf("got reads of the record after %v, want the second one after 400", p.after)
		}
	})
}

// TestAWriterRestsBehindAFasterOne counts how often a process reads the head while another process extends the
// log. The first process must rest longer than usual.
func TestAWriterRestsBehindAFasterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.most = 1000
		_, works := newProcess(t, w)
		w.grown(t, 1)
		extended(t, works)
		p, _ := newProcess(t, w)
		p.o.Signed = time.Hour
		rests := publiclog.NewWriter(p, p, p.o)
		must(t, func() error { _, err := step(t, rests); return err }())
		before := p.looks
		var worked sync.WaitGroup
		worked.Go(func() {
			for range 3000 { // extends the log more often than the other process looks
				w.mu.Lock()
				w.grown(t, w.horizon+1)
				w.mu.Unlock()
				if _, _, err := works.Extend(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		running(t, rests, time.Minute)
		worked.Wait()
		if got := p.looks - before; got > 100 || got < 20 {
			t.Errorf("got %d looks in a minute, want about 55: a rest is one to 25 pauses of 75 ms", got)
		}
	})
}

// TestAWriterThatLostLeavesTheLogToTheWinner lets another process extend or sign the log in the middle of a
// step. The writer must change nothing then, and go on later.
func TestAWriterThatLostLeavesTheLogToTheWinner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		_, winner := newProcess(t, w)
		p, loser := newProcess(t, w)
		w.grown(t, 5)
		extended(t, winner)
		extended(t, loser)
		w.grown(t, 10)
		p.meanwhile = func() {
			p.meanwhile = nil
			extended(t, winner)
		}
		for _, want := range []bool{false, false, true} { // the writer loses, then sees the winner's head, then goes on
			if _, won, err := loser.Extend(t.Context()); err != nil || won != want {
				t.Errorf("extend: got %v, %v; want %v", won, err, want)
			}
		}
		p.meanwhile = func() {
			p.meanwhile = nil
			w.grown(t, 20)
			extended(t, winner)
		}
		_, err := step(t, loser)
		if newest := w.head.Checkpoint; err != nil || newest == nil || parse(newest).Size != w.head.Tree.Size() {
			t.Errorf("a step in which the head changes: got %v and the checkpoint %q, want one of the tree", err, newest)
		}
		w.grown(t, 30)
		before := p.looks
		extended(t, loser)
		signed(t, loser)
		w.grown(t, 40)
		extended(t, loser) // this writer signed the newest checkpoint, so it does not rest
		expect.Equal(t, p.looks-before, 3, "looks")
	})
}

// TestANewWriterSignsAtOnce starts a writer on a log whose newest leaves are not signed. Its first step must
// sign them.
func TestANewWriterSignsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		_, former := newProcess(t, w)
		w.grown(t, 10)
		extended(t, former)
		signed(t, former)
		w.grown(t, 20)
		extended(t, former)
		p, writer := newProcess(t, w)
		if _, err := step(t, writer); err != nil || parse(w.head.Checkpoint).Size != w.head.Tree.Size() {
			t.Errorf("got %v and a checkpoint of %d leaves, want %d", err, parse(w.head.Checkpoint).Size, w.head.Tree.Size())
		}
		expect.ErrorIf(t, p.looks != 2, "got %d looks, want 2: one to extend and one to sign", p.looks)
	})
}

// TestACutOffLogIsReportedInEachStep uses a log with fewer leaves than its checkpoint. Each step must report that
// the log is cut off, and sign nothing.
func TestACutOffLogIsReportedInEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		checkpoint, err := translog.Sign(translog.Checkpoint{Origin: "registry.example/log", Size: 5}, key(t))
		must(t, err)
		w.head.Checkpoint = checkpoint
		_, writer := newProcess(t, w)
		_, errs := running(t, writer, 3*time.Second)
		for i, err := range errs {
			expect.Says(t, err, "more leaves than the log", "step %d", i)
		}
		expect.ErrorIf(t, len(errs) < 14, "got %d steps, want 15", len(errs))
		expect.Equal(t, string(w.head.Checkpoint), string(checkpoint), "the checkpoint")
	})
}
