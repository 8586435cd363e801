package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"asset-registry/shared/fault"
	"asset-registry/shared/testing/expect"
)

// painter is a Drawer that calls the function `do`, and counts the calls.
type painter struct {
	calls int
	do    func() error
}

func (p *painter) Draw(context.Context, Blob) (Drawn, error) {
	p.calls++
	return Drawn{Small: []byte("small"), Large: []byte("large")}, p.do()
}

func works() error { return nil }

// image is the beginning of a PNG file.
const image = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// add stores a file, and marks it as named by a document.
func (b *bench) add(t *testing.T, text string, isIllustration bool) File {
	t.Helper()
	f := b.stored(t, text)
	must(t, f, b.Name(t.Context(), f.ID, isIllustration))
	return f
}

// drawAll makes the pictures of all files that wait in memory.
func (b *bench) drawAll(t *testing.T, by Drawer) error {
	t.Helper()
	var faults []error
	for len(b.wanted) > 0 {
		faults = append(faults, b.drawOne(t.Context(), by, <-b.wanted))
	}
	return errors.Join(faults...)
}

// looksLike fails the test unless the pictures of a file are in the given state, and the given number of blobs
// is stored.
func (b *bench) looksLike(t *testing.T, what string, f File, want Picture, blobs int) {
	t.Helper()
	got := b.memory.files[f.ID]
	if got.Picture != want || len(b.memory.blobs) != blobs || (got.Small == "") != (want != Made) {
		t.Errorf("%s: got %q and %d blobs, want %q and %d", what, got.Picture, len(b.memory.blobs), want, blobs)
	}
}

func TestIllustrationsGetPictures(t *testing.T) {
	away := errors.New("the disk is away")
	for _, c := range []struct {
		name, text     string
		isIllustration bool
		err            error
		want           Picture
		blobs, calls   int
	}{
		{"an illustration", image, true, nil, Made, 3, 1},
		{"another document", image, false, nil, "", 1, 0},
		{"an illustration that is no picture", "text", true, nil, Unmade, 1, 0},
		{"a picture that takes too much", image, true, ErrNoPicture, Unmade, 1, 1},
		{"a failure", image, true, away, Wanted, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, p := newBench(), &painter{do: func() error { return c.err }}
			f := b.add(t, c.text, c.isIllustration)
			err := b.drawAll(t, p)
			b.looksLike(t, "after the drawing", f, c.want, c.blobs)
			if errors.Is(err, away) != (c.want == Wanted) || p.calls != c.calls {
				t.Errorf("got %v and %d calls, want %d", err, p.calls, c.calls)
			}
			must(t, f, b.Name(t.Context(), f.ID, c.isIllustration))
			expect.ErrorIf(t, len(b.wanted) != 0, "got it to be drawn again, want it drawn once")
			if c.want != Wanted {
				must(t, f, b.drawOne(t.Context(), p, f.ID))
			}
			drawn, undrawn := b.Counts.Drawn.Load() == 1, b.Counts.Undrawn.Load() == 1
			if p.calls != c.calls || drawn != (c.want == Made) || undrawn != (c.want == Unmade) {
				t.Errorf("got %d calls, drawn: %t, undrawn: %t; want %d calls and each file counted once", p.calls, drawn,
					undrawn, c.calls)
			}
			if c.want != Made {
				expect.FaultOf(t, fault.NotFound, "")(b.OpenPicture(t.Context(), ""))
				return
			}
			for name, want := range map[string]string{b.memory.files[f.ID].Small: "small", b.memory.files[f.ID].Large: "large"} {
				blob, err := b.OpenPicture(t.Context(), name)
				got, err := io.ReadAll(must(t, blob, err))
				expect.ErrorIf(t, string(must(t, got, err)) != want, "got %q, want %q", got, want)
			}
		})
	}
}

