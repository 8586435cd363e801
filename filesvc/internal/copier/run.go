package copier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/sleep"
)

const (
	followEvery = time.Second
	sweepEvery  = time.Hour
	retryMost   = 10 * time.Minute
	retries     = 3 // how often CatchUp fetches failed files again
)

// blobDigits is how many digits of the SHA-256 are a part of the name under which a file's bytes are stored.
const blobDigits = 16

// Run copies files and reads removals until ctx is done. It calls the function `copied` after each round of copies, and
// the function `removed` after each reading of removals. Both functions get the error, or nil. The copy of the assets
// must be complete before Run is called.
func (c *Copier) Run(ctx context.Context, copied, removed func(error)) {
	defer c.fetching.Wait()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for ctx.Err() == nil {
			c.told(ctx, removed, c.readRemovals(ctx))
			sleep.For(ctx, c.Every)
		}
		return nil
	})
	group.Go(func() error {
		for err := c.prepare(ctx); err != nil && ctx.Err() == nil; err = c.prepare(ctx) {
			c.told(ctx, copied, err)
			sleep.For(ctx, c.Every)
		}
		c.copy(ctx, copied)
		return nil
	})
	_ = group.Wait() // no function returns an error
}

// told calls the function `tell` with the error of a round, unless ctx is done.
func (c *Copier) told(ctx context.Context, tell func(error), err error) {
	if ctx.Err() == nil {
		tell(err)
	}
}

// copy follows the assets until ctx is done.
func (c *Copier) copy(ctx context.Context, tell func(error)) {
	swept := c.Now()
	for ctx.Err() == nil {
		err := c.follow(ctx)
		if c.Now().Sub(swept) >= sweepEvery {
			err, swept = errors.Join(err, c.sweep(ctx)), c.Now()
		}
		if err == nil {
			err = c.retry(ctx)
		}
		if err == nil {
			err = c.fault()
		}
		c.told(ctx, tell, err)
		sleep.For(ctx, followEvery)
	}
}

// CatchUp copies all files that the assets name now, and applies the removals. If a file cannot be copied, or the
// removals cannot be read to their end, it does the rest and then returns an error.
func (c *Copier) CatchUp(ctx context.Context) error {
	prepared, unread := c.prepare(ctx), c.readRemovals(ctx)
	if prepared != nil {
		return errors.Join(prepared, unread)
	}
	err := c.follow(ctx)
	c.fetching.Wait()
	for try := 0; err == nil && c.fault() != nil && try < retries && sleep.For(ctx, c.Retry<<try); try++ {
		unread = c.readRemovals(ctx) // a file that could not be copied may have been removed
		err = c.retry(ctx)
		c.fetching.Wait()
	}
	return errors.Join(err, unread, ctx.Err(), c.fault())
}

// fault returns an error if some files could not be copied.
func (c *Copier) fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, f := range c.failed {
		return fmt.Errorf("%d files could not be copied; one is %s: %w", len(c.failed), id, f.err)
	}
	return nil
}

// prepare removes what an earlier process left: removed files, unfinished bytes, and files that no asset names. A step
// that fails stops no other.
func (c *Copier) prepare(ctx context.Context) error {
	_, err := c.Files.RemoveAgain(ctx)
	tidied := c.Bytes.Tidy(ctx, c.Now().Add(time.Hour)) // no other process writes here
	return errors.Join(err, tidied, c.sweep(ctx), c.dropUnnamed(ctx))
}

// dropUnnamed removes the bytes that no metadata name. No file may be fetched meanwhile.
func (c *Copier) dropUnnamed(ctx context.Context) error {
	for after := ""; ; {
		names, err := c.Bytes.Names(ctx, after, page)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			id, _, _ := strings.Cut(name, "-")
			f, err := c.Metadata.Get(ctx, id)
			if err != nil && !errors.Is(err, file.ErrNotFound) {
				return err
			}
			if f.Blob == name && f.State == file.Stored {
				continue
			}
			if err := c.Bytes.Remove(ctx, name); err != nil {
				return err
			}
		}
		after = names[len(names)-1]
	}
}

// sweep removes the files that no asset of the copy names any longer, and the bytes of removed files. A file that
// cannot be removed stops no other.
func (c *Copier) sweep(ctx context.Context) error {
	var faults []error
	for after := ""; ; {
		files, err := c.Metadata.Page(ctx, after, page)
		if err != nil || len(files) == 0 {
			return errors.Join(append(faults, err, c.settleUnknown(ctx))...)
		}
		for _, f := range files {
			after = f.ID
			if err := c.sweepOne(ctx, f); err != nil && len(faults) < mostFaults {
				faults = append(faults, err)
			}
		}
	}
}

func (c *Copier) sweepOne(ctx context.Context, f file.File) error {
	if f.State == file.Removed {
		return c.drop(ctx, f)
	}
	named, err := c.isNamed(ctx, f, true)
	if err != nil || named {
		return err
	}
	if err := c.Metadata.Delete(ctx, f); errors.Is(err, file.ErrStale) {
		return nil
	} else if err != nil {
		return err
	}
	c.forget(f.ID)
	return c.drop(ctx, f)
}

