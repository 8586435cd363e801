package assetclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"asset-registry/shared/adminapi"
	"asset-registry/shared/httpclient"
	"asset-registry/shared/identity"
	"asset-registry/shared/telemetry"
)

const maxFound = 2 << 20 // maximum number of bytes of an answer; found assets have at most 16 KiB each

// WithSearch returns a client that asks a search service for titles, by the given transport.
func (c *Client) WithSearch(transport http.RoundTripper) *Client {
	with := *c
	with.search = httpclient.New(telemetry.Transport(transport))
	return &with
}

// Asset returns one asset. The argument `by` names it: id; number; or broker and reference. If there is none, the
// error is a fault of kind NotFound.
func (c *Client) Asset(ctx context.Context, keyID string, by url.Values) (adminapi.Asset, error) {
	var answer adminapi.Response[adminapi.Asset]
	err := c.read(ctx, c.http, administrator(keyID), adminapi.FindAssetPath+"?"+by.Encode(), &answer)
	return answer.Data, err
}

// Titles returns up to limit published assets whose texts have the given words, and whether there are more. The result
// `asked` is false if there is no search service.
func (c *Client) Titles(
	ctx context.Context, words string, limit int,
) (found []adminapi.Asset, more, asked bool, err error) {
	if c.search == nil {
		return nil, false, false, nil
	}
	query := url.Values{"q": {words}, "limit": {strconv.Itoa(limit)}}
	var answer struct {
		Data  []adminapi.Asset
		Total int
	}
	err = c.read(ctx, c.search, identity.Identity{}, "/api/2.5/search?"+query.Encode(), &answer)
	return answer.Data, answer.Total > len(answer.Data), err == nil, err
}

// Owned returns up to limit assets of a broker, those that changed last first, and whether there are more. The argument
// `state` selects them; "" stands for any state. The argument `named` says whether their numbers and titles are read.
func (c *Client) Owned(
	ctx context.Context, keyID, broker, state string, limit int, named bool,
) (found []adminapi.Asset, more bool, err error) {
	query := url.Values{"descending": {"1"}, "limit": {strconv.Itoa(limit + 1)}}
	if state != "" {
		query.Set("status", state)
	}
	if named {
		query.Set("opt_fields", "assetID,title,status,owner,mode")
	}
	var answer adminapi.Response[[]adminapi.Asset]
	by := identity.Identity{Broker: broker, KeyID: keyID, Role: identity.Broker}
	err = c.read(ctx, c.http, by, "/api/2.5/me/assets?"+query.Encode(), &answer)
	return answer.Data[:min(limit, len(answer.Data))], len(answer.Data) > limit, err
}

// read reads a path of a service and decodes the JSON of the answer.
func (c *Client) read(ctx context.Context, from *http.Client, by identity.Identity, path string, into any) error {
	of := *c
	of.http = from
	text, err := of.get(ctx, by, path, maxFound)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the answer to %.40s: %w", path, err)
	}
	return nil
}
