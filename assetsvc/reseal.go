package assetsvc

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
)

// sealedStore is a store that keeps token records of assets and seeds of webhooks, all sealed with the registry's
// secret.
type sealedStore interface {
	registry.SealedStore
	webhook.Store
}

// Resealed counts the token records and the webhooks that Reseal has read.
type Resealed struct {
	registry.Resealed
	Webhooks webhook.Resealed
}

// Reseal lets the auth service seal the token records of all assets with the registry's current secret, and
// seals the secrets of webhooks with the same secret. After that, the former secrets are no longer needed. No
// service may have the file of an embedded store open. Reseal may be repeated.
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
	sealed, ok := store.(sealedStore)
	if !ok {
		return found, errors.New("the store cannot replace what is sealed")
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
	found.Resealed, err = registry.Reseal(ctx, sealed, authapi.NewClient(auth, signer, "assetsvc"))
	if err != nil {
		return found, err
	}
	seals, err := webhook.NewSeals(c.Secrets)
	if err != nil {
		return found, err
	}
	found.Webhooks, err = webhook.Reseal(ctx, sealed, seals)
	return found, err
}
