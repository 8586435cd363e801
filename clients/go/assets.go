package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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
	return c.created(ctx, r)
}

// created sends a request whose answer is an asset with its tokens.
func (c *Client) created(ctx context.Context, r request) (Created, error) {
	body, err := call[Asset](ctx, c, r)
	body.Data.setTagged(taggedBy(r, body.header))
	return Created{body.Data, body.Access}, err
}

// Get reads an asset. It needs no key.
func (c *Client) Get(ctx context.Context, id string) (Asset, error) {
	return one[Asset](ctx, c, read(path("assets", id), nil))
}

// Remove removes a draft permanently (docs/contract.md, "Removal of drafts"). If a first try removed the draft
// but its answer was lost, the retry returns an *Error with the status 404.
func (c *Client) Remove(ctx context.Context, id string, w Write) error {
	_, err := c.send(ctx, write(http.MethodDelete, path("assets", id), nil, w))
	return err
}

// Patch changes the named fields of an asset and returns the whole asset (docs/contract.md, "Change"). If all named
// fields already have the given values, nothing changes.
func (c *Client) Patch(ctx context.Context, id string, change Fields, w Write) (Asset, error) {
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
	return one[Asset](ctx, c, write(http.MethodPut, path("assets", id), asset, w))
}

// Transfer permits the broker that created it to take over an asset (docs/contract.md, "Transfers"). An unused transfer
// ends after 90 days.
type Transfer struct {
	ID      string    `json:"id"`
	Date    Timestamp `json:"date"`              // time when the transfer was used; of an unused one, time of creation
	UsedFor string    `json:"usedFor,omitempty"` // "/assets/ID"; empty: unused
}

// NewTransfer is a transfer with the tokens that an asset gets when the transfer is used.
type NewTransfer struct {
	Transfer Transfer `json:"data"`
	Access   Access   `json:"access"`
}

// CreateTransfer makes a transfer. A retry may leave an unused transfer behind.
func (c *Client) CreateTransfer(ctx context.Context) (NewTransfer, error) {
	r := request{method: http.MethodPost, path: path("transfers"), data: Fields{}, repeatable: true}
	body, err := call[Transfer](ctx, c, r)
	return NewTransfer{body.Data, body.Access}, err
}

// Transfer reads a transfer. It needs no key.
func (c *Client) Transfer(ctx context.Context, id string) (Transfer, error) {
	return dataOf[Transfer](ctx, c, read(path("transfers", id), nil))
}

// TakeOver gives an asset to this client's broker, which must have created the transfer. The
// argument `token` is the asset's transfer token. Afterwards the asset has the tokens of the
// transfer. The same call may be repeated at any time (docs/contract.md, "Ownership").
func (c *Client) TakeOver(ctx context.Context, asset, transfer string, token Secret) (Asset, error) {
	if err := checkIDs(asset, transfer); err != nil {
		return Asset{}, err
	}
	return one[Asset](ctx, c, request{
		method: http.MethodPost, path: path("assets", asset, "ownership"),
		data: Fields{"id": transfer, "transfer": token}, repeatable: true,
	})
}

// Recover gives an asset new tokens, for its owner. It needs an administrator's key. The old
// tokens are no longer valid (docs/contract.md, "Recovery"). The audit log keeps the reason.
// Recover is not retried. After an error, call it again, and use the tokens of the last answer.
func (c *Client) Recover(ctx context.Context, asset, reason string) (Created, error) {
	return c.created(ctx, request{
		method: http.MethodPost, path: path("assets", asset, "recovery"), data: Fields{"reason": reason},
	})
}

// Own selects assets of the key's broker (docs/contract.md, "Own assets"). The zero value selects all assets of the
// broker, drafts too, in the order of their last changes.
type Own struct {
	Position   Position // assets start after this position; zero: at the beginning
	Descending bool     // newest first
	Limit      int      // maximum number of assets of a page; 0: 100
	Mode       Mode     // TestMode: only test assets; empty: all assets
	Status     Status   // empty: in any state
	Fields     []string // fields of each asset besides id and dateModified, such as reference; "*": all
}

// OwnAsset is an asset of the key's broker, with the fields that Own.Fields names.
type OwnAsset struct {
	Asset     Asset
	Reference string // the broker's own name for the asset; empty: there is none, or Own.Fields does not name it
}

func (o *OwnAsset) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &o.Asset); err != nil {
		return err
	}
	reference, ok := o.Asset.Unknown["reference"]
	if !ok {
		return nil
	}
	delete(o.Asset.Unknown, "reference")
	return json.Unmarshal(reference, &o.Reference)
}

// OwnPage is a page of the assets of the key's broker. An empty page means that the list has no more assets now.
type OwnPage struct {
	Assets []OwnAsset
	Next   Position // the next page
}

// OwnPages returns the pages of the assets of the key's broker, from own.Position to the end. The
// last page is empty. A later call can continue from its Next. An error ends the sequence. The
// error wraps ErrStartOver if the registry does not know the position.
func (c *Client) OwnPages(ctx context.Context, own Own) iter.Seq2[OwnPage, error] {
	return func(yield func(OwnPage, error) bool) {
		for {
			page, err := c.ownPage(ctx, own)
			if !yield(page, err) || err != nil || len(page.Assets) == 0 {
				return
			}
			own.Position = page.Next
		}
	}
}

// ownPage reads the page at own.Position.
func (c *Client) ownPage(ctx context.Context, own Own) (OwnPage, error) {
	feed := Feed{Position: own.Position, Descending: own.Descending, Limit: own.Limit, Mode: own.Mode, Fields: own.Fields,
		Raw: true}
	r := feed.request()
	r.path = path("me", "assets")
	if own.Status != "" {
		r.query.Set("status", string(own.Status))
	}
	got, err := c.send(ctx, r)
	if err != nil {
		return OwnPage{}, startOver(err)
	}
	page, err := feed.open(r, got)
	if err != nil {
		return OwnPage{}, err
	}
	found := OwnPage{Next: page.Next, Assets: make([]OwnAsset, len(page.Raw))}
	for i, entry := range page.Raw {
		if err := json.Unmarshal(entry, &found.Assets[i]); err != nil {
			return OwnPage{}, fmt.Errorf("%s %s: %w: %w", r.method, r.path, errNoPage, err)
		}
	}
	return found, nil
}
