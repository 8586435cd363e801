package file

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/shared/fault"
)

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
