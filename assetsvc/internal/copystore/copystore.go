// Package copystore implements registry.Store for a copy of another registry. It only reads the copy.
package copystore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"asset-registry/assetsvc/internal/registry"
)

// Asset is an asset of a Copy.
type Asset struct {
	ID       string // 32 lowercase hex characters
	Position int64  // position in the feed, µs since the Unix epoch
	Test     bool   // the asset is in test mode
	// Text is the asset in the form in which a listing of the newest version shows it with all fields. It is valid
	// only until the function `visit` returns (Copy).
	Text []byte
}

// Query asks for a part of the feed.
type Query struct {
	After      int64 // the assets follow this position; in a descending feed, they come before it. 0: from the start
	Descending bool
	Real, Test bool // Real: assets that are not in test mode; Test: assets in test mode
	Texts      bool // also provide Asset.Text
}

// Copy is a copy of a registry. It is safe for concurrent use. Each method sees the copy at a single moment.
type Copy interface {
	// Feed calls the function `visit` for assets in the order of their positions, until the function returns false.
	// The result `upto` is the position up to which the copy is complete. Feed passes no asset with a greater position
	// to the function.
	Feed(q Query, visit func(Asset) bool) (upto int64, err error)
	// Range calls the function `visit` for the assets from a given id on, in the order of ids, until the function
	// returns false.
	Range(from string, visit func(Asset) bool) error
	// Ready returns nil if the copy can be served.
	Ready(ctx context.Context) error
}

// Store is a registry.Store for a copy. It keeps no record of changes, so Log and Changes return ErrReadOnly.
// All methods that write return ErrReadOnly, too. The revisions of its assets are not the original ones.
type Store struct{ copied Copy }

// New returns a store on a copy.
func New(copied Copy) *Store { return &Store{copied} }

// ErrReadOnly is returned by methods that a copy cannot support.
var ErrReadOnly = errors.New("this is a copy of the assets without their record, and takes no writes")

// errText is returned for an asset whose text does not have the form that assets have in a listing.
var errText = errors.New("the copy has an asset that is not one of a listing")

// bodyOf returns an asset in the form in which stores keep it. This form lacks dateModified, which a listing
// has after the id.
func bodyOf(a Asset) ([]byte, error) {
	head := append(append(make([]byte, 0, len(a.Text)), `{"id":"`...), a.ID...)
	rest, ok := bytes.CutPrefix(a.Text, append(head[:len(head):len(head)], `","dateModified":"`...))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return nil, fmt.Errorf("%w: asset %s", errText, a.ID)
	}
	return append(append(head, '"'), rest[end+1:]...), nil
}

func (s *Store) Page(ctx context.Context, q registry.Query) (page registry.FeedPage, err error) {
	if err := ctx.Err(); err != nil {
		return page, err
	}
	if q.Owner != "" {
		return page, ErrReadOnly
	}
	size, full := 0, false
	var fault error
	page.Upto, err = s.copied.Feed(Query{
		After: q.Offset, Descending: q.Descending, Real: q.Mode != registry.Test, Test: q.Mode != registry.Real,
		Texts: q.Bodies > 0,
	}, func(a Asset) bool {
		if full = len(page.Entries) == q.Limit; full {
			return false
		}
		e := registry.Entry{ID: a.ID, Position: a.Position, Test: a.Test}
		if q.Bodies > 0 {
			if e.Body, fault = bodyOf(a); fault != nil {
				return false
			}
			size += len(e.Body)
			if full = len(page.Entries) > 0 && size > q.Bodies; full {
				return false
			}
		}
		page.Entries = append(page.Entries, e)
		return true
	})
	if err := errors.Join(err, fault); err != nil {
		return registry.FeedPage{}, err
	}
	if full {
		page.Upto = page.Entries[len(page.Entries)-1].Position
	}
	return page, nil
}

func (s *Store) Range(ctx context.Context, q registry.RangeQuery) (page registry.RangePage, err error) {
	if err := ctx.Err(); err != nil {
		return page, err
	}
	size := 0
	var fault error
	err = s.copied.Range(q.From, func(a Asset) bool {
		e := registry.Entry{ID: a.ID, Position: a.Position}
		if e.Body, fault = bodyOf(a); fault != nil {
			return false
		}
		size += len(e.Body)
		if len(page.Entries) == q.Limit || len(page.Entries) > 0 && size > q.Bytes {
			page.Next = a.ID
			return false
		}
		page.Entries = append(page.Entries, e)
		return true
	})
	return page, errors.Join(err, fault)
}

func (s *Store) Get(ctx context.Context, id string, most int) (r registry.Record, err error) {
	var body []byte
	r, err = s.Look(ctx, id, most, func(text []byte) error {
		body = text // made for this call
		return nil
	})
	r.Body = body
	return r, err
}

func (s *Store) Look(
	ctx context.Context, id string, most int, see func(body []byte) error,
) (r registry.Record, err error) {
	if _, ok := registry.ParseID(id); !ok {
		return r, registry.ErrNotFound
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	fault := registry.ErrNotFound
	err = s.copied.Range(id, func(a Asset) bool {
		if a.ID != id {
			return false
		}
		r = registry.Record{ID: id, Position: a.Position, Revision: 1, Listed: true, Test: a.Test}
		if fault = nil; see != nil {
			fault = seeBody(a, most, see)
		}
		return false
	})
	if err := errors.Join(err, fault); err != nil {
		return registry.Record{}, err
	}
	return r, nil
}

// seeBody calls the function see with the body of an asset, or returns registry.ErrLarge.
func seeBody(a Asset, most int, see func(body []byte) error) error {
	if len(a.Text)-maxDate > most {
		return registry.ErrLarge
	}
	body, err := bodyOf(a)
	switch {
	case err != nil:
		return err
	case len(body) > most:
		return registry.ErrLarge
	}
	return see(body)
}

// maxDate is the largest difference, in bytes, between the length of Asset.Text and of the body that is made
// from it.
const maxDate = 64

// Ready implements registry.Store for a store that takes no writes.
func (s *Store) Ready(ctx context.Context) error { return s.copied.Ready(ctx) }

// Close implements registry.Store. It does not close the copy.
func (s *Store) Close() error { return nil }

func (s *Store) Create(context.Context, registry.Record) (int64, error) { return 0, ErrReadOnly }

func (s *Store) Replace(context.Context, registry.Record) (int64, error) { return 0, ErrReadOnly }

func (s *Store) Log(context.Context, string, registry.LogQuery) ([]registry.Revision, error) {
	return nil, ErrReadOnly
}

func (s *Store) Changes(context.Context, registry.ChangesQuery) (registry.ChangesPage, error) {
	return registry.ChangesPage{}, ErrReadOnly
}

func (s *Store) Rewrite(context.Context, registry.Revision, []byte, []byte) (bool, error) {
	return false, ErrReadOnly
}

func (s *Store) ClaimReference(context.Context, string, string, string) (string, error) {
	return "", ErrReadOnly
}

// Now returns the time of this machine's clock.
func (s *Store) Now() time.Time { return time.Now() }

func (s *Store) NextNumber(context.Context, string) (int, error) { return 0, ErrReadOnly }

var _ registry.Store = (*Store)(nil)