// settleUnknown deletes the namings of files without metadata, if their assets no longer name the files.
func (c *Copier) settleUnknown(ctx context.Context) error {
	for after := (file.Naming{}); ; {
		namings, err := c.Metadata.Awaiting(ctx, after, page)
		if err != nil || len(namings) == 0 {
			return err
		}
		for _, n := range namings {
			isFirst := n.File != after.File
			if after = n; !isFirst {
				continue
			}
			_, err := c.Metadata.Get(ctx, n.File)
			if errors.Is(err, file.ErrNotFound) {
				_, err = c.isNamed(ctx, file.File{ID: n.File}, true)
			}
			if err != nil {
				return err
			}
		}
	}
}

// asset is an asset that has changed.
type asset struct {
	position int64
	id       string
	text     []byte
}

// follow reads the assets after the last position, and starts to fetch the files that they name.
func (c *Copier) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		var found []asset
		size, last := 0, c.position
		err := c.Assets.Changes(c.position, func(position int64, id string, text []byte) bool {
			if bytes.Contains(text, []byte(mark)) {
				found = append(found, asset{position, id, bytes.Clone(text)})
				size += len(text)
			}
			last = position
			return len(found) < batch && size < batchBytes
		})
		if err != nil {
			return err
		}
		for _, a := range found {
			if err := c.look(ctx, a); err != nil {
				return err
			}
			c.position = a.position
		}
		if c.position = last; len(found) == 0 {
			return nil
		}
	}
	return ctx.Err()
}

// look starts to fetch the files that an asset names.
func (c *Copier) look(ctx context.Context, a asset) error {
	for _, f := range c.named(a.text) {
		isMissing, err := c.want(ctx, a.id, f)
		switch {
		case errors.Is(err, errContradiction):
			c.Counts.Refused.Add(1)
		case err != nil:
			return err
		case isMissing:
			if err := c.begin(ctx, f.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin waits until fewer than atOnce files are being fetched, and then starts to fetch a file.
func (c *Copier) begin(ctx context.Context, id string) error {
	c.mu.Lock()
	isUnderway := c.underway[id]
	c.underway[id] = true
	c.mu.Unlock()
	if isUnderway {
		return nil
	}
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		c.settled(id, ctx.Err())
		return ctx.Err()
	}
	c.fetching.Go(func() {
		defer func() { <-c.turns }()
		c.settled(id, c.fetch(ctx, id))
	})
	return nil
}

// settled stores that the fetching of a file has ended. If err is nil, the file was copied, or is not needed any
// more. Otherwise the file is fetched again later.
func (c *Copier) settled(id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.underway, id)
	before, isKnown := c.failed[id]
	switch {
	case err == nil:
		delete(c.failed, id)
	case isKnown || len(c.failed) < mostFailed:
		pause := min(c.Retry<<min(before.tries, 20), retryMost)
		c.failed[id] = failure{err, before.tries + 1, c.Now().Add(pause)}
	default:
		c.missed = true
	}
}

// forget removes a file from the failed files, because no asset names it any more.
func (c *Copier) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failed, id)
}

// retry starts to fetch the failed files whose pause is over.
func (c *Copier) retry(ctx context.Context) error {
	c.mu.Lock()
	var ids []string
	for id, f := range c.failed {
		if !c.Now().Before(f.next) {
			ids = append(ids, id)
		}
	}
	if c.missed && len(c.failed) < mostFailed/2 {
		c.missed, c.position = false, 0
	}
	c.mu.Unlock()
	for _, id := range ids {
		if err := c.begin(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies the bytes of a file. It returns nil for a file that is not needed any more.
func (c *Copier) fetch(ctx context.Context, id string) error {
	f, err := c.Metadata.Get(ctx, id)
	if errors.Is(err, file.ErrNotFound) || err == nil && f.State != file.Registered {
		return nil
	}
	if err != nil {
		return err
	}
	answer, from, err := c.Source.open(ctx, f)
	if err != nil {
		return c.refused(err)
	}
	defer answer.Close()
	detected, all, err := file.Detect(from)
	if err != nil {
		return c.refused(err)
	}
	f.Detected, f.Blob = detected, f.ID+"-"+f.SHA256[:blobDigits]
	describe(&f, answer.Header)
	if err := c.Bytes.Put(ctx, f.Blob, file.Verified(all, f)); err != nil {
		return c.refused(err)
	}
	f.State, f.Revision = file.Stored, f.Revision+1
	switch err := c.Metadata.Replace(ctx, f); {
	case errors.Is(err, file.ErrStale): // the file was removed meanwhile, or these bytes are not needed any more
		return c.Bytes.Remove(context.WithoutCancel(ctx), f.Blob)
	case err != nil:
		return err
	}
	c.Counts.Copied.Add(1)
	c.Counts.Bytes.Add(f.Size)
	return nil
}

// refused counts an error if it means that the upstream did not send the right file. It returns the error.
func (c *Copier) refused(err error) error {
	if errors.Is(err, errAnswer) || errors.Is(err, file.ErrSum) {
		c.Counts.Refused.Add(1)
	}
	return err
}
