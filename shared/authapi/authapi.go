// Package authapi is the API between authsvc and its callers. The gateway
// verifies API keys, and assetsvc issues and verifies owner tokens. Every call is
// a POST of JSON with a signed identity of the calling service.
package authapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"time"

	"asset-registry/shared/clientaddr"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

// Hash returns the SHA-256 of a key or token as 64 hex characters. Only this form
// leaves the process that received the secret, and only this form is stored.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// The paths of authsvc's internal API.
const (
	VerifyKeyPath   = "/internal/v1/keys/verify"
	IssueTokensPath = "/internal/v1/tokens/issue"
	VerifyTokenPath = "/internal/v1/tokens/verify"
	ChangeOwnerPath = "/internal/v1/tokens/change-owner"
	RecoverPath     = "/internal/v1/tokens/recover"
	ResealPath      = "/internal/v1/tokens/reseal"

	CreateTransferPath = "/internal/v1/transfers/create"
	ReadTransferPath   = "/internal/v1/transfers/read"

	NoteRemovalPath = "/internal/v1/files/removed"

	EndingsPath     = "/internal/v1/keys/endings"
	WatchKeysPath   = "/internal/v1/keys/watch"
	ReportUsagePath = "/internal/v1/keys/usage"
)

// VerifyKeyRequest requests the identity that belongs to a key.
type VerifyKeyRequest struct {
	KeyHash string `json:"key_hash"` // Hash of the key
}

// VerifyKeyResponse describes a valid key; see Key. The answer for an unknown key
// is 401 with the fault header/Authorization.
type VerifyKeyResponse struct {
	Broker string `json:"broker"`
	KeyID  string `json:"key_id"`
	Role   string `json:"role"`
	Levels string `json:"levels"`

	Secret    int            `json:"secret,omitempty"`
	Allow     []netip.Prefix `json:"allow,omitempty"`
	Limits    Limits         `json:"limits,omitempty"`
	GoodForMS int64          `json:"good_for_ms,omitempty"` // maximum time that the key stays valid; 0: no known end

	Raise       int64 `json:"raise,omitempty"`
	RaisedForMS int64 `json:"raised_for_ms,omitempty"`
}

// IssueTokensRequest requests the tokens of a new asset.
type IssueTokensRequest struct {
	AssetID string `json:"asset_id"` // 32 hex characters
	Broker  string `json:"broker"`   // owner of the asset
	// Seed is a secret of 64 hex characters. The same seed gives the same
	// tokens. Without a seed the tokens are random.
	Seed string `json:"seed,omitempty"`
}

// IssueTokensResponse has the new tokens, which no service stores, and the sealed
// record of their hashes, which assetsvc stores with the asset.
type IssueTokensResponse struct {
	Token    string `json:"token"`    // owner token, 32 hex characters
	Transfer string `json:"transfer"` // transfer token, 32 hex characters
	Sealed   string `json:"sealed"`   // only authsvc can read it
}

// VerifyTokenRequest asks whether a token makes its bearer the owner of an asset.
type VerifyTokenRequest struct {
	AssetID   string `json:"asset_id"`
	Broker    string `json:"broker"`     // the bearer of the token
	TokenHash string `json:"token_hash"` // Hash of the token
	Sealed    string `json:"sealed"`     // the record stored with the asset
}

