package httpserver

import (
	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

const identityKey = "identity"

// Identify returns middleware that accepts only requests with an identity
// signed by a service of this registry, and keeps it for Caller.
func Identify(signer *identity.Signer) gin.HandlerFunc {
	return Handle(func(c *gin.Context) error {
		caller, err := signer.Verify(c.GetHeader(identity.Header))
		if err != nil {
			return fault.New(fault.Unauthorized, fault.Header, identity.Header, "%v", err)
		}
		c.Set(identityKey, caller)
		SetTenant(c, string(caller.Role))
		return nil
	})
}

// Caller returns who is calling; the request must have passed Identify.
func Caller(c *gin.Context) identity.Identity { return c.MustGet(identityKey).(identity.Identity) }