// TestALateIllustrationGetsPictures has files that a document shows as a picture before, while or after the bytes of the
// file arrive. The pictures must be made once the bytes are there.
func TestALateIllustrationGetsPictures(t *testing.T) {
	for _, when := range []string{"before", "while", "after"} {
		b := newBench()
		f, u := b.register(t, image), upload(image)
		name := func() error { return b.Name(t.Context(), f.ID, true) }
		switch when {
		case "before":
			expect.OK(t, name())
			expect.ErrorIf(t, len(b.wanted) != 0, "got it to be drawn without bytes")
		case "while":
			u.Body = io.MultiReader(u.Body, readerFunc(func([]byte) (int, error) { return 0, cmp.Or(name(), io.EOF) }))
		}
		expect.Get(b.Upload(t.Context(), broker, f.ID, u))(t)
		if when == "after" {
			expect.OK(t, b.Name(t.Context(), f.ID, false), name())
		}
		expect.OK(t, b.drawAll(t, &painter{do: works}))
		b.looksLike(t, when+" the upload", f, Made, 3)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPicturesGoWithTheirFile removes a file before, while and after its pictures are made (D8). No bytes may
// stay.
func TestPicturesGoWithTheirFile(t *testing.T) {
	remove := func(t *testing.T, b *bench, f File) {
		t.Helper()
		expect.Get(b.Remove(t.Context(), admin, f.ID, "a court has ordered it"))(t)
	}
	b := newBench()
	f := b.add(t, image, true)
	remove(t, b, f)
	must(t, f, b.drawAll(t, &painter{do: works}))
	b.looksLike(t, "removed before", f, Wanted, 0)

	b = newBench()
	f = b.add(t, image, true)
	must(t, f, b.drawAll(t, &painter{do: func() error { remove(t, b, f); return nil }}))
	b.looksLike(t, "removed meanwhile", f, Wanted, 0)

	b = newBench()
	f = b.add(t, image, true)
	must(t, f, b.drawAll(t, &painter{do: works}))
	remove(t, b, f)
	b.looksLike(t, "removed after", f, Made, 0)
}

// TestOthersChangeAFileThatIsDrawn changes a file while it is drawn: another process draws it, or the file is
// deleted. The pictures that nothing names must go. A file that does not exist must not be drawn.
func TestOthersChangeAFileThatIsDrawn(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b *bench, id string)
		want   Picture
		blobs  int
	}{
		{"another process draws it", func(b *bench, id string) { must(t, id, b.drawOne(t.Context(), &painter{do: works}, id)) }, Made, 3},
		{"it is deleted", func(b *bench, id string) { delete(b.memory.files, id) }, "", 1},
	} {
		b := newBench()
		f := b.add(t, image, true)
		p := &painter{do: func() error { c.change(b, f.ID); return nil }}
		must(t, f, b.drawOne(t.Context(), p, f.ID))
		b.looksLike(t, c.name, f, c.want, c.blobs)
	}
	b, p := newBench(), &painter{do: works}
	if err := b.drawOne(t.Context(), p, strings.Repeat("0", 32)); err != nil || p.calls != 0 {
		t.Errorf("no file: got %v and %d drawings, want neither an error nor a drawing", err, p.calls)
	}
}

// TestPicturesAreKept runs the sweep when pictures are older than a day. The sweep must keep the pictures.
func TestPicturesAreKept(t *testing.T) {
	b := newBench()
	f := b.add(t, image, true)
	must(t, f, b.drawAll(t, &painter{do: works}))
	b.clock = b.clock.Add(3 * keep)
	expect.Get(b.Collect(t.Context()))(t)
	b.looksLike(t, "after three days", f, Made, 3)
}

// TestADrawingIsSweptAway lets a process store pictures, and then stops it for days, before the metadata name
// the pictures. The sweep removes the pictures, so the metadata must not name them afterwards.
func TestADrawingIsSweptAway(t *testing.T) {
	b := newBench()
	f := b.add(t, image, true)
	b.memory.step = func(operation string) error {
		if operation == "replace" {
			b.memory.step = func(string) error { return nil }
			b.clock = b.clock.Add(3 * keep)
			_, err := b.Collect(t.Context())
			return err
		}
		return nil
	}
	must(t, f, b.drawAll(t, &painter{do: works}))
	b.looksLike(t, "after the sweep", f, Wanted, 1)
}

// TestDrawingFailsAtEachStep makes each operation of the stores fail, before or after it takes effect. A later
// try must make the pictures, and the failure must leave no bytes that stay for ever.
func TestDrawingFailsAtEachStep(t *testing.T) {
	for _, operation := range []string{"get", "open", "put", "replace"} {
		for _, failure := range []error{errors.New("away"), errLost} {
			b := newBench()
			f := b.add(t, image, true)
			b.memory.fails(operation, failure)
			expect.Fails(t, b.drawOne(t.Context(), &painter{do: works}, f.ID), "%s fails", operation)
			b.memory.step = func(string) error { return nil }
			if b.Counts.Drawn.Load()+b.Counts.Undrawn.Load() != 0 {
				t.Errorf("%s fails: got the file counted, want it counted when it is done", operation)
			}
			must(t, f, b.drawOne(t.Context(), &painter{do: works}, f.ID))
			b.clock = b.clock.Add(3 * keep)
			expect.Get(b.Collect(t.Context()))(t)
			b.looksLike(t, fmt.Sprintf("%s fails with %q", operation, failure), f, Made, 3)
		}
	}
}