// VerifyTokenResponse answers a VerifyTokenRequest.
type VerifyTokenResponse struct {
	// Valid is true if the token belongs to the asset and the broker owns the
	// asset.
	Valid bool `json:"valid"`
	// Sealed is set if authsvc knows a newer record than the one in the
	// request. Store it with the asset, and Owner as the asset's owner.
	Sealed string `json:"sealed,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Resealed is true if Sealed has the content of the record in the request,
	// but is sealed with another secret. Sealed may then be stored with the
	// asset's next change.
	Resealed bool `json:"resealed,omitempty"`
}

// MaxReseal is the maximum number of records that a ResealRequest may have.
const MaxReseal = 40

// ResealRequest requests that records are sealed with the current secret.
type ResealRequest struct {
	Sealed []string `json:"sealed"`
}

// ResealResponse has a record for each record in the request. A record that need not change is "".
type ResealResponse struct {
	Sealed  []string `json:"sealed"`
	Foreign int      `json:"foreign"` // records that none of our secrets sealed
}

// CreateTransferRequest requests a transfer, by which a broker takes over an asset.
type CreateTransferRequest struct {
	Broker string `json:"broker"`
}

// CreateTransferResponse has the tokens of a new transfer, which no service stores.
type CreateTransferResponse struct {
	TransferResponse
	Token    string `json:"token"`    // owner token that the asset will have
	Transfer string `json:"transfer"` // transfer token that the asset will have
}

// ReadTransferRequest requests a transfer.
type ReadTransferRequest struct {
	ID string `json:"id"`
	// Sealed is the record stored with the asset that claims the transfer. It is optional. With it, authsvc
	// ends the claim if the asset has used the transfer, or will not use it any more.
	Sealed string `json:"sealed,omitempty"`
}

// TransferResponse is the public part of a transfer. The answer for an unknown
// transfer is 404 with the fault url/transfer_id.
type TransferResponse struct {
	ID      string `json:"id"`
	Date    int64  `json:"date"`               // time of its creation or use, µs since the Unix epoch
	AssetID string `json:"asset_id,omitempty"` // the asset that has used it
	Claimed string `json:"claimed,omitempty"`  // the asset for which a request claims the transfer
}

// ChangeOwnerRequest claims a transfer for an asset. It may be repeated.
type ChangeOwnerRequest struct {
	AssetID      string `json:"asset_id"`
	Broker       string `json:"broker"`        // the new owner
	TransferID   string `json:"transfer_id"`   // id of a transfer that the new owner created
	TransferHash string `json:"transfer_hash"` // Hash of the asset's transfer token
	Sealed       string `json:"sealed"`        // the record stored with the asset
}

// ChangeOwnerResponse has the fields to store with the asset. They must be stored in one write. With this write the
// asset gets its new owner.
type ChangeOwnerResponse struct {
	Owner    string `json:"owner"`
	Sealed   string `json:"sealed"`
	Resealed bool   `json:"resealed,omitempty"` // see VerifyTokenResponse; only if an earlier call changed the owner
}

// RecoverTokensRequest requests new tokens of an asset for its owner. Each call makes an
// entry of the audit log.
type RecoverTokensRequest struct {
	AssetID string `json:"asset_id"`
	Sealed  string `json:"sealed"` // the record stored with the asset
	Reason  string `json:"reason"` // the reason, which only the audit log keeps
	Broker  string `json:"broker"` // broker of the administrator's key
	KeyID   string `json:"key_id"` // id of the administrator's key
	From    string `json:"from"`   // address of the administrator; "": unknown
}

// RecoverTokensResponse has the new tokens, which no service stores. It also has the fields to store with the asset.
// They must be stored in one write. With this write the asset gets the new tokens.
type RecoverTokensResponse struct {
	IssueTokensResponse
	Owner string `json:"owner"`
}

// NoteRemovalRequest says that an administrator has taken a file of documents down. Each call makes
// an entry of the audit log.
type NoteRemovalRequest struct {
	File   string `json:"file"`   // id of the file
	Reason string `json:"reason"` // given by the administrator
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size"`
	Broker string `json:"broker"` // broker of the administrator's key
	KeyID  string `json:"key_id"` // id of the administrator's key
	From   string `json:"from"`   // address of the administrator; "": unknown
}

// Classes returns the names of the request classes (package routes). A key has
// limits and counts for each of them.
func Classes() []string {
	var names []string
	for _, class := range routes.Classes() {
		names = append(names, string(class))
	}
	return names
}

// Limits are the requests that a key allows, by class (see Classes) and window
// ("1s", "1m"). The limits for all keys apply too.
type Limits map[string]map[string]int64

// Key is a valid API key.
type Key struct {
	identity.Identity
	Secret  int            // number of the secret that was sent; each rotation adds one
	Allow   []netip.Prefix // networks from which the key may be used; empty: all
	Limits  Limits
	GoodFor time.Duration // maximum time that the key stays valid; 0: no known end

	Raise     int64         // factor by which the limits of all keys are raised for this key; 0: they are not raised
	RaisedFor time.Duration // maximum time that the limits stay raised
}

// Allows reports whether the key may be used from an address.
func (k Key) Allows(addr netip.Addr) bool {
	contains := func(p netip.Prefix) bool { return clientaddr.Contains(p, addr) }
	return len(k.Allow) == 0 || slices.ContainsFunc(k.Allow, contains)
}

// WatchKeysRequest asks which keys have changed. The answer comes when a key
// changes, or after WaitMS milliseconds.
type WatchKeysRequest struct {
	Since  string `json:"since"` // the field At of the last answer; "" at first
	WaitMS int64  `json:"wait_ms"`
}

