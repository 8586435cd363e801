package file

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"asset-registry/shared/testing/expect"
)

// TestADrawingThatIsEndedIsDrawnLater has drawings that something else ends. They must be repeated five times with
// growing pauses, also by the processes that follow, and then only after a call of DrawAgain.
func TestADrawingThatIsEndedIsDrawnLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		began := time.Now()
		var at []time.Duration
		var told []error
		givenUp := int64(0)
		p := &painter{do: func() error {
			at = append(at, time.Since(began).Round(time.Minute))
			return fmt.Errorf("%w: signal: killed", ErrEnded)
		}}
		run := func(within time.Duration) { // as a new process
			t.Helper()
			b.Service = NewService(b.memory, b.memory, b.memory, b.limits, time.Now)
			ctx, end := context.WithTimeout(t.Context(), within)
			defer end()
			b.Draw(ctx, p, func(err error) {
				if err != nil {
					told = append(told, err)
				}
			})
			givenUp += b.Counts.GivenUp.Load()
		}
		f := b.add(t, image, true)
		refused := File{ID: strings.Repeat("f", 32), State: Stored, Revision: 1, Picture: Unmade}
		b.memory.files[refused.ID] = refused
		for len(at) < 6 && time.Since(began) < 12*time.Hour {
			run(25 * time.Minute)
		}
		run(24 * time.Hour)
		last := b.memory.files[f.ID]
		if len(at) != 6 || last.Picture != Unmade || givenUp != 1 || b.Counts.Undrawn.Load() != 0 || !strings.Contains(fmt.Sprint(told), "given up") {
			t.Fatalf("got drawings at %v, %q, given up %d times, and the errors %v; want 6 drawings, and then none", at,
				last.Picture, givenUp, told)
		}
		for i, least := 1, 10*time.Minute; i < len(at); i, least = i+1, 2*least {
			if pause := at[i] - at[i-1]; pause < least || pause > least+25*time.Minute {
				t.Errorf("got drawings at %v, want pauses of 10, 20, 40, 80 and 160 minutes", at)
			}
		}

		for _, c := range []struct {
			ids  []string
			want int
		}{{[]string{strings.Repeat("0", 32)}, 0}, {nil, 1}, {nil, 0}, {[]string{refused.ID}, 1}} {
			if files, err := b.DrawAgain(t.Context(), c.ids); files != c.want || err != nil {
				t.Errorf("%q: got %d files and %v, want %d", c.ids, files, err, c.want)
			}
		}
		run(time.Minute)
		if got := b.memory.files[f.ID]; len(at) != 7 || got.Picture != Wanted || got.Ended != 1 {
			t.Errorf("got %d drawings, %q after %d of them; want 7, and a file that was ended once", len(at), got.Picture, got.Ended)
		}
		p.do = works
		run(5 * time.Minute)
		b.looksLike(t, "in the pause", f, Wanted, 1)
		if files, err := b.DrawAgain(t.Context(), nil); files != 1 || err != nil {
			t.Errorf("in the pause: got %d files and %v, want 1", files, err)
		}
		run(time.Minute)
		b.looksLike(t, "after the command", f, Made, 3)
		if got := b.memory.files[f.ID]; got.Ended != 0 || !got.Again.IsZero() {
			t.Errorf("got %+v, want no trace of the failures", got)
		}
	})
}

// TestAVerdictForgetsWhatWasEnded has drawings that were ended before the drawer refuses the picture. The file must be one
// that is drawn again only by its id.
func TestAVerdictForgetsWhatWasEnded(t *testing.T) {
	b, p := newBench(), &painter{do: func() error { return ErrEnded }}
	f := b.add(t, image, true)
	expect.Err(t, b.drawAll(t, p), ErrEnded, "")
	p.do = func() error { return ErrNoPicture }
	b.clock = b.clock.Add(drawEvery)
	must(t, f, b.drawOne(t.Context(), p, f.ID))
	if got := b.memory.files[f.ID]; p.calls != 2 || got.Picture != Unmade || got.Ended != 0 || !got.Again.IsZero() {
		t.Errorf("got %+v after %d drawings, want no picture after 2", got, p.calls)
	}
	if files, err := b.DrawAgain(t.Context(), nil); files != 0 || err != nil {
		t.Errorf("got %d files drawn again and %v, want none", files, err)
	}
}

// TestAPauseOfAWrongClockEnds sets the clock both ways in the pause after an ended drawing. A pause that is longer than
// any pause must count as none.
func TestAPauseOfAWrongClockEnds(t *testing.T) {
	for step, want := range map[time.Duration]int{
		0: 1, drawEvery - 1: 1, drawEvery: 2, 10 * keep: 2, -time.Hour: 1, -150 * time.Minute: 1, -151 * time.Minute: 2, -10 * keep: 2,
	} {
		b, p := newBench(), &painter{do: func() error { return ErrEnded }}
		f := b.add(t, image, true)
		expect.Err(t, b.drawAll(t, p), ErrEnded, "")
		p.do = works
		b.clock, _ = b.clock.Add(step), b.missed.Swap(false)
		must(t, f, b.drawOne(t.Context(), p, f.ID))
		if p.calls != want || b.missed.Load() != (want == 1) {
			t.Errorf("the clock is set by %v: got %d drawings, to be searched for later: %t; want %d drawings", step, p.calls,
				b.missed.Load(), want)
		}
	}
}

// TestOthersChangeAFileWhoseDrawingEnds changes a file while a drawing of it is ended. The change must stay.
func TestOthersChangeAFileWhoseDrawingEnds(t *testing.T) {
	for name, change := range map[string]func(b *bench, f File) error{
		"another process draws it": func(b *bench, f File) error { return b.drawOne(t.Context(), &painter{do: works}, f.ID) },
		"it is ended in another process": func(b *bench, f File) error {
			f.Ended, f.Revision = 1, f.Revision+1
			b.memory.files[f.ID] = f
			return nil
		},
		"it is removed": func(b *bench, f File) error { return errorOf(b.Remove(t.Context(), admin, f.ID, "x")) },
		"it is deleted": func(b *bench, f File) error { delete(b.memory.files, f.ID); return nil },
	} {
		b := newBench()
		f := b.add(t, image, true)
		f = b.memory.files[f.ID]
		var want File
		p := &painter{do: func() error {
			must(t, f, change(b, f))
			want = b.memory.files[f.ID]
			return ErrEnded
		}}
		if err := b.drawOne(t.Context(), p, f.ID); !errors.Is(err, ErrEnded) || b.memory.files[f.ID] != want {
			t.Errorf("%s: got %v and %+v, want %+v", name, err, b.memory.files[f.ID], want)
		}
	}
}
