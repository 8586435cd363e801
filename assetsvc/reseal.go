package assetsvc

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// Resealed counts the token records that Reseal has read.
type Resealed = registry.Resealed

// Reseal lets the auth service seal the token records of all assets with the
// registry's current secret. Afterwards the former secrets are no longer needed.
// No service may have a store in a file open. Reseal may be repeated.
func Reseal(ctx context.Context, c Config) (found Resealed, err error) {
	if err := c.Validate(); err != nil {
		return found, fmt.Errorf("configure asset service: %w", err)
	}
	c = c.withDefaults()
	signer, err := identity.NewSigner(c.Secrets, c.Now)
	if err != nil {
		return found, err
	}
	store, err := c.openStore(ctx)
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	sealed, ok := store.(registry.SealedStore)
	if !ok {
		return found, errors.New("the store cannot replace token records")
	}
	auth := c.Auth
	if auth == nil {
		pool, err := c.newAuthPool()
		if err != nil {
			return found, err
		}
		defer pool.Close()
		auth = pool
	}
	return registry.Reseal(ctx, sealed, authapi.NewClient(auth, signer, "assetsvc"))
}
