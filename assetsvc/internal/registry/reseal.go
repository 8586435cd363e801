package registry

import (
	"context"
	"fmt"

	"asset-registry/shared/authapi"
)

// Sealed is the sealed token record of an asset.
type Sealed struct {
	ID     string // of the asset
	Sealed string
}

// SealedStore is a Store that can replace a token record by one with the same contents under another seal. This
// does not count as a change of the asset: its revision and its position stay.
type SealedStore interface {
	// SealedAfter returns the token records of the next assets in the order of their ids, at most as many as the
	// parameter `limit` says. It begins after the given id, or with the first asset if the id is empty.
	SealedAfter(ctx context.Context, after string, limit int) ([]Sealed, error)
	// Reseal replaces the record of an asset if the asset still has the old record. Otherwise it does nothing.
	Reseal(ctx context.Context, old, anew Sealed) error
}

// Resealer seals records again, with the registry's current secret.
type Resealer interface {
	Reseal(ctx context.Context, sealed []string) (authapi.ResealResponse, error)
}

// Resealed counts the token records that Reseal has read.
type Resealed struct {
	Assets  int // all records that were read
	Anew    int // records that an old secret had sealed, and that are now sealed with the current one
	Foreign int // records that no secret of the auth service can open; they stay unchanged
}

// Reseal seals the token records of all assets with the current secret. It may be repeated. If it fails, it also
// returns the counts up to the failure.
func Reseal(ctx context.Context, store SealedStore, resealer Resealer) (found Resealed, err error) {
	for after := ""; ; {
		page, err := store.SealedAfter(ctx, after, authapi.MaxReseal)
		if err != nil {
			return found, fmt.Errorf("read token records: %w", err)
		}
		if len(page) == 0 {
			return found, nil
		}
		sealed := make([]string, len(page))
		for i, s := range page {
			sealed[i] = s.Sealed
		}
		answer, err := resealer.Reseal(ctx, sealed)
		if err != nil {
			return found, err
		}
		for i, old := range page {
			if answer.Sealed[i] == "" {
				continue
			}
			if err := store.Reseal(ctx, old, Sealed{old.ID, answer.Sealed[i]}); err != nil {
				return found, fmt.Errorf("store token record of asset %s: %w", old.ID, err)
			}
			found.Anew++
		}
		found.Assets += len(page)
		found.Foreign += answer.Foreign
		after = page[len(page)-1].ID
	}
}
