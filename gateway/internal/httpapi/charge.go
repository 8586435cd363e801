package httpapi

import (
	"github.com/gin-gonic/gin"

	"asset-registry/gateway/internal/ratelimit"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// An answer costs one more request for each full number of bytes that it has before compression, or that were read for
// it if these are more (docs/contract.md, "Rate limits"). The number depends on the class of the request.
var bytesOf = map[routes.Class]int64{
	routes.List: 2 << 20, routes.Own: 2 << 20, routes.Read: 16 << 10, routes.Write: 256 << 10,
}

// storedBytes is this number for stored bytes, such as files.
const storedBytes = 1 << 20

// charge counts what an answer cost, once the answer has ended or broken off. Nobody knows the cost before. Streams do
// not pass this step, because a client has few places for them.
func (a *API) charge(r route) step {
	return func(next handler) handler {
		return func(c *gin.Context) error {
			defer func() {
				each := bytesOf[r.class]
				if r.stored || a.isTransfer(c) {
					each = storedBytes
				}
				work := max(httpserver.WorkOf(c.Request.Context()), int64(c.Writer.Size()))
				if times := work / each; times > 0 {
					a.config.Limits.Charge(ratelimit.Request{Class: r.class, Client: client(c)}, times)
				}
			}()
			return next(c)
		}
	}
}
