// Package authapi is the wire between authsvc and its callers: the gateway,
// which verifies API keys, and assetsvc, which issues and verifies owner
// tokens. Every call is a POST of JSON with a signed service identity.
package authapi

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
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
	ChangeOwnerPath = "/internal/v1/tokens/change-owner"
	ResealPath      = "/internal/v1/tokens/reseal"

	CreateTransferPath = "/internal/v1/transfers/create"
	ReadTransferPath   = "/internal/v1/transfers/read"

	WatchKeysPath   = "/internal/v1/keys/watch"
	ReportUsagePath = "/internal/v1/keys/usage"
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

	Secret    int            `json:"secret,omitempty"`
	Allow     []netip.Prefix `json:"allow,omitempty"`
	Limits    Limits         `json:"limits,omitempty"`
	GoodForMS int64          `json:"good_for_ms,omitempty"` // how long at most; 0: no end is known
}

// IssueTokensRequest asks for the tokens of a new asset.
type IssueTokensRequest struct {
	AssetID string `json:"asset_id"` // 32 hex characters
	Broker  string `json:"broker"`   // owner of the asset
	// Seed, if it is not empty, is a secret that the tokens are made of: the
	// same for the same. It is 64 hex characters.
	Seed string `json:"seed,omitempty"`
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
	// sent; the asset's copy should be replaced by it, and its owner by Owner.
	Sealed string `json:"sealed,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Resealed is true when Sealed says nothing new: only the secret is another
	// that it is sealed with. It may wait for the asset's next change.
	Resealed bool `json:"resealed,omitempty"`
}

// MaxReseal is how many records a ResealRequest may have.
const MaxReseal = 40

// ResealRequest asks for sealed records to be sealed with the current secret.
type ResealRequest struct {
	Sealed []string `json:"sealed"`
}

// ResealResponse has a record for each that was sent, "" for one that is to stay
// as it is.
type ResealResponse struct {
	Sealed  []string `json:"sealed"`
	Foreign int      `json:"foreign"` // how many no secret of ours has sealed
}

// CreateTransferRequest asks for a transfer, by which a broker takes an asset over.
type CreateTransferRequest struct {
	Broker string `json:"broker"`
}

// CreateTransferResponse carries a new transfer's tokens, which nobody stores.
type CreateTransferResponse struct {
	TransferResponse
	Token    string `json:"token"`    // owner token that the asset will have
	Transfer string `json:"transfer"` // transfer token that the asset will have
}

// ReadTransferRequest asks for a transfer.
type ReadTransferRequest struct {
	ID string `json:"id"`
}

// TransferResponse is what anybody may know of a transfer. One that does not
// exist is answered with 404 and the fault url/transfer_id.
type TransferResponse struct {
	ID      string `json:"id"`
	Date    int64  `json:"date"`               // when it was made or claimed, µs since the Unix epoch
	AssetID string `json:"asset_id,omitempty"` // that it is claimed for
}

// ChangeOwnerRequest presents the transfer token of an asset together with a
// transfer. It may be repeated.
type ChangeOwnerRequest struct {
	AssetID      string `json:"asset_id"`
	Broker       string `json:"broker"`        // who takes the asset over
	TransferID   string `json:"transfer_id"`   // that he has made
	TransferHash string `json:"transfer_hash"` // Hash of the asset's transfer token
	Sealed       string `json:"sealed"`        // the record stored with the asset
}

// ChangeOwnerResponse carries what is to be stored with the asset, in one write:
// with that the change comes into force.
type ChangeOwnerResponse struct {
	Owner    string `json:"owner"`
	Sealed   string `json:"sealed"`
	Resealed bool   `json:"resealed,omitempty"` // as in VerifyTokenResponse: it was done before
}
