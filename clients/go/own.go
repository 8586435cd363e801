package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

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
