package client

import (
	"context"
	"net/http"
)

const assetsPath = prefix + "/assets"

// Created is a new asset with its tokens. A repeated call of CreateReferenced may return it without the tokens.
type Created struct {
	Asset  Asset  `json:"data"`
	Access Access `json:"access"`
}

// Create creates an asset, which is a draft at first. It sends a new Idempotency-Key, so its retries create only one
// asset.
func (c *Client) Create(ctx context.Context, asset Asset) (Created, error) {
	return c.CreateOnce(ctx, asset, "")
}

// CreateOnce creates an asset under an idempotency key: 1 to 255 visible ASCII
// characters. A call with the same asset and key within 24 hours returns the first
// answer, tokens included, also from another process (docs/contract.md,
// "Idempotency"). An empty key stands for a random one.
func (c *Client) CreateOnce(ctx context.Context, asset Asset, key string) (Created, error) {
	return c.create(ctx, asset, key, "")
}

// CreateFields works like CreateOnce, but takes the asset as Fields, for a program that has it as JSON.
func (c *Client) CreateFields(ctx context.Context, asset Fields, key string) (Created, error) {
	return c.create(ctx, asset, key, "")
}

// CreateReferenced works like CreateFields, and stores the broker's own name for the asset: 1 to 200 visible ASCII
// characters (docs/contract.md, "Own references"). The name stands for the same asset for ever. A later call with the
// same name and asset returns that asset. The later answer has the tokens of the asset only if the call has the same
// key and comes within 24 hours. An administrator can give the asset new tokens, with Recover. A call with the same
// name and a different asset returns an *Error with the status 409. The error names the first asset.
func (c *Client) CreateReferenced(ctx context.Context, asset Fields, reference, key string) (Created, error) {
	return c.create(ctx, asset, key, reference)
}

func (c *Client) create(ctx context.Context, asset any, key, reference string) (Created, error) {
	r := request{
		method: http.MethodPost, path: assetsPath, data: asset, idempotency: key, reference: reference, repeatable: true,
	}
	body, err := call[Asset](ctx, c, r)
	body.Data.setTagged(taggedBy(r, body.header))
	return Created{body.Data, body.Access}, err
}

// Get reads an asset. It needs no key.
func (c *Client) Get(ctx context.Context, id string) (Asset, error) {
	if err := checkIDs(id); err != nil {
		return Asset{}, err
	}
	return one[Asset](ctx, c, read(path("assets", id), nil))
}

// Remove removes a draft permanently (docs/contract.md, "Removal of drafts"). If a first try removed the draft
// but its answer was lost, the retry returns an *Error with the status 404.
func (c *Client) Remove(ctx context.Context, id string, w Write) error {
	if err := checkIDs(id); err != nil {
		return err
	}
	_, err := c.send(ctx, write(http.MethodDelete, path("assets", id), nil, w))
	return err
}

// Patch changes the named fields of an asset and returns the whole asset (docs/contract.md, "Change"). If all named
// fields already have the given values, nothing changes.
func (c *Client) Patch(ctx context.Context, id string, change Fields, w Write) (Asset, error) {
	if err := checkIDs(id); err != nil {
		return Asset{}, err
	}
	return one[Asset](ctx, c, write(http.MethodPatch, path("assets", id), change, w))
}

// Publish moves a draft to Pending, which puts it into the feed.
func (c *Client) Publish(ctx context.Context, id string, w Write) (Asset, error) {
	return c.Patch(ctx, id, Fields{"status": Pending}, w)
}

// Replace replaces all fields of an asset that the caller may write. It clears those that are absent from the new asset
// (docs/contract.md, "Replace"). Set w.IfMatch to the tag of the asset that you have read. Then Replace does not
// overwrite a change that another caller has made since.
func (c *Client) Replace(ctx context.Context, id string, asset Asset, w Write) (Asset, error) {
	if err := checkIDs(id); err != nil {
		return Asset{}, err
	}
	return one[Asset](ctx, c, write(http.MethodPut, path("assets", id), asset, w))
}
