package gateway

import (
	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/concurrency"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// bound refuses a request if too many are under way; the limit depends on its
// class and on whether it has a valid key. The request must have passed
// identify. It is not counted while it waits there for its key, and that wait
// has a time limit.
func (s *Server) bound(class routes.Class) gin.HandlerFunc {
	return func(c *gin.Context) {
		priority := concurrency.AnonymousRead
		switch {
		case class == routes.Write:
			priority = concurrency.Write
		case !caller(c).IsAnonymous():
			priority = concurrency.KeyedRead
		}
		if !s.current.Enter(priority) {
			s.refuseOverrun(c)
			return
		}
		defer s.current.Leave()
		c.Next()
	}
}

// refuseOverrun answers 503 because too many requests are under way.
func (s *Server) refuseOverrun(c *gin.Context) {
	s.overrun.Add(c.Request.Context(), 1)
	httpserver.Handle(func(*gin.Context) error {
		return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many requests now; repeat this one.")
	})(c)
}
