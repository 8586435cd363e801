package gateway

import (
	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// Shares of the requests that may be under way at once, in percent, up to which
// one of a kind is let in: so when there are too many, those that matter least
// are the first to be refused. Health has a bound of its own.
const (
	anonymousShare = 70
	keyedShare     = 85
	writeShare     = 100
)

// crowd counts the requests that are under way and refuses those that are too
// many; they must have passed identify. It comes after it, so a request that
// waits for its key is not counted; how long that may take is bounded.
func (s *Server) crowd(class ratelimit.Class) gin.HandlerFunc {
	most := int64(s.config.Manners.MaxConcurrent)
	return func(c *gin.Context) {
		share := int64(anonymousShare)
		switch {
		case class == ratelimit.Write:
			share = writeShare
		case !caller(c).IsAnonymous():
			share = keyedShare
		}
		defer s.inside.Add(-1)
		if s.inside.Add(1) > max(1, most*share/100) {
			s.tooMany(c)
			return
		}
		c.Next()
	}
}

// tooMany refuses a request since too many are under way.
func (s *Server) tooMany(c *gin.Context) {
	s.crowded.Add(c.Request.Context(), 1)
	httpserver.Handle(func(*gin.Context) error {
		return fault.New(fault.Unavailable, fault.URL, "registry", "There are too many requests now; repeat this one.")
	})(c)
}
