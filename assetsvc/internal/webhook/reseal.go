package webhook

import (
	"context"
	"errors"
	"fmt"
)

// Resealed counts the endpoints that Reseal has read.
type Resealed struct {
	All     int
	Anew    int // endpoints whose seed was sealed with a former secret, and is now sealed with the current one
	Foreign int // endpoints with a seed that no secret of the registry opens; they stay unchanged
}

// Reseal seals the seeds of all endpoints with the registry's current secret. The service may run meanwhile, and
// Reseal may be repeated. If Reseal fails, it still returns the counts up to the failure.
func Reseal(ctx context.Context, store Store, seals Seals) (found Resealed, err error) {
	for after := ""; ; {
		page, err := store.Endpoints(ctx, "", after, resealBatch)
		if err != nil {
			return found, fmt.Errorf("read webhooks: %w", err)
		}
		if len(page) == 0 {
			return found, nil
		}
		for _, e := range page {
			found.All++
			anew, err := resealed(ctx, store, seals, e)
			switch {
			case errors.Is(err, ErrSealed):
				found.Foreign++
			case errors.Is(err, ErrNotFound): // removed meanwhile
			case err != nil:
				return found, fmt.Errorf("seal webhook %s anew: %w", e.ID, err)
			case anew:
				found.Anew++
			}
		}
		after = page[len(page)-1].ID
	}
}

const resealBatch = 200

// resealed seals the seeds of an endpoint with the current secret. If a seed was sealed with a former secret, it
// stores the endpoint and returns true.
func resealed(ctx context.Context, store Store, seals Seals, e Endpoint) (anew bool, err error) {
	for {
		next := e
		var anewOld bool
		if next.Seal, anew, err = seals.Renew(e.Seal); err != nil {
			return false, err
		}
		if next.OldSeal, anewOld, err = seals.Renew(e.OldSeal); err != nil {
			return false, err
		}
		if anew = anew || anewOld; !anew {
			return false, nil
		}
		if err = store.Put(ctx, next); !errors.Is(err, ErrStale) {
			return anew, err
		}
		if e, err = store.Endpoint(ctx, e.ID); err != nil {
			return false, err
		}
	}
}
