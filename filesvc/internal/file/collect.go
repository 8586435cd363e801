package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"asset-registry/shared/fault"
)

const (
	keep = 24 * time.Hour // how long an unused file is kept after it was last touched
	page = 200            // files or names that are read together
)

// Collection counts what one run of the collector did.
type Collection struct {
	Files int   // files deleted
	Bytes int64 // bytes of these files
	Blobs int   // deleted blobs of uploads that never ended
	Kept  int64 // bytes of the files that stay
	Again int   // removed files that restored metadata had brought back, and that were removed again
}

// Collect deletes files that no document names and that nobody has touched for a day. It also deletes the bytes
// of uploads that never ended (docs/files.md, "Collection").
func (s *Service) Collect(ctx context.Context) (Collection, error) {
	var done Collection
	var err error
	if done.Again, err = s.RemoveAgain(ctx); err != nil {
		return done, fmt.Errorf("collect: %w", err)
	}
	reading, err := s.readings.Reading(ctx)
	if err != nil {
		return done, fmt.Errorf("collect: %w", err)
	}
	for after := ""; ; {
		files, err := s.files.Page(ctx, after, page)
		if err != nil {
			return done, fmt.Errorf("collect: %w", err)
		}
		if len(files) == 0 {
			break
		}
		for _, f := range files {
			collected, err := s.collect(ctx, f, reading)
			if err != nil {
				return done, fmt.Errorf("collect file %s: %w", f.ID, err)
			}
			switch {
			case collected:
				done.Files++
				done.Bytes += f.Size
				s.Counts.Collected.Add(1)
			case f.State == Stored:
				done.Kept += f.Size
			}
		}
		after = files[len(files)-1].ID
	}
	done.Blobs, err = s.sweep(ctx)
	return done, err
}

// isUnused reports whether no document names a file now, and no document will name it later. No document will name
// the file later if the reading began at least a day after the file was last touched. By that time, every document
// that claimed the file was committed or given up.
func (f File) isUnused(r Reading) bool {
	return !f.Named && !r.Complete.Before(f.Touched.Add(keep))
}

// collect deletes a file that nothing uses. It continues the deletion where an earlier run stopped.
func (s *Service) collect(ctx context.Context, f File, r Reading) (collected bool, err error) {
	if f.State == Removed {
		return false, s.dropRemoved(ctx, f)
	}
	if ahead := f.Touched.Sub(s.now()); f.State != Collected && !f.Named && ahead > keep {
		// A wrong clock has set Touched to a time in the future. The day for which the file is kept begins now.
		f.Touched = s.time()
		f.Revision++
		if err := s.files.Replace(ctx, f); !errors.Is(err, ErrStale) {
			return false, err
		}
		return false, nil
	}
	if f.State != Collected {
		if !f.isUnused(r) {
			return false, nil
		}
		f.State = Collected
		f.Revision++
		if err := s.files.Replace(ctx, f); errors.Is(err, ErrStale) {
			return false, nil // somebody has used the file meanwhile
		} else if err != nil {
			return false, err
		}
	}
	if err := s.dropBytes(ctx, f); err != nil {
		return false, err
	}
	if err := s.files.Delete(ctx, f); err != nil && !errors.Is(err, ErrStale) {
		return false, err
	}
	return true, nil
}

// sweep removes the bytes of uploads that began at least a day ago and never ended.
func (s *Service) sweep(ctx context.Context) (removed int, err error) {
	before := s.now().Add(-keep)
	if err := s.bytes.Tidy(ctx, before); err != nil {
		return 0, fmt.Errorf("tidy up: %w", err)
	}
	for after := ""; ; {
		names, err := s.bytes.Names(ctx, after, page)
		if err != nil {
			return removed, fmt.Errorf("sweep: %w", err)
		}
		if len(names) == 0 {
			return removed, nil
		}
		for _, name := range names {
			swept, err := s.sweepBlob(ctx, name, before)
			if err != nil {
				return removed, fmt.Errorf("sweep %s: %w", name, err)
			}
			if swept {
				removed++
			}
		}
		after = names[len(names)-1]
	}
}

// sweepBlob removes an old blob that its file does not name. First it increases Swept in the metadata of the file.
// The upload that made the blob may still run: because Swept has changed, it is refused at its end, so that it
// cannot name the blob.
func (s *Service) sweepBlob(ctx context.Context, name string, before time.Time) (removed bool, err error) {
	id, _, _ := strings.Cut(name, "-")
	f, err := s.find(ctx, id)
	isGone := fault.KindOf(err) == fault.NotFound
	switch {
	case err != nil && !isGone:
		return false, err
	case !isGone && slices.Contains(f.blobs(), name):
		return false, nil
	}
	if old, err := s.bytes.IsBefore(ctx, name, before); err != nil || !old {
		return false, err
	}
	if !isGone {
		f.Swept++
		f.Revision++
		if err := s.files.Replace(ctx, f); errors.Is(err, ErrStale) {
			return false, nil // the next run tries again
		} else if err != nil {
			return false, err
		}
	}
	return true, s.bytes.Remove(ctx, name)
}
