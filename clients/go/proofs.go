package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
)

// Proof shows that the public log holds a change of an asset (docs/log.md,
// "Proofs"). The client does not verify it: `registryctl verify` does that.
type Proof struct {
	Index      int64           `json:"index"` // index of the leaf in the log
	Leaf       json.RawMessage `json:"leaf"`  // the leaf in canonical form
	Salt       string          `json:"salt"`  // empty for a withdrawal and after an erasure
	Path       []string        `json:"path"`  // hashes in base64, beginning with the sibling of the leaf
	Checkpoint string          `json:"checkpoint"`
	Asset      json.RawMessage `json:"asset"` // the public form of the asset after the change; nil without a salt
}

// Proof reads the proof of an asset's change by its revision, from 1. Revision 0
// stands for the asset's newest public change. It needs no key.
func (c *Client) Proof(ctx context.Context, id string, revision int64) (Proof, error) {
	if err := checkIDs(id); err != nil {
		return Proof{}, err
	}
	query := url.Values{}
	if revision != 0 {
		query.Set("revision", strconv.FormatInt(revision, 10))
	}
	body, err := call[Proof](ctx, c, read(path("assets", id, "proof"), query))
	return body.Data, err
}

// GetJSON reads an asset as the registry writes it, so that the caller can compare
// the asset with a proof. It needs no key.
func (c *Client) GetJSON(ctx context.Context, id string) (json.RawMessage, error) {
	if err := checkIDs(id); err != nil {
		return nil, err
	}
	body, err := call[json.RawMessage](ctx, c, read(path("assets", id), nil))
	return body.Data, err
}
