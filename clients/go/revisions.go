package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// Revision is a change of an asset (docs/contract.md, "Revisions").
type Revision struct {
	Revision    int64       `json:"revision"` // 1: the creation
	Date        Timestamp   `json:"date"`     // the asset's DateModified after the change
	Author      Author      `json:"author"`
	Changes     []Operation `json:"changes,omitempty"`     // compared with the revision before; empty if too large
	ChangesSize int64       `json:"changesSize,omitempty"` // bytes of changes that were too large to keep
	Erased      *Erasure    `json:"erased,omitempty"`      // nil: the content is kept
}

// Erasure says who erased the content of a revision, and when.
type Erasure struct {
	Date   Timestamp `json:"date"`
	Author Author    `json:"author"`
}

// Author is the caller that made a revision.
type Author struct {
	Broker string `json:"broker"`
	Key    string `json:"key"` // id of the API key
	Role   string `json:"role"`
}

// Operation is one step of a JSON Patch (RFC 6902): add, replace or remove.
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Revisions returns all changes of an asset that the registry still keeps, the newest
// first. It reads page by page. It needs the owner's key and token, or an
// administrator's key. An error is the last element.
func (c *Client) Revisions(ctx context.Context, asset string, token Secret) iter.Seq2[Revision, error] {
	return func(yield func(Revision, error) bool) {
		query := url.Values{}
		for {
			body, err := c.revisions(ctx, asset, token, query)
			if err != nil {
				yield(Revision{}, err)
				return
			}
			for _, revision := range body.Data {
				if !yield(revision, nil) {
					return
				}
			}
			if len(body.Data) == 0 {
				return
			}
			query.Set("offset", string(body.Next.Offset))
		}
	}
}

func (c *Client) revisions(ctx context.Context, asset string, token Secret, query url.Values) (
	envelope[[]Revision], error,
) {
	r := read(path("assets", asset, "revisions"), query)
	r.token = token
	return call[[]Revision](ctx, c, r)
}

// EraseRevision permanently erases the content of a past revision of an asset. It needs an administrator's key. The
// newest revision cannot be erased. A second erasure of the same revision has no effect.
func (c *Client) EraseRevision(ctx context.Context, asset string, revision int64) (Revision, error) {
	r := write(http.MethodDelete, path("assets", asset, "revisions", strconv.FormatInt(revision, 10)), nil, Write{})
	r.repeatable = true
	return dataOf[Revision](ctx, c, r)
}

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
	query := url.Values{}
	if revision != 0 {
		query.Set("revision", strconv.FormatInt(revision, 10))
	}
	return dataOf[Proof](ctx, c, read(path("assets", id, "proof"), query))
}

// GetJSON reads an asset as the registry writes it, so that the caller can compare
// the asset with a proof. It needs no key.
func (c *Client) GetJSON(ctx context.Context, id string) (json.RawMessage, error) {
	return dataOf[json.RawMessage](ctx, c, read(path("assets", id), nil))
}

// Dictionaries returns the names of all values and codes (docs/contract.md, "Dictionaries"). A registry without a
// search service has none.
func (c *Client) Dictionaries(ctx context.Context) (json.RawMessage, error) {
	return dataOf[json.RawMessage](ctx, c, read(path("dictionaries"), nil))
}
