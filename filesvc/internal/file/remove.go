package file

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// maxReason is the largest number of bytes of the reason for a removal.
const maxReason = 1000

// Remove takes a file down for ever, and all files with the same bytes (docs/files.md, D8). The bytes are
// deleted, but documents still name the file. A file that was removed before keeps its first reason. Faults:
// Forbidden unless the caller is an administrator; Invalid without a reason; NotFound.
func (s *Service) Remove(ctx context.Context, by identity.Identity, id, reason string) (File, error) {
	switch {
	case by.Role != identity.Administrator:
		return File{}, fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden: only the administrator removes files.")
	case !fault.SaysSomething(reason) || len(reason) > maxReason:
		const says = "A reason of 1 to %d bytes is needed, with a letter or a digit."
		return File{}, fault.New(fault.Invalid, fault.Query, "reason", says, maxReason)
	}
	removed, err := s.takeDown(ctx, id, by.KeyID, reason)
	if err != nil || removed.SHA256 == "" {
		return removed, err
	}
	var faults []error
	for after := ""; ; {
		files, err := s.files.Page(ctx, after, page)
		if err != nil {
			return File{}, fmt.Errorf("remove the same bytes: %w", errors.Join(append(faults, err)...))
		}
		if len(files) == 0 {
			break
		}
		for _, f := range files {
			if err := s.takeDownSame(ctx, f, removed, by.KeyID, reason); err != nil && fault.KindOf(err) != fault.NotFound {
				faults = append(faults, err)
			}
			if len(faults) == maxFailed {
				return File{}, errors.Join(faults...)
			}
		}
		after = files[len(files)-1].ID
	}
	if len(faults) > 0 {
		return File{}, errors.Join(faults...)
	}
	return removed, nil
}

// takeDownSame takes a file down if it has the same bytes as a removed file. An upload that has not stored its metadata
// yet may bring these bytes: takeDownSame gives its file a new revision, so that the upload looks for removals again.
func (s *Service) takeDownSame(ctx context.Context, f, removed File, by, reason string) (err error) {
	if f.State == Registered && (f.MD5 == "" || f.MD5 == removed.MD5) {
		if f, err = s.change(ctx, f.ID, func(*File) error { return nil }); err != nil {
			return err
		}
	}
	if f.SHA256 != removed.SHA256 {
		return nil
	}
	_, err = s.takeDown(ctx, f.ID, by, reason)
	return err
}

// takeDown marks a file as removed, and then deletes its bytes. If the deletion fails, the collector deletes
// the bytes later.
func (s *Service) takeDown(ctx context.Context, id, by, reason string) (File, error) {
	f, err := s.change(ctx, id, func(f *File) error {
		switch f.State {
		case Collected:
			return notFound()
		case Removed:
			return errSame
		}
		f.State, f.RemovedBy, f.Reason = Removed, by, reason
		return nil
	})
	switch {
	case err == nil:
		s.Counts.Removed.Add(1)
	case errors.Is(err, errSame):
		if f, err = s.find(ctx, id); err != nil {
			return File{}, err
		}
	default:
		return File{}, err
	}
	return f, s.dropRemoved(ctx, f)
}

// dropRemoved stores the removal of a file beside the bytes, and deletes the bytes of the file.
func (s *Service) dropRemoved(ctx context.Context, f File) error {
	if err := s.bytes.NoteRemoval(ctx, f); err != nil {
		return fmt.Errorf("note the removal of file %s: %w", f.ID, err)
	}
	return s.dropBytes(ctx, f)
}

// dropBytes deletes all bytes of a file.
func (s *Service) dropBytes(ctx context.Context, f File) error {
	for _, name := range f.blobs() {
		if err := s.bytes.Remove(ctx, name); err != nil {
			return fmt.Errorf("remove the bytes of file %s: %w", f.ID, err)
		}
	}
	return nil
}

// RemoveAgain takes down all files whose removal is stored beside the bytes. It returns how many files it has removed
// from the metadata: those were restored from a time before the removal. A removal that cannot be read or applied
// stops no other, up to maxFailed of them.
func (s *Service) RemoveAgain(ctx context.Context) (removed int, err error) {
	noted, err := s.bytes.Removals(ctx)
	var faults []error
	if err != nil {
		faults = append(faults, fmt.Errorf("read the removals: %w", err))
	}
	for _, f := range noted {
		again, err := s.RemoveNoted(ctx, f)
		if again {
			removed++
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("remove file %s again: %w", f.ID, err))
		}
		if len(faults) == maxFailed {
			break
		}
	}
	if len(faults) > 0 {
		return removed, errors.Join(faults...)
	}
	s.held.Store(false)
	return removed, nil
}

// Hold makes the service refuse to open files until RemoveAgain has succeeded, because any file may have been
// removed.
func (s *Service) Hold() { s.held.Store(true) }

// IsHeld reports whether the service refuses to open files (Hold).
func (s *Service) IsHeld() bool { return s.held.Load() }

// RemoveNoted takes a file down as its stored removal says. It reports whether it has changed the metadata. If the
// metadata do not have the file, it adds the file, because uploads of the same bytes must be refused.
func (s *Service) RemoveNoted(ctx context.Context, noted File) (bool, error) {
	f, err := s.change(ctx, noted.ID, func(f *File) error {
		if f.State == Removed || f.State == Collected {
			return errSame
		}
		f.State, f.RemovedBy, f.Reason = Removed, noted.RemovedBy, noted.Reason
		f.SHA256, f.Size = noted.SHA256, noted.Size
		return nil
	})
	switch {
	case err == nil:
		return true, s.dropRemoved(ctx, f)
	case errors.Is(err, errSame):
		return false, nil
	case fault.KindOf(err) != fault.NotFound:
		return false, err
	}
	noted.Revision = 1
	if err := s.files.Create(ctx, noted); errors.Is(err, ErrExists) {
		return false, nil // another process has just created it
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// refuseRemoved returns a fault if a file with these bytes was removed. An upload calls it between reading and
// replacing the metadata of its file. A removal first marks its file, and then changes the revision of each file that
// may get the same bytes (takeDownSame). So an upload that has not seen the mark cannot replace its metadata.
func (s *Service) refuseRemoved(ctx context.Context, sha256 string) error {
	isRemoved, err := s.files.IsRemoved(ctx, sha256)
	if err != nil {
		return fmt.Errorf("look for removed bytes: %w", err)
	}
	if !isRemoved {
		return nil
	}
	return fault.New(fault.Forbidden, fault.Body, "file",
		"The operator has removed this file; it cannot be uploaded again.")
}

func gone() error {
	return fault.New(fault.Gone, fault.URL, "doc_id", "The operator has removed this file.")
}
