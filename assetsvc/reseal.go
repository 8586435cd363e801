package assetsvc

import (
	"context"
	"errors"
	"fmt"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/authapi"
	"asset-registry/shared/identity"
	"asset-registry/shared/upstream"
)

// Resealed tells what Reseal has found.
type Resealed = registry.Resealed

// Reseal has the auth service seal the token records of all assets with the
// registry's current secret, so that the former ones are needed no more. A store
// in a file must not be in use. It may be repeated.
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
		return found, errors.New("the store cannot have its token records sealed anew")
	}
	auth := c.Auth
	if auth == nil {
		pool, err := upstream.New(upstream.Config{Name: "authsvc", URLs: c.AuthURLs, Log: c.Log, Meter: c.Telemetry.Meter()})
		if err != nil {
			return found, err
		}
		defer pool.Close()
		auth = pool
	}
	return registry.Reseal(ctx, sealed, authapi.NewClient(auth, signer, "assetsvc"))
}
