package gateway

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/httpserver"
)

// maxHealth is the most health requests that are answered at once.
const maxHealth = 100

// health answers whether assets can be read and written. The rate limits do not
// count health requests and the limit of concurrent requests does not refuse
// them, because a balancer must learn the truth under load too. To bound the
// cost of a flood, health has a limit of its own, and requests that wait at the
// same time share one question to the services.
type health struct {
	current *concurrency.Limiter
	shared  singleflight.Group
}

// answerHealth answers 200 if assets can be read and written, else 503 with the
// reason.
func (s *Server) answerHealth(c *gin.Context) {
	if !s.health.current.Enter(concurrency.Write) {
		s.refuseOverrun(c)
		return
	}
	defer s.health.current.Leave()
	httpserver.Handle(func(c *gin.Context) error {
		if err := s.askHealth(c.Request.Context()); err != nil {
			return err
		}
		return httpserver.JSON(c, http.StatusOK, gin.H{"status": "ok"})
	})(c)
}

// askHealth calls writable, or waits for the result of a call under way. The
// call goes on until the deadline of ctx, also if the client leaves.
func (s *Server) askHealth(ctx context.Context) error {
	answer := s.health.shared.DoChan("", func() (any, error) {
		end, _ := ctx.Deadline() // the engine gives every request one
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
		defer cancel()
		return nil, s.writable(ctx)
	})
	select {
	case a := <-answer:
		return a.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writable returns nil if the asset service and the auth service can store
// changes. A mirror stores none; its asset service must be ready.
func (s *Server) writable(ctx context.Context) error {
	if err := s.assets.Get(ctx, "/readyz"); err != nil || s.config.Mirror != nil {
		return err
	}
	return s.auth.Ready(ctx)
}

// ready returns nil if the gateway is ready. A gateway with services in other
// processes is ready once it runs; warnings lists those that are down. Services
// in its own process must be able to store changes.
func (s *Server) ready(ctx context.Context) error {
	if s.config.Assets == nil {
		return nil
	}
	return s.writable(ctx)
}
