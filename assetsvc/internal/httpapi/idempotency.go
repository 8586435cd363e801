package httpapi

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/keyring"
)

// idempotencyHeader carries a client's name for one creation
// (draft-ietf-httpapi-idempotency-key-header).
const idempotencyHeader = "Idempotency-Key"

const maxIdempotencyKey = 255 // characters

// maxSeeds is one for each of the registry's secrets.
const maxSeeds = keyring.Max

// seedsOf returns the seeds of a creation that may be repeated, none for any
// other: that of the current secret first.
func seedsOf(c *gin.Context) ([]registry.Seed, error) {
	keys := c.Request.Header.Values(idempotencyHeader)
	if len(keys) == 0 {
		return nil, nil
	}
	if len(keys) > 1 || len(keys[0]) == 0 || len(keys[0]) > maxIdempotencyKey || strings.ContainsFunc(keys[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fault.New(fault.Invalid, fault.Header, idempotencyHeader, "The key must be 1 to %d visible ASCII characters.", maxIdempotencyKey)
	}
	var seeds []registry.Seed
	for text := range strings.SplitSeq(c.GetHeader(httpserver.SeedHeader), ",") {
		seed, err := hex.DecodeString(text)
		if err != nil || len(seed) == 0 || len(seeds) == maxSeeds { // nor is it logged
			return nil, errors.New("the gateway has made no seed of the idempotency key")
		}
		seeds = append(seeds, seed)
	}
	return seeds, nil
}
