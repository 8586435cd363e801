package gateway

import (
	"context"
	"fmt"
	"net"
	"time"

	"asset-registry/shared/failurelog"
	"asset-registry/shared/identity"
	"asset-registry/shared/lease"
	"asset-registry/shared/upstream"
)

// askWithin is how long an asset service may take to answer a request for leases.
const askWithin = 2 * time.Second

// holdLeases lets the gateway answer from memory while it has leases of all asset services.
// It asks each of them for leases until ctx is done.
func (s *Server) holdLeases(ctx context.Context, assets *upstream.Pool, signer *identity.Signer) {
	failures := failurelog.New(s.config.Log, "an asset service gives no leases; it is asked again")
	defer failures.Close()
	assets.Each(ctx, func(ctx context.Context, conn net.Conn, host string) {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		r, err := lease.Ask(asking, conn, host, signer)
		cancel()
		if err == nil {
			err = s.holder.Follow(ctx, conn, r)
		}
		if ctx.Err() == nil {
			failures.Failed(fmt.Errorf("%s: %w", host, err))
		}
	})
}
