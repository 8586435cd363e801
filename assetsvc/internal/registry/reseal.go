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

// SealedStore is a Store whose token records can be replaced by records with the
// same contents under another seal. This is no change of the asset: revision and
// position stay.
type SealedStore interface {
	// SealedAfter returns up to limit records, ordered by asset id, starting after
	// the given id. An empty id starts at the first asset.
	SealedAfter(ctx context.Context, after string, limit int) ([]Sealed, error)
	// Reseal replaces the record of an asset if the asset still has the old one.
	// Otherwise it does nothing.
	Reseal(ctx context.Context, old, anew Sealed) error
}

// Resealer seals records anew with the registry's current secret.
type Resealer interface {
	Reseal(ctx context.Context, sealed []string) (authapi.ResealResponse, error)
}

// Resealed counts the token records that Reseal has read.
type Resealed struct {
	Assets  int // all records
	Anew    int // records that were sealed with a former secret, and are sealed anew
	Foreign int // records that no secret of the auth service opens; they are left as they are
}

// Reseal seals the token records of all assets with the current secret. It may be
// repeated. After an error it returns the counts so far.
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
