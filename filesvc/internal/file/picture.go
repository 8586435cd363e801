package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
)

// Drawn has the small and the large version of a picture, both as JPEG.
type Drawn struct{ Small, Large []byte }

// Drawer draws the small versions of pictures.
type Drawer interface {
	// Draw returns the small versions of the picture in a blob. It returns ErrNoPicture if the blob cannot be
	// drawn, and ErrEnded if something else may have ended the drawing, such as a signal. After another error, a later
	// try may work.
	Draw(ctx context.Context, from Blob) (Drawn, error)
}

const (
	maxWanted = 1000             // maximum number of files that wait in memory; the others are found in the metadata
	drawEvery = 10 * time.Minute // how often the metadata are searched for files that are not in memory
	maxFailed = 10               // after this many failures, the other files wait for the next search
	maxEnded  = 5                // how often a file is drawn again after ErrEnded; the pauses double, from drawEvery on
)

// want queues a file for Draw, if the file needs pictures and has its bytes.
func (s *Service) want(f File) {
	if f.Picture != Wanted || f.State != Stored {
		return
	}
	select {
	case s.wanted <- f.ID:
	default:
		s.missed.Store(true)
	}
}

// Draw makes the pictures that illustrations need, one file after another, until ctx is done. It calls the
// function `tell` with the error of each file, or with nil.
func (s *Service) Draw(ctx context.Context, by Drawer, tell func(error)) {
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	done := func(err error) {
		if err != nil {
			s.missed.Store(true)
		}
		if ctx.Err() == nil {
			tell(err)
		}
	}
	for ctx.Err() == nil {
		if s.missed.Swap(false) {
			done(s.drawMissed(ctx, by))
		}
		for isQuiet := false; !isQuiet; {
			select {
			case id := <-s.wanted:
				done(s.drawOne(ctx, by, id))
			case <-ticker.C:
				isQuiet = true
			case <-ctx.Done():
				isQuiet = true
			}
		}
	}
}

// drawMissed makes the pictures of all files that need them, according to the metadata.
func (s *Service) drawMissed(ctx context.Context, by Drawer) error {
	var faults []error
	for after := ""; ; {
		files, err := s.files.Page(ctx, after, page)
		if err != nil || len(files) == 0 {
			return errors.Join(append(faults, err)...)
		}
		for _, f := range files {
			if f.Picture != Wanted || f.State != Stored {
				continue
			}
			if err := s.drawOne(ctx, by, f.ID); err != nil {
				faults = append(faults, err)
			}
			if len(faults) == maxFailed {
				return errors.Join(faults...)
			}
		}
		after = files[len(files)-1].ID
	}
}

// drawOne makes the pictures of a file, if it still needs them.
func (s *Service) drawOne(ctx context.Context, by Drawer, id string) error {
	f, err := s.find(ctx, id)
	if err != nil || f.Picture != Wanted || f.State != Stored {
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	}
	if wait := f.Again.Sub(s.now()); wait > 0 && wait <= drawEvery<<(maxEnded-1) { // a longer wait is from a wrong clock
		s.missed.Store(true)
		return nil
	}
	next := File{Picture: Unmade}
	if filelink.IsPicture(f.Detected) {
		switch drawn, err := s.draw(ctx, by, f); {
		case err == nil:
			next = File{Picture: Made, Small: f.ID + "-" + random(blobBytes), Large: f.ID + "-" + random(blobBytes)}
			err = errors.Join(s.bytes.Put(ctx, next.Small, bytes.NewReader(drawn.Small)),
				s.bytes.Put(ctx, next.Large, bytes.NewReader(drawn.Large)))
			if err != nil {
				return errors.Join(fmt.Errorf("store the pictures of file %s: %w", id, err), s.dropBytes(ctx, next))
			}
		case errors.Is(err, ErrEnded):
			return s.drawLater(ctx, f, err)
		case !errors.Is(err, ErrNoPicture):
			return fmt.Errorf("draw file %s: %w", id, err)
		}
	}
	_, err = s.change(ctx, id, func(now *File) error {
		if now.Picture != Wanted || now.State != Stored || now.Swept != f.Swept {
			return errSame
		}
		now.Picture, now.Small, now.Large, now.Ended, now.Again = next.Picture, next.Small, next.Large, 0, time.Time{}
		return nil
	})
	switch kind := fault.KindOf(err); {
	case errors.Is(err, errSame), kind == fault.NotFound:
		return s.dropBytes(ctx, next)
	case err == nil && next.Picture == Made:
		s.Counts.Drawn.Add(1)
	case err == nil:
		s.Counts.Undrawn.Add(1)
	}
	return err // the pictures stay, because the change may have been stored
}

// drawLater stores that the drawing of a file was ended, and when it is drawn again. It gives the pictures up when they
// were drawn again maxEnded times. It returns the cause with what it has stored.
func (s *Service) drawLater(ctx context.Context, f File, cause error) error {
	next, err := s.change(ctx, f.ID, func(now *File) error {
		if now.Picture != Wanted || now.State != Stored || now.Ended != f.Ended {
			return errSame
		}
		if now.Ended++; now.Ended > maxEnded {
			now.Picture, now.Again = Unmade, time.Time{}
			return nil
		}
		now.Again = s.time().Add(drawEvery << (now.Ended - 1))
		return nil
	})
	cause = fmt.Errorf("draw file %s: %w", f.ID, cause)
	switch {
	case err != nil && !errors.Is(err, errSame) && fault.KindOf(err) != fault.NotFound:
		return errors.Join(cause, err)
	case err == nil && next.Picture == Unmade:
		s.Counts.GivenUp.Add(1)
		return fmt.Errorf("%w; its pictures are given up until the command \"draw\" is run", cause)
	}
	return cause
}

// DrawAgain lets the pictures be drawn again at once that were given up, or that wait for another try. With ids, it
// does this for the unmade pictures of these files, also if the drawer has found no picture in them. It returns the
// number of files. A process draws them when it starts.
func (s *Service) DrawAgain(ctx context.Context, ids []string) (files int, err error) {
	for after := ""; ; {
		found, err := s.files.Page(ctx, after, page)
		if err != nil || len(found) == 0 {
			return files, err
		}
		for _, f := range found {
			after = f.ID
			isNamed := slices.Contains(ids, f.ID) && f.Picture == Unmade
			if !isNamed && (f.Ended == 0 || len(ids) > 0) {
				continue
			}
			_, err := s.change(ctx, f.ID, func(now *File) error {
				if now.Picture != f.Picture || now.State != Stored {
					return errSame
				}
				now.Picture, now.Ended, now.Again = Wanted, 0, time.Time{}
				return nil
			})
			switch {
			case err == nil:
				files++
			case !errors.Is(err, errSame) && fault.KindOf(err) != fault.NotFound:
				return files, err
			}
		}
	}
}

func (s *Service) draw(ctx context.Context, by Drawer, f File) (Drawn, error) {
	blob, err := s.Open(ctx, f)
	if err != nil {
		return Drawn{}, err
	}
	defer blob.Close()
	return by.Draw(ctx, blob)
}

// OpenPicture opens a small version of a file, by the name of its bytes in the metadata. It returns a fault of
// kind NotFound if the file has no such version. The caller closes it.
func (s *Service) OpenPicture(ctx context.Context, name string) (Blob, error) {
	if err := s.checkHeld(); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, notFound()
	}
	blob, err := s.bytes.Open(ctx, name)
	if errors.Is(err, ErrNotFound) { // metadata and bytes were restored from different times
		return nil, notFound()
	}
	return blob, err
}
