package httpapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"asset-registry/assetsvc/internal/registry"
	"asset-registry/assetsvc/internal/webhook"
	"asset-registry/shared/assetfilter"
	"asset-registry/shared/testing/expect"
)

// onePage is a feed with one page, or with an error. It keeps the last query.
type onePage struct {
	page  registry.FeedPage
	err   error
	asked registry.Query
}

func (f *onePage) List(_ context.Context, q registry.Query) (registry.FeedPage, error) {
	f.asked = q
	return f.page, f.err
}

// filtersIn returns the filters in a text; "": none.
func filtersIn(t *testing.T, text string) assetfilter.Set {
	t.Helper()
	if text == "" {
		return assetfilter.Set{}
	}
	return expect.Get(assetfilter.Parse(text))(t)
}

// isFailure reports whether an error has a text. The text "" stands for no error.
func isFailure(err error, text string) bool {
	return (err != nil) == (text != "") && (err == nil || strings.Contains(err.Error(), text))
}

// feedOf returns a feed that is complete up to position 9, with the given bodies at positions from 5 on.
func feedOf(bodies ...string) *onePage {
	f := &onePage{page: registry.FeedPage{Upto: 9}}
	for i, body := range bodies {
		f.page.Entries = append(f.page.Entries, registry.Entry{ID: string(rune('a' + i)), Position: 5 + int64(i), Body: []byte(body)})
	}
	return f
}

const (
	pendingAsset = `{"id":"a","status":"pending","rectificationPeriod":{}}`
	activeAsset  = `{"id":"b","status":"active"}`
	damagedAsset = `{"id":"c","status":`
	areActive    = `{"status":["active"]}`
	areComplete  = `{"status":["complete"]}`
)

// TestAWebhookGetsPagesOfItsSelection reads a page for each kind of selection.
func TestAWebhookGetsPagesOfItsSelection(t *testing.T) {
	at := func(second string) string { return `"dateModified":"1970-01-01T00:00:00.00000` + second + `+00:00"` }
	down := &onePage{err: errors.New("the store is down")}
	for _, c := range []struct {
		name    string
		feed    *onePage
		s       webhook.Selection
		filters string
		want    []string
		upto    int64
		query   registry.Query
		failure string
	}{
		{"no entry", feedOf(), webhook.Selection{Version: "2.5"}, "", nil, 9, registry.Query{}, ""},
		{"no fields", feedOf(pendingAsset, activeAsset), webhook.Selection{Version: "2.5", Mode: "test"}, "",
			[]string{`{"id":"a",` + at("5") + `}`, `{"id":"b",` + at("6") + `}`}, 6, registry.Query{Mode: registry.Test}, ""},
		{"all fields", feedOf(pendingAsset), webhook.Selection{Version: "2.5", Whole: true, Mode: "_all_"}, "",
			[]string{`{"id":"a",` + at("5") + `,"status":"pending","rectificationPeriod":{}}`}, 5,
			registry.Query{Mode: registry.All, Bodies: webhook.MaxBytes}, ""},
		{"all fields of version 2.4", feedOf(pendingAsset), webhook.Selection{Version: "2.4", Whole: true}, "",
			[]string{`{"id":"a",` + at("5") + `,"status":"pending"}`}, 5, registry.Query{Bodies: webhook.MaxBytes}, ""},
		{"filtered, without fields", feedOf(activeAsset, activeAsset, pendingAsset), webhook.Selection{Version: "2.5"}, areActive,
			[]string{`{"id":"a",` + at("5") + `}`, `{"id":"b",` + at("6") + `}`}, 7,
			registry.Query{Bodies: webhook.MaxBytes}, ""},
		{"filtered, nothing left", feedOf(activeAsset, pendingAsset), webhook.Selection{Version: "2.5"}, areComplete, nil, 6,
			registry.Query{Bodies: webhook.MaxBytes}, ""},
		{"an unknown version", feedOf(activeAsset), webhook.Selection{Version: "2.3"}, "", nil, 0, registry.Query{},
			`no version "2.3"`},
		{"a damaged asset", feedOf(damagedAsset), webhook.Selection{Version: "2.5", Whole: true}, "", nil, 0,
			registry.Query{Bodies: webhook.MaxBytes}, "list asset a"},
		{"a damaged asset, filtered", feedOf(damagedAsset), webhook.Selection{Version: "2.5"}, areActive, nil, 0,
			registry.Query{Bodies: webhook.MaxBytes}, "filter asset a"},
		{"a store that is down", down, webhook.Selection{Version: "2.5"}, "", nil, 0, registry.Query{}, "is down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			page, err := NewWebhookFeed(c.feed, nil, time.UTC, nil).Page(t.Context(), c.s, filtersIn(t, c.filters), 4)
			var got []string
			for i, e := range page.Entries {
				got = append(got, string(e.Data))
				expect.Equal(t, e.Position, 5+int64(i), "the position")
			}
			if diff := cmp.Diff(c.want, got); diff != "" || page.Upto != c.upto || !isFailure(err, c.failure) {
				t.Errorf("got %v and a page up to %d, want %q and %d (-want +got):\n%s", err, page.Upto, c.failure, c.upto, diff)
			}
			if c.s.Version != "2.3" {
				c.query.Offset, c.query.Limit = 4, webhook.MaxEntries
			}
			expect.NoDiff(t, cmp.Diff(c.query, c.feed.asked), "the query differs")
		})
	}
	if _, _, err := NewWebhookFeed(down, nil, time.UTC, nil).Follow(webhook.Selection{Version: "2.3"}); err == nil {
		t.Error("got no error for a ring of version 2.3, want one")
	}
}

// TestTheNextAssetOfAWebhookIsFound searches a part of the feed for the first asset that meets filters.
func TestTheNextAssetOfAWebhookIsFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		feed    *onePage
		filters string
		want    webhook.Found
		failure string
	}{
		{"the end of the feed", feedOf(), areActive, webhook.Found{Upto: 9}, ""},
		{"no filters", feedOf(pendingAsset, activeAsset), "", webhook.Found{First: 5, More: true}, ""},
		{"a later asset", feedOf(pendingAsset, activeAsset), areActive, webhook.Found{First: 6, Upto: 5, More: true}, ""},
		{"no asset", feedOf(pendingAsset, activeAsset), areComplete, webhook.Found{Upto: 6, More: true}, ""},
		{"a damaged asset", feedOf(damagedAsset), areActive, webhook.Found{}, "filter asset a"},
		{"a store that is down", &onePage{err: errors.New("the store is down")}, areActive, webhook.Found{}, "is down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := NewWebhookFeed(c.feed, nil, time.UTC, nil).Find(t.Context(), "test", filtersIn(t, c.filters), 4)
			if diff := cmp.Diff(c.want, got); diff != "" || !isFailure(err, c.failure) {
				t.Errorf("got %v, want %q (-want +got):\n%s", err, c.failure, diff)
			}
			query := registry.Query{Offset: 4, Limit: findEntries, Mode: registry.Test, Bodies: findBytes}
			expect.NoDiff(t, cmp.Diff(query, c.feed.asked), "the query differs")
		})
	}
}
