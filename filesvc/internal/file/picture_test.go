package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"asset-registry/shared/fault"
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
	f, err := b.Add(t.Context(), broker, upload(text))
	must(t, f, err)
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
		name           string
		text           string
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
			if len(b.wanted) != 0 {
				t.Error("got it to be drawn again, want it drawn once")
			}
			if c.want != Made {
				if _, err := b.OpenPicture(t.Context(), ""); fault.KindOf(err) != fault.NotFound {
					t.Errorf("got %v, want NotFound", err)
				}
				return
			}
			for name, want := range map[string]string{b.memory.files[f.ID].Small: "small", b.memory.files[f.ID].Large: "large"} {
				blob, err := b.OpenPicture(t.Context(), name)
				got, err := io.ReadAll(must(t, blob, err))
				if string(must(t, got, err)) != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

// TestPicturesOfLateBytes names a file as an illustration before the bytes of the file arrive. The pictures must be
// made once the bytes are there.
func TestPicturesOfLateBytes(t *testing.T) {
	b := newBench()
	f := b.register(t, image)
	must(t, f, b.Name(t.Context(), f.ID, true))
	if len(b.wanted) != 0 {
		t.Error("got it to be drawn without bytes")
	}
	stored, err := b.Upload(t.Context(), broker, f.ID, upload(image))
	must(t, stored, err)
	must(t, f, b.drawAll(t, &painter{do: works}))
	b.looksLike(t, "after the upload", f, Made, 3)
}

// TestAnIllustrationComesDuringTheUpload names a file as an illustration while the bytes of the file arrive. The
// pictures must be made after the upload.
func TestAnIllustrationComesDuringTheUpload(t *testing.T) {
	b := newBench()
	f := b.register(t, image)
	u := upload(image)
	name := readerFunc(func([]byte) (int, error) { return 0, cmp.Or(b.Name(t.Context(), f.ID, true), io.EOF) })
	u.Body = io.MultiReader(u.Body, name)
	stored, err := b.Upload(t.Context(), broker, f.ID, u)
	must(t, stored, err)
	must(t, f, b.drawAll(t, &painter{do: works}))
	b.looksLike(t, "after the upload", f, Made, 3)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestADocumentBecomesAnIllustration has a document that becomes an illustration only later. The pictures must
// then be made.
func TestADocumentBecomesAnIllustration(t *testing.T) {
	b := newBench()
	f := b.add(t, image, false)
	must(t, f, b.Name(t.Context(), f.ID, true))
	must(t, f, b.drawAll(t, &painter{do: works}))
	b.looksLike(t, "after the change", f, Made, 3)
}

// TestPicturesGoWithTheirFile removes a file before, while and after its pictures are made (D8). No bytes may
// stay.
func TestPicturesGoWithTheirFile(t *testing.T) {
	remove := func(t *testing.T, b *bench, f File) {
		t.Helper()
		removed, err := b.Remove(t.Context(), admin, f.ID, "a court has ordered it")
		must(t, removed, err)
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

// TestPicturesAreKept runs the sweep when pictures are older than a day. The sweep must keep the pictures.
func TestPicturesAreKept(t *testing.T) {
	b := newBench()
	f := b.add(t, image, true)
	must(t, f, b.drawAll(t, &painter{do: works}))
	b.clock = b.clock.Add(3 * keep)
	done, err := b.Collect(t.Context())
	must(t, done, err)
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
			b.memory.step = func(o string) error {
				if o == operation {
					return failure
				}
				return nil
			}
			if err := b.drawOne(t.Context(), &painter{do: works}, f.ID); err == nil {
				t.Errorf("%s fails: got no error", operation)
			}
			b.memory.step = func(string) error { return nil }
			must(t, f, b.drawOne(t.Context(), &painter{do: works}, f.ID))
			b.clock = b.clock.Add(3 * keep)
			done, err := b.Collect(t.Context())
			must(t, done, err)
			b.looksLike(t, fmt.Sprintf("%s fails with %q", operation, failure), f, Made, 3)
		}
	}
}

// TestPicturesOfTheProcessBefore has more files that need pictures than can wait in memory, as after a restart.
// The pictures of all of them must be made.
func TestPicturesOfTheProcessBefore(t *testing.T) {
	b := newBench()
	b.wanted = make(chan string, 1)
	var files []File
	for range 3 {
		files = append(files, b.add(t, image, true))
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	drawn := 0
	b.Draw(ctx, &painter{do: works}, func(error) {
		if drawn = 0; len(b.wanted) == 0 {
			for _, f := range files {
				if b.memory.files[f.ID].Picture == Made {
					drawn++
				}
			}
			end()
		}
	})
	if drawn != len(files) {
		t.Errorf("got %d files with pictures, want %d", drawn, len(files))
	}
}
