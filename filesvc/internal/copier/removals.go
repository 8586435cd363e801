package copier

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/filesvc/internal/file"
)

// readRemovals reads the removals of the upstream, and applies each page before it reads the next one. A removal that
// cannot be applied stops no other. If any fails, the removals do not count as read.
func (c *Copier) readRemovals(ctx context.Context) error {
	var faults []error
	seen := 0
	for after, more := "", true; more; {
		var ids []string
		var err error
		ids, more, err = c.Source.removed(ctx, after)
		if seen += len(ids); err == nil && seen > mostRemoved {
			err = fmt.Errorf("%w: it has more than %d removals", errAnswer, mostRemoved)
		}
		if err != nil {
			return fmt.Errorf("read the removals: %w", errors.Join(append(faults, err)...))
		}
		for _, id := range ids {
			if err := c.remove(ctx, id); err != nil && len(faults) < mostFaults {
				faults = append(faults, fmt.Errorf("remove file %s: %w", id, err))
			}
			after = id
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	c.known.Store(new(c.Now()))
	return nil
}

// remove takes a file down. It first notes the removal beside the bytes, so that the next process also knows it. It
// does nothing if the copy does not have the file and its assets do not name it. If they name it later, a later
// reading of the removals finds it.
func (c *Copier) remove(ctx context.Context, id string) error {
	f, err := c.Metadata.Get(ctx, id)
	if errors.Is(err, file.ErrNotFound) {
		f = file.File{ID: id, Touched: c.now()}
		var named bool
		if named, err = c.isNamed(ctx, f, false); !named {
			return err
		}
	}
	if err != nil || f.State == file.Removed {
		return err
	}
	f.State = file.Removed
	if err := c.Bytes.NoteRemoval(ctx, f); err != nil {
		return err
	}
	isNew, err := c.Files.RemoveNoted(ctx, f)
	if isNew {
		c.Counts.Removed.Add(1)
	}
	return err
}
