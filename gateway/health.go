package gateway

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"

	"asset-registry/shared/httpserver"
)

// maxHealth is how many requests for health may be under way at once.
const maxHealth = 100

// healthCheck answers whether assets can be read and written. It is neither
// counted by the limits nor refused in a crowd: a balancer must learn the truth
// then, too. Its own bound, and one question at a time for all who ask, keep a
// flood of such requests small.
type healthCheck struct {
	inside atomic.Int64 // requests for health under way
	asking singleflight.Group
}

// health answers 200 when assets can be read and written, else 503 and why.
func (s *Server) health(c *gin.Context) {
	defer s.healthy.inside.Add(-1)
	if s.healthy.inside.Add(1) > maxHealth {
		s.tooMany(c)
		return
	}
	httpserver.Handle(func(c *gin.Context) error {
		if err := s.askHealth(c.Request.Context()); err != nil {
			return err
		}
		return httpserver.JSON(c, http.StatusOK, gin.H{"status": "ok"})
	})(c)
}

// askHealth asks the services behind the gateway, or waits for the answer to a question that
// is under way. The question outlives a caller that leaves, not its time.
func (s *Server) askHealth(ctx context.Context) error {
	answer := s.healthy.asking.DoChan("", func() (any, error) {
		end, _ := ctx.Deadline() // every request has one
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

// writable returns nil when the services behind the gateway can store changes.
func (s *Server) writable(ctx context.Context) error {
	if err := s.assets.Get(ctx, "/readyz"); err != nil {
		return err
	}
	return s.auth.Ready(ctx)
}

// ready returns nil when the gateway can do its work. It can without the
// services in other processes; those in its own are a part of it.
func (s *Server) ready(ctx context.Context) error {
	if s.config.Assets == nil {
		return nil
	}
	return s.writable(ctx)
}
