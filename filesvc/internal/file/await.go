package file

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/shared/fault"
)

// Naming is a file that documents of an asset name.
type Naming struct {
	File, Asset string // ids
}

// Awaited stores namings whose documents lack the SHA-256 and the size of the file. It is safe
// for concurrent use.
type Awaited interface {
	// Await stores a naming. One that is there stays.
	Await(ctx context.Context, n Naming) error
	// Awaiting returns at most limit namings that come after one, ordered by file and asset.
	Awaiting(ctx context.Context, after Naming, limit int) ([]Naming, error)
	// Settle removes a naming. It is no error if there is none.
	Settle(ctx context.Context, n Naming) error
}

// Documents are the documents of assets.
type Documents interface {
	// Complete adds the SHA-256 and the size of a file to the documents of an asset that name it
	// and lack them. It returns a fault of kind NotFound if there is no such asset.
	Complete(ctx context.Context, asset string, f File) error
}

// complete gives documents the SHA-256 and the size of files whose bytes have come
// (docs/files.md, "Binding"). A naming whose document cannot be completed stays for the next time.
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

// completeOne completes the documents of one naming if the bytes of the file have come.
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
