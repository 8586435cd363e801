package file

import (
	"context"
	"fmt"
	"time"
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
	ticker := time.NewTicker(every)
	defer ticker.Stop()
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
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
