// Package assetclient calls the asset services for the console. It reads the public log, the history of assets
// and webhooks, gives assets new tokens, and changes webhooks.
package assetclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/shared/fault"
	"asset-registry/shared/faulthttp"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
	"asset-registry/shared/translog"
)

// The bounds of a call, and of a page of revisions. The patch of a revision has at most 32 KiB.
const (
	callTimeout = 4 * time.Second
	perPage     = 20
)

// Client calls the asset services. Its methods may be called concurrently. They
// return the faults of the asset services, and Unavailable if none answers.
type Client struct {
	http   *http.Client
	search *http.Client // nil: no search service
	signer *identity.Signer
}

// New returns a client that signs its requests.
func New(transport http.RoundTripper, signer *identity.Signer) *Client {
	return &Client{http: httpclient.New(telemetry.Transport(transport)), signer: signer}
}

// Log is the state of the public log. Nobody has verified its signatures.
type Log struct {
	translog.Checkpoint
	Newest  time.Time         // time of the newest change in the log; zero if the log is empty
	Signers []translog.Signer // in the order of their signatures below the checkpoint
}

// Log reads the newest checkpoint and the newest leaf. If there is no checkpoint, it returns a fault of kind
// NotFound.
func (c *Client) Log(ctx context.Context) (Log, error) {
	signed, err := c.get(ctx, identity.Identity{}, "/log/checkpoint", translog.MaxCheckpoint)
	if err != nil {
		return Log{}, err
	}
	var l Log
	if l.Checkpoint, err = translog.Unverified(signed); err != nil {
		return Log{}, err
	}
	if l.Signers, err = translog.Signers(signed); err != nil || l.Size == 0 {
		return l, err
	}
	l.Newest, err = c.newest(ctx, l.Size)
	return l, err
}

// newest returns the time of the last leaf of a tree.
func (c *Client) newest(ctx context.Context, size int64) (time.Time, error) {
	tile := translog.BundleOf(size-1, size)
	bundle, err := c.get(ctx, identity.Identity{}, "/log/"+tile.Path(), translog.MaxBundle)
	if err != nil {
		return time.Time{}, err
	}
	entries, err := translog.ParseBundle(bundle, tile.Width)
	if err != nil {
		return time.Time{}, err
	}
	leaf, err := translog.ParseLeaf(entries[len(entries)-1])
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(leaf.Position).UTC(), nil
}

// History is a page of an asset's changes, the newest first.
type History struct {
	Changes []Change
	Older   string // offset of the next page, with older changes; "": this page ends with the creation
}

// Change is a revision of an asset (docs/contract.md, "Revisions").
type Change struct {
	Revision    int64
	Date        time.Time
	Author      Author
	Changes     []Operation
	ChangesSize int64 // bytes of a patch that was too large to keep; 0: Changes has the patch
	Erased      *Erasure
}

// Author says who made a change.
type Author struct{ Broker, Key, Role string }

// Operation is a step of a JSON Patch.
type Operation struct {
	Op, Path, From string
	Value          json.RawMessage
}

// Erasure says when a change lost its content, and who erased it.
type Erasure struct {
	Date   time.Time
	Author Author
}

// History returns a page of changes of an asset. The argument `offset` is History.Older of the page before, or ""
// for the newest changes. The request tells the asset services that the caller is an
// administrator whose key has the id keyID.
func (c *Client) History(ctx context.Context, keyID, id, offset string) (History, error) {
	query := url.Values{"limit": {strconv.Itoa(perPage)}}
	if offset != "" {
		query.Set("offset", offset)
	}
	path := "/api/2.5/assets/" + url.PathEscape(id) + "/revisions?" + query.Encode()
	var page struct {
		Data []Change
		Next struct{ Offset string } `json:"next_page"`
	}
	if err := c.read(ctx, c.http, administrator(keyID), path, &page); err != nil {
		return History{}, err
	}
	h := History{Changes: page.Data}
	if n := len(page.Data); n > 0 && page.Data[n-1].Revision > 1 {
		h.Older = page.Next.Offset
	}
	return h, nil
}

// get reads a path and returns the body of the answer. The body may have at most limit bytes.
func (c *Client) get(ctx context.Context, by identity.Identity, path string, limit int64) ([]byte, error) {
	return c.call(ctx, by, http.MethodGet, path, nil, limit)
}

// call sends a request. The body of the request is the JSON in the argument `sent`; nil: no body. call returns the
// body of the answer. This body may have at most limit bytes.
func (c *Client) call(
	ctx context.Context, by identity.Identity, method, path string, sent []byte, limit int64,
) ([]byte, error) {
	headers := http.Header{}
	headers.Set(httpserver.RequestIDHeader, httpserver.RequestID(ctx))
	return c.send(ctx, by, method, path, sent, limit, headers)
}

// send does the same as call, and also sends headers.
func (c *Client) send(
	ctx context.Context, by identity.Identity, method, path string, sent []byte, limit int64, headers http.Header,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://assetsvc"+path, bytes.NewReader(sent))
	if err != nil {
		return nil, fmt.Errorf("address asset service: %w", err)
	}
	r.Header = headers
	if sent != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	signed, err := c.signer.Sign(by)
	if err != nil {
		return nil, err
	}
	r.Header.Set(identity.Header, signed)
	httpserver.SetTimeout(ctx, r.Header)
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, unavailable(err)
	}
	defer answer.Body.Close()
	if err := faulthttp.Read(answer); err != nil {
		if _, ok := errors.AsType[*fault.Error](err); !ok {
			return nil, unavailable(err)
		}
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err != nil {
		return nil, unavailable(err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("the asset service's answer to %s has more than %d bytes", r.URL.Path, limit)
	}
	return body, nil
}

// unavailable returns the fault for a call to which no asset service gave a usable answer. The argument `cause` is
// only for the log.
func unavailable(cause error) error {
	f := fault.New(fault.Unavailable, fault.URL, "assets", "The asset services do not answer. Try again.")
	return fmt.Errorf("%w: %w", f, cause)
}

// Recoverer describes the operator who gives an asset new tokens, with the facts that the audit log shows.
type Recoverer struct {
	KeyID     string
	RequestID string
	From      string // address of the operator
}

// Recovered has the new tokens of an asset. They are shown only once.
type Recovered struct{ Owner, Token, Transfer string }

// maxRecovered is the maximum number of bytes of an answer with an asset.
const maxRecovered = 32 << 20

// Recover gives an asset new tokens (docs/contract.md, "Recovery").
func (c *Client) Recover(ctx context.Context, by Recoverer, id, reason string) (Recovered, error) {
	body, err := json.Marshal(map[string]any{"data": map[string]string{"reason": reason}})
	if err != nil {
		return Recovered{}, fmt.Errorf("recover asset %s: %w", id, err)
	}
	headers := http.Header{}
	headers.Set(httpserver.RequestIDHeader, by.RequestID)
	headers.Set(httpserver.ClientHeader, by.From)
	path := "/api/2.5/assets/" + url.PathEscape(id) + "/recovery"
	text, err := c.send(ctx, administrator(by.KeyID), http.MethodPost, path, body, maxRecovered, headers)
	if err != nil {
		return Recovered{}, err
	}
	var answer struct {
		Access struct{ Token, Transfer string }
		Data   struct{ Owner string }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return Recovered{}, fmt.Errorf("read the tokens of asset %s: %w", id, err)
	}
	return Recovered{answer.Data.Owner, answer.Access.Token, answer.Access.Transfer}, nil
}