// WatchKeysResponse lists keys that a cache must drop. It covers all changes up to
// some moment after the request came.
type WatchKeysResponse struct {
	At      string   `json:"at"`
	All     bool     `json:"all,omitempty"`     // drop all keys: Since is unknown or too long ago
	Keys    []string `json:"keys,omitempty"`    // ids
	Brokers []string `json:"brokers,omitempty"` // drop all keys of these brokers
}

// Use is the last use of a key from an address.
type Use struct {
	KeyID  string     `json:"key_id"`
	Secret int        `json:"secret"`
	Addr   netip.Addr `json:"addr"`
	Micros int64      `json:"micros"` // since the Unix epoch
}

// Count is the number of requests with a key on a day.
type Count struct {
	KeyID    string `json:"key_id"`
	Day      string `json:"day"`   // the day in UTC, such as "2026-11-21"
	Class    string `json:"class"` // see Classes
	Requests int64  `json:"requests"`
}

// ReportUsageRequest reports the use of keys. It has at most MaxReport entries in
// each list.
type ReportUsageRequest struct {
	Uses   []Use   `json:"uses"`
	Counts []Count `json:"counts"` // added to earlier counts
}

// MaxReport is the length of a list in a ReportUsageRequest.
const MaxReport = 200

// ReportUsageResponse is empty.
type ReportUsageResponse struct{}

// WatchKeys returns the keys that changed since an earlier answer. It returns as soon as a key changes, at the
// latest after the time in the argument `wait`.
func (c *Client) WatchKeys(ctx context.Context, since string, wait time.Duration) (WatchKeysResponse, error) {
	request := WatchKeysRequest{Since: since, WaitMS: wait.Milliseconds()}
	return ask[WatchKeysResponse](ctx, c, WatchKeysPath, request, "watch keys")
}

// ReportUsage reports the use of keys.
func (c *Client) ReportUsage(ctx context.Context, r ReportUsageRequest) error {
	_, err := ask[ReportUsageResponse](ctx, c, ReportUsagePath, r, "report use of keys")
	return err
}

// Ending says what an entry of the audit log took away from a key or a broker. The asset services keep endings beside
// the assets, in a store that does not go back in time together with the store of keys. An ending has no secret and no
// hash of one.
type Ending struct {
	ID   string `json:"id"`   // HeadID, or the subject of the entry and the kind; a later ending of the id replaces it
	Seq  int64  `json:"seq"`  // number of the entry
	Hash string `json:"hash"` // hash of the entry

	Subject string            `json:"subject,omitempty"` // "key ID" or "broker NAME"
	Closed  *time.Time        `json:"closed,omitempty"`  // the key was revoked, or the broker was blocked
	Expires *time.Time        `json:"expires,omitempty"` // end of the key
	Newest  int               `json:"newest,omitempty"`  // number of the newest secret of the key
	Until   map[int]time.Time `json:"until,omitempty"`   // ends of its former secrets; others have ended already
	// Rights is true if the key lost a level, a role or an address. The registry then has to refuse the key in its
	// former state, because an ending does not say what is left.
	Rights bool `json:"rights,omitempty"`
}

// HeadID is the id of the row that names the newest entry of the audit log whose endings are kept.
const HeadID = "head"

// The maximum numbers of endings in a request, and of entries that an answer is about.
const (
	MaxEndings = 40
	MaxEntries = 20
)

// EndingsRequest tells which endings an asset service keeps, and asks for those of later entries.
type EndingsRequest struct {
	At     Ending `json:"at"`      // the kept row HeadID; zero: nothing is kept
	WaitMS int64  `json:"wait_ms"` // maximum time to wait for a later entry

	// Endings is a page of the kept endings, because the answer before said Behind. Last marks the last page.
	Endings []Ending `json:"endings,omitempty"`
	Last    bool     `json:"last,omitempty"`
}

// EndingsResponse has endings to keep, and last the new row HeadID. It has nothing if there is no later entry. Behind
// asks for all kept endings, in pages: the store of keys lacks the entry that the request names.
type EndingsResponse struct {
	Endings []Ending `json:"endings,omitempty"`
	Behind  bool     `json:"behind,omitempty"`
}

// Endings exchanges endings with the auth service.
func (c *Client) Endings(ctx context.Context, r EndingsRequest) (EndingsResponse, error) {
	return ask[EndingsResponse](ctx, c, EndingsPath, r, "exchange endings")
}
