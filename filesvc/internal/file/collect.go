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

	hourLeast = time.Hour - time.Minute // an hourly ticker may be a bit early
	dayHours  = 26                      // 25 whole intervals of hourLeast are more than a day
	maxStrays = 10_000                  // bytes without a file that are remembered until the next run
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
// of uploads that never ended (docs/files.md, "Collection"). A step that fails stops no other. The function `steady`
// returns the time of a clock that nobody sets: the time since any moment of this process.
func (s *Service) Collect(ctx context.Context, steady func() time.Duration) (done Collection, err error) {
	var again, swept error
	done.Again, again = s.RemoveAgain(ctx)
	err = errors.Join(again, s.countHour(ctx, steady), s.collectAll(ctx, &done), s.files.Recount(ctx))
	done.Blobs, swept = s.sweep(ctx, steady())
	if err = errors.Join(err, swept); err != nil {
		err = fmt.Errorf("collect: %w", err)
	}
	return done, err
}

// collectAll looks at all files. A file that cannot be deleted stops no other, up to maxFailed of them.
func (s *Service) collectAll(ctx context.Context, done *Collection) error {
	var faults []error
	for after := ""; len(faults) < maxFailed; {
		files, err := s.files.Page(ctx, after, page)
		if err != nil || len(files) == 0 {
			return errors.Join(append(faults, err)...)
		}
		// The reading comes after the files, so that Reading.Hours counts every hour before a file was last touched.
		reading, err := s.readings.Reading(ctx)
		if err != nil {
			return errors.Join(append(faults, err)...)
		}
		for _, f := range files {
			collected, err := s.collect(ctx, f, reading)
			switch {
			case err != nil:
				faults = append(faults, fmt.Errorf("file %s: %w", f.ID, err))
			case collected:
				done.Files++
				done.Bytes += f.Size
				s.Counts.Collected.Add(1)
			case f.State == Stored:
				done.Kept += f.Size
			}
			if len(faults) == maxFailed {
				break
			}
		}
		after = files[len(files)-1].ID
	}
	return errors.Join(faults...)
}

// countHour adds 1 to the stored count of hours (Reading.Hours) if this process has seen the same count for an hour.
// So however many processes count, an hour passes between two counts, and no clock of a machine matters.
func (s *Service) countHour(ctx context.Context, steady func() time.Duration) error {
	r, err := s.readings.Reading(ctx)
	if err != nil {
		return err
	}
	if r.Hours == 0 || r.Hours == s.counted && steady()-s.since >= s.hour {
		if err := s.readings.PassHour(ctx, r.Hours); err != nil {
			return err
		}
		r.Hours++
	}
	if r.Hours != s.counted {
		s.counted, s.since = r.Hours, steady()
	}
	return nil
}

// isUnused reports whether no document names a file now, and no document will name it later. No document will name
// the file later if the reading began at least a day after the file was last touched. By that time, every document
// that claimed the file was committed or given up. The day must have passed by the counted hours, and also by the
// stored times. A stored time that is later than now comes from a wrong clock, and counts as none.
func (s *Service) isUnused(f File, r Reading) bool {
	now := s.now()
	return !f.Named && f.Seen > 0 && r.Began-f.Seen >= s.day && !r.Complete.After(now) &&
		(f.Touched.After(now) || !r.Complete.Before(f.Touched.Add(keep)))
}

// collect deletes a file that nothing uses. It continues the deletion where an earlier run stopped.
func (s *Service) collect(ctx context.Context, f File, r Reading) (collected bool, err error) {
	if f.State == Removed {
		return false, s.dropRemoved(ctx, f)
	}
	if f.State != Collected {
		isFirst := !f.Named && (f.Seen == 0 || f.Seen > r.Hours) // a count may be lost with older metadata
		switch {
		case isFirst:
			f.Seen = r.Hours
		case s.isUnused(f, r):
			f.State = Collected
		default:
			return false, nil
		}
		f.Revision++
		if err := s.files.Replace(ctx, f); errors.Is(err, ErrStale) {
			return false, nil // somebody has used the file meanwhile
		} else if err != nil || isFirst {
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

// sweep removes the bytes of uploads that began at least a day ago and never ended. A clock may be wrong, so the bytes
// go an hour after they were first seen. Every upload has stored its metadata by then, or was given up.
func (s *Service) sweep(ctx context.Context, steady time.Duration) (removed int, err error) {
	s.former, s.strays = s.strays, map[string]time.Duration{}
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
			swept, err := s.sweepBlob(ctx, name, before, steady)
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

// isOldStray reports whether the collector saw the bytes at least an hour ago. It remembers them until the next run.
func (s *Service) isOldStray(name string, steady time.Duration) bool {
	first, known := s.former[name]
	if !known {
		first = steady
	}
	if len(s.strays) < maxStrays {
		s.strays[name] = first
	}
	return known && steady-first >= s.hour
}

// sweepBlob removes an old blob that its file does not name. First it increases Swept in the metadata of the file.
// The upload that made the blob may still run: because Swept has changed, it is refused at its end, so that it
// cannot name the blob.
func (s *Service) sweepBlob(
	ctx context.Context, name string, before time.Time, steady time.Duration,
) (removed bool, err error) {
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
	if !s.isOldStray(name, steady) {
		return false, nil
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
