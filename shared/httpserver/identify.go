package httpserver

import (
	"github.com/gin-gonic/gin"

	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

const identityKey = "identity"

// Identify returns middleware that refuses requests without an identity that a
// service of this registry has signed. It stores the identity for Caller.
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

// Caller returns the identity of the caller. It panics unless the request passed
// Identify.
func Caller(c *gin.Context) identity.Identity { return c.MustGet(identityKey).(identity.Identity) }
