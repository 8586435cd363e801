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

// idempotencyHeader carries a key that the client chooses for one creation
// (draft-ietf-httpapi-idempotency-key-header; docs/contract.md, "Idempotency").
const idempotencyHeader = "Idempotency-Key"

const (
	maxIdempotencyKey = 255         // maximum number of characters of a key
	maxSeeds          = keyring.Max // maximum number of seeds of a request: one for each of the registry's secrets
)

// seedsOf returns the seeds of a creation with an idempotency key, and no seeds for a creation without one. The
// seed that was made with the current secret comes first.
func seedsOf(c *gin.Context) ([]registry.Seed, error) {
	keys := c.Request.Header.Values(idempotencyHeader)
	if len(keys) == 0 {
		return nil, nil
	}
	if len(keys) > 1 || !isIdempotencyKey(keys[0]) {
		const says = "The key must be 1 to %d visible ASCII characters."
		return nil, fault.New(fault.Invalid, fault.Header, idempotencyHeader, says, maxIdempotencyKey)
	}
	var seeds []registry.Seed
	for text := range strings.SplitSeq(c.GetHeader(httpserver.SeedHeader), ",") {
		seed, err := hex.DecodeString(text)
		if err != nil || len(seed) == 0 || len(seeds) == maxSeeds {
			// The error does not quote the header: seeds are secret.
			return nil, errors.New("the gateway sent no valid seed for the idempotency key")
		}
		seeds = append(seeds, seed)
	}
	return seeds, nil
}

func isIdempotencyKey(key string) bool { return isVisible(key, maxIdempotencyKey) }

// isVisible reports whether a text consists of visible ASCII characters only, and has at least one of them. The
// argument `most` is the largest number of characters.
func isVisible(text string, most int) bool {
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	return text != "" && len(text) <= most && !strings.ContainsFunc(text, invisible)
}

const maxReference = 200 // maximum number of characters of a reference

// referenceOf returns the caller's own name for the asset that the request creates, or "" if the caller gives no
// name.
func referenceOf(c *gin.Context) (string, error) {
	names := c.Request.Header.Values(registry.ReferenceHeader)
	if len(names) == 0 {
		return "", nil
	}
	if len(names) > 1 || !isVisible(names[0], maxReference) {
		const says = "The reference must be 1 to %d visible ASCII characters."
		return "", fault.New(fault.Invalid, fault.Header, registry.ReferenceHeader, says, maxReference)
	}
	return names[0], nil
}
