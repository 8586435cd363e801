package client

import (
	"context"
	"net/http"
)

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
	if err := checkIDs(id); err != nil {
		return Transfer{}, err
	}
	body, err := call[Transfer](ctx, c, read(path("transfers", id), nil))
	return body.Data, err
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
	if err := checkIDs(asset); err != nil {
		return Created{}, err
	}
	r := request{method: http.MethodPost, path: path("assets", asset, "recovery"), data: Fields{"reason": reason}}
	body, err := call[Asset](ctx, c, r)
	body.Data.setTagged(taggedBy(r, body.header))
	return Created{Asset: body.Data, Access: body.Access}, err
}