// TestPicturesThatNoQueueHas has files that need pictures and are not in the queue: files of a process that has
// ended, and more files than the queue can have. The pictures of all of them must be made at the start.
func TestPicturesThatNoQueueHas(t *testing.T) {
	for what, lose := range map[string]func(*bench){
		"the process before": func(b *bench) {
			b.Service = NewService(b.memory, b.memory, b.memory, b.limits, b.now)
		},
		"a full queue": func(*bench) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench()
			b.wanted = make(chan string, 1)
			b.missed.Store(false) // as after the first search
			var files []File
			for range 3 {
				files = append(files, b.add(t, image, true))
			}
			lose(b)
			ctx, end := context.WithCancel(t.Context())
			go b.Draw(ctx, &painter{do: works}, func(error) {})
			synctest.Wait()
			end()
			for _, f := range files {
				b.looksLike(t, what, f, Made, 3*len(files))
			}
		})
	}
}

// TestAFailureIsDrawnLater lets a drawing fail. It must be tried again in ten minutes. When nothing failed, nobody
// may search the metadata for files that need pictures.
func TestAFailureIsDrawnLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, away := newBench(), errors.New("away")
		b.missed.Store(false)
		pages := 0
		b.memory.step = func(operation string) error {
			if operation == "page" {
				pages++
			}
			return nil
		}
		p := &painter{do: func() error { return away }}
		f := b.add(t, image, true)
		before := 0
		var told []error
		ctx, end := context.WithTimeout(t.Context(), 10*drawEvery)
		defer end()
		b.Draw(ctx, p, func(err error) {
			told = append(told, err)
			before, p.do = pages, works
		})
		b.looksLike(t, "ten minutes later", f, Made, 3)
		if len(told) != 2 || !errors.Is(told[0], away) || told[1] != nil || pages != before {
			t.Errorf("got %v told, and then %d pages of metadata read; want a failure, a success, and no page", told,
				pages-before)
		}

		ctx, end = context.WithCancel(t.Context())
		p.do = func() error { end(); return away }
		b.add(t, image, true)
		b.Draw(ctx, p, func(err error) { t.Errorf("ended during a drawing: got %v told, want nothing", err) })
		expect.Equal(t, p.calls, 3, "drawings")
	})
}

// TestASearchEndsAfterTenFailures has many files whose pictures cannot be drawn now, and files that need no
// pictures. The search must try ten files of the first kind, and read none of the second kind. A later search must
// draw them all.
func TestASearchEndsAfterTenFailures(t *testing.T) {
	b, away := newBench(), errors.New("away")
	for i := range 3 * maxFailed {
		f := File{ID: fmt.Sprintf("%032x", i), State: Stored, Detected: "image/png", Revision: 1, Size: 1}
		f.Blob = f.ID + "-0123456789abcdef"
		switch i % 3 {
		case 0:
			f.Picture = Wanted
		case 1:
			f.Picture, f.State = Wanted, Removed
		}
		b.memory.files[f.ID], b.memory.blobs[f.Blob] = f, kept{text: []byte("x")}
	}
	f := File{ID: strings.Repeat("f", 32), State: Stored, Detected: "image/png", Revision: 1, Size: 1, Picture: Wanted}
	f.Blob = f.ID + "-0123456789abcdef"
	b.memory.files[f.ID], b.memory.blobs[f.Blob] = f, kept{text: []byte("x")}
	reads := 0
	b.memory.step = func(operation string) error {
		if operation == "get" {
			reads++
		}
		return nil
	}
	p := &painter{do: func() error { return away }}
	if err := b.drawMissed(t.Context(), p); !errors.Is(err, away) || p.calls != maxFailed || reads != maxFailed {
		t.Errorf("got %v after %d drawings and %d files read, want %v and %d of both", err, p.calls, reads, away, maxFailed)
	}
	p.do = works
	must(t, f, b.drawMissed(t.Context(), p))
	expect.Equal(t, b.Counts.Drawn.Load(), maxFailed+1, "files drawn")
}
