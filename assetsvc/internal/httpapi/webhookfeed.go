package httpapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/live"
	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/follow"
)

// WebhookFeed implements webhook.Feed for a registry. Its entries have the same form as the entries of a
// listing.
type WebhookFeed struct {
	feed     live.Feed
	watcher  *live.Watcher
	zone     *time.Location
	versions []version
}

// NewWebhookFeed returns a feed without the fields of the hidden groups. It prints times in zone, a constant
// offset.
func NewWebhookFeed(feed live.Feed, w *live.Watcher, zone *time.Location, hidden []asset.Group) *WebhookFeed {
	return &WebhookFeed{feed: feed, watcher: w, zone: zone, versions: publicVersions(hidden)}
}

// fieldsOf returns the fields of a selection, as a value of the parameter opt_fields.
func fieldsOf(s webhook.Selection) string {
	if s.Whole {
		return "*"
	}
	return ""
}

// encoder returns a function that encodes an entry in the version, and with the fields, that a selection asks for.
func (f *WebhookFeed) encoder(s webhook.Selection) (live.Encode, error) {
	i := slices.IndexFunc(f.versions, func(v version) bool { return string(v.name) == s.Version })
	if i < 0 {
		return nil, fmt.Errorf("webhooks get no version %q", s.Version)
	}
	return f.versions[i].encode(fieldsOf(s), f.zone), nil
}

func (f *WebhookFeed) Follow(s webhook.Selection) (ring *follow.Ring, leave func(), err error) {
	encode, err := f.encoder(s)
	if err != nil {
		return nil, nil, err
	}
	selection := live.Selection{Version: s.Version, Mode: modeOf(s.Mode), Fields: fieldsOf(s), Terms: s.Terms}
	return f.watcher.Join(selection, encode)
}

func (f *WebhookFeed) Page(
	ctx context.Context, s webhook.Selection, filters assetfilter.Set, after int64,
) (webhook.Page, error) {
	encode, err := f.encoder(s)
	if err != nil {
		return webhook.Page{}, err
	}
	q := registry.Query{Offset: after, Limit: webhook.MaxEntries, Mode: modeOf(s.Mode)}
	if s.Whole || !filters.IsEmpty() {
		q.Bodies = webhook.MaxBytes
	}
	page, err := f.feed.List(ctx, q)
	if err != nil {
		return webhook.Page{}, err
	}
	shown := webhook.Page{Upto: page.Upto}
	if n := len(page.Entries); n > 0 {
		shown.Upto = page.Entries[n-1].Position
	}
	for _, e := range page.Entries {
		met, err := meets(e, filters)
		if err != nil {
			return webhook.Page{}, err
		}
		if !met {
			continue
		}
		data, err := encode(nil, e)
		if err != nil {
			return webhook.Page{}, fmt.Errorf("list asset %s: %w", e.ID, err)
		}
		shown.Entries = append(shown.Entries, webhook.Entry{Position: e.Position, Data: data})
	}
	return shown, nil
}

// The limits of one call of the function `find`.
const (
	findEntries = 256
	findBytes   = 256 << 10 // maximum number of bytes of assets
)

func (f *WebhookFeed) Find(
	ctx context.Context, mode string, filters assetfilter.Set, after int64,
) (webhook.Found, error) {
	return find(ctx, f.feed, mode, filters, after)
}

func find(
	ctx context.Context, in live.Feed, mode string, filters assetfilter.Set, after int64,
) (found webhook.Found, err error) {
	q := registry.Query{Offset: after, Limit: findEntries, Mode: modeOf(mode), Bodies: findBytes}
	page, err := in.List(ctx, q)
	if err != nil {
		return found, err
	}
	for _, e := range page.Entries {
		met, err := meets(e, filters)
		if err != nil {
			return found, err
		}
		if met {
			return webhook.Found{First: e.Position, Upto: found.Upto, More: true}, nil
		}
		found.Upto, found.More = e.Position, true
	}
	if !found.More {
		found.Upto = page.Upto
	}
	return found, nil
}

// meets reports whether an asset meets filters.
func meets(e registry.Entry, filters assetfilter.Set) (bool, error) {
	if filters.IsEmpty() {
		return true, nil
	}
	terms, err := assetfilter.Terms(e.Body)
	if err != nil {
		return false, fmt.Errorf("filter asset %s: %w", e.ID, err)
	}
	return filters.Meets(terms), nil
}

func (f *WebhookFeed) Offset(position int64) string { return printPosition(position, f.zone) }
