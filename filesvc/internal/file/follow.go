package file

import (
	"context"
	"errors"
	"fmt"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/sleep"
)

// Feed reads the feed of assets in all modes.
type Feed interface {
	// After reads the next assets after a position. It returns the files that the documents of these assets name,
	// and the position of the last of these assets. At the end of the feed, it returns the given position. This
	// means that no change which was acknowledged before the call comes after that position.
	After(ctx context.Context, position int64) (named []Named, next int64, err error)
}

// Named says that a document of an asset names a file. It also has facts about the document.
type Named struct {
	Naming
	IsWhole        bool // the document has the SHA-256 and the size of the file
	IsIllustration bool // the document shows the file as a picture
}

// Follower marks the files that documents name, and adds the SHA-256 and the size of files to documents
// (docs/files.md, "Sight" and "Binding"). All fields are required.
type Follower struct {
	Service   *Service
	Feed      Feed
	Awaited   Awaited
	Documents Documents
}

// Read reads the feed from the last position to its end.
func (f Follower) Read(ctx context.Context) error {
	reading, err := f.Service.readings.Reading(ctx)
	if err != nil {
		return fmt.Errorf("get the reading: %w", err)
	}
	hours := reading.Hours
	for {
		begun := f.Service.time()
		all, next, err := f.Feed.After(ctx, reading.Position)
		if err != nil {
			return fmt.Errorf("read the feed: %w", err)
		}
		isEnd := next == reading.Position
		for _, n := range all {
			if err := f.Service.Name(ctx, n.File, n.IsIllustration); err != nil {
				return fmt.Errorf("name file %s: %w", n.File, err)
			}
			if n.IsWhole {
				continue
			}
			if err := f.Awaited.Await(ctx, n.Naming); err != nil {
				return fmt.Errorf("note that file %s is awaited: %w", n.File, err)
			}
			f.Service.arrivals.Add(1)
		}
		reading = Reading{Position: next}
		if isEnd {
			reading.Complete, reading.Began = begun, hours
		}
		if err := f.Service.readings.SetReading(ctx, reading); err != nil {
			return fmt.Errorf("store the reading: %w", err)
		}
		if isEnd {
			return nil
		}
	}
}

// completeEvery is how often documents are completed even if this process has noticed no upload.
const completeEvery = time.Minute

// Run reads the feed again and again until ctx is done, and completes documents after their files were uploaded.
// After each round it calls the function `tell` with the error of the round, or with nil.
func (f Follower) Run(ctx context.Context, every time.Duration, tell func(error)) {
	var seen int64
	var completed time.Time
	for ctx.Err() == nil {
		err := f.Read(ctx)
		if now := f.Service.arrivals.Load(); err == nil && (now != seen || time.Since(completed) > completeEvery) {
			if err = f.complete(ctx); err == nil {
				seen, completed = now, time.Now()
			}
		}
		if ctx.Err() == nil {
			tell(err)
		}
		sleep.For(ctx, every)
	}
}

// Naming says that an asset has a document that names a file.
type Naming struct {
	File, Asset string // ids
}

// Awaited stores the namings whose documents do not have the SHA-256 and the size of the file yet. It is safe
// for concurrent use.
type Awaited interface {
	// Await stores a naming. It does nothing if the naming is already stored.
	Await(ctx context.Context, n Naming) error
	// Awaiting returns at most limit namings that come after the given one, ordered by file and asset.
	Awaiting(ctx context.Context, after Naming, limit int) ([]Naming, error)
	// Settle removes a naming. It does nothing if the naming is not stored.
	Settle(ctx context.Context, n Naming) error
}

// Documents changes the documents of assets.
type Documents interface {
	// Complete adds the SHA-256 and the size of a file to documents of an asset. It changes the documents that name the
	// file and lack these values. It returns a fault of kind NotFound if the asset does not exist.
	Complete(ctx context.Context, asset string, f File) error
}

// complete adds the SHA-256 and the size to documents whose files were uploaded (docs/files.md, "Binding"). A
// naming whose document cannot be completed stays stored, and is tried again.
func (f Follower) complete(ctx context.Context) error {
	var faults []error
	for after := (Naming{}); ctx.Err() == nil; {
		namings, err := f.Awaited.Awaiting(ctx, after, page)
		if err != nil {
			return fmt.Errorf("list documents without sums: %w", err)
		}
		if len(namings) == 0 {
			break
		}
		for _, n := range namings {
			if err := f.completeOne(ctx, n); err != nil {
				faults = append(faults, fmt.Errorf("complete a document of asset %s: %w", n.Asset, err))
			}
		}
		after = namings[len(namings)-1]
	}
	return errors.Join(faults...)
}

// completeOne completes the documents of one naming, if the bytes of the file have arrived.
func (f Follower) completeOne(ctx context.Context, n Naming) error {
	named, err := f.Service.find(ctx, n.File)
	switch {
	case err == nil && named.State == Registered:
		return nil
	case err == nil && named.SHA256 != "":
		err = f.Documents.Complete(ctx, n.Asset, named)
	}
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return err
	}
	return f.Awaited.Settle(ctx, n)
}
