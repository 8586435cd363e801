// Package authapi is the wire between authsvc and its callers: the gateway,
// which verifies API keys, and assetsvc, which issues and verifies owner
// tokens. Every call is a POST of JSON with a signed service identity.
package authapi

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash returns the SHA-256 of a key or token as 64 hex characters: the form
// in which it leaves the process that received it and in which it is stored.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// The paths of authsvc's internal API.
const (
	VerifyKeyPath   = "/internal/v1/keys/verify"
	IssueTokensPath = "/internal/v1/tokens/issue"
	VerifyTokenPath = "/internal/v1/tokens/verify"
)

// VerifyKeyRequest asks whose key this is.
type VerifyKeyRequest struct {
	KeyHash string `json:"key_hash"` // Hash of the key
}

// VerifyKeyResponse tells who holds the key. An unknown key is answered with
// 401 and the fault header/Authorization.
type VerifyKeyResponse struct {
	Broker string `json:"broker"`
	KeyID  string `json:"key_id"`
	Role   string `json:"role"`
	Levels string `json:"levels"`
}

// IssueTokensRequest asks for the tokens of a new asset.
type IssueTokensRequest struct {
	AssetID string `json:"asset_id"` // 32 hex characters
	Broker  string `json:"broker"`   // owner of the asset
}

// IssueTokensResponse carries the new tokens, which nobody stores, and the
// sealed record of their hashes, which is stored with the asset.
type IssueTokensResponse struct {
	Token    string `json:"token"`    // owner token, 32 hex characters
	Transfer string `json:"transfer"` // transfer token, 32 hex characters
	Sealed   string `json:"sealed"`   // opaque to all but authsvc
}

// VerifyTokenRequest asks whether a token gives its bearer the owner's role
// on an asset.
type VerifyTokenRequest struct {
	AssetID   string `json:"asset_id"`
	Broker    string `json:"broker"`     // who presents the token
	TokenHash string `json:"token_hash"` // Hash of the token
	Sealed    string `json:"sealed"`     // the record stored with the asset
}

// VerifyTokenResponse answers a VerifyTokenRequest.
type VerifyTokenResponse struct {
	// Valid is true when the token is the asset's and the broker its owner.
	Valid bool `json:"valid"`
	// Sealed is set when authsvc knows a newer record than the one it was
	// sent; the asset's copy should be replaced by it.
	Sealed string `json:"sealed,omitempty"`
}
