package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/httpserver"
)

// maxHealth is the maximum number of health requests that are answered at the same time.
const maxHealth = 100

// health answers whether the registry works. A load balancer must learn the truth under load too.
// So the rate limits do not count health requests, and the limit of concurrent requests does not refuse them.
// To make many health requests cheap, health has its own limit, and requests that wait at the same time share
// one call to the services.
type health struct {
	current *concurrency.Limiter
	shared  singleflight.Group
}

// answerHealth answers with 200 if the services and their stores answer, otherwise with 503 and the reason.
func (a *API) answerHealth(c *gin.Context) error {
	httpserver.Quiet(c)
	if !a.health.current.Enter(concurrency.Write) {
		return a.crowded(c)
	}
	defer a.health.current.Leave()
	if err := a.Health(c.Request.Context()); err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	return httpserver.JSON(c, http.StatusOK, gin.H{"status": "ok"})
}

// Health calls the method `works`. If another call of this method has not ended yet, Health waits for the
// result of that call. A call continues until the deadline of ctx, even if the client leaves.
func (a *API) Health(ctx context.Context) error {
	answer := a.health.shared.DoChan("", func() (any, error) {
		end, _ := ctx.Deadline() // the engine gives every request a deadline
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
		defer cancel()
		return nil, a.works(ctx)
	})
	select {
	case a := <-answer:
		return a.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// works returns nil if the asset service and the auth service answer, with their stores. A mirror stores no changes,
// so for a mirror the asset service only has to be ready.
func (a *API) works(ctx context.Context) error {
	if err := a.config.Assets.Get(ctx, "/readyz"); err != nil || a.isMirror() {
		return err
	}
	return a.config.Auth.Ready(ctx)
}
