package registry

import (
	"context"
	"fmt"

	"asset-registry/shared/authapi"
)

// Sealed is the token record of an asset.
type Sealed struct {
	ID     string // of the asset
	Sealed string
}

// SealedStore is a Store that has token records of its assets changed which say
// the same as before. That is no change of the asset: it makes no revision and
// leaves the asset where it stands in the feed.
type SealedStore interface {
	// SealedAfter returns up to limit records in the order of their assets' ids,
	// from the first after an id; "" is before all.
	SealedAfter(ctx context.Context, after string, limit int) ([]Sealed, error)
	// Reseal puts a record in the place of one that is still the asset's; if it
	// is not, it does nothing.
	Reseal(ctx context.Context, old, anew Sealed) error
}

// Resealer seals records anew with the registry's current secret.
type Resealer interface {
	Reseal(ctx context.Context, sealed []string) (authapi.ResealResponse, error)
}

// Resealed tells what Reseal has found.
type Resealed struct {
	Assets  int // all there are
	Anew    int // whose record was sealed with a former secret
	Foreign int // whose record was sealed with no secret that the auth service has
}

// Reseal has the token records of all assets sealed with the current secret. It
// may be repeated.
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
