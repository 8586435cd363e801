package httpapi

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
)

// idempotencyHeader carries a client's name for one creation
// (draft-ietf-httpapi-idempotency-key-header).
const idempotencyHeader = "Idempotency-Key"

const maxIdempotencyKey = 255 // characters

// seedOf returns the seed of a creation that may be repeated, nil for any other.
func seedOf(c *gin.Context) (registry.Seed, error) {
	keys := c.Request.Header.Values(idempotencyHeader)
	if len(keys) == 0 {
		return nil, nil
	}
	if len(keys) > 1 || len(keys[0]) == 0 || len(keys[0]) > maxIdempotencyKey || strings.ContainsFunc(keys[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fault.New(fault.Invalid, fault.Header, idempotencyHeader, "The key must be 1 to %d visible ASCII characters.", maxIdempotencyKey)
	}
	seed, err := hex.DecodeString(c.GetHeader(httpserver.SeedHeader))
	if err != nil || len(seed) == 0 { // nor is it logged
		return nil, errors.New("the gateway has made no seed of the idempotency key")
	}
	return seed, nil
}
