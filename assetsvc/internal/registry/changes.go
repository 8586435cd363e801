package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/errs"
	"asset-registry/shared/sleep"
)

// maxPatch is the largest size in bytes of a patch that Change.Patch keeps. MaxRevisions patches of this size
// have fewer bytes together than the largest asset.
const maxPatch = 32 << 10

// A past revision is made from a whole asset in the record and the patches after it. Chance decides which
// changes keep a whole asset, so that no client can choose to make only the costly changes.
const (
	wholeEvery  = 32   // on average, at most one of this many small changes keeps a whole asset
	wholeCost   = 4096 // on average, a small change adds at most this many bytes of whole assets
	wholeAlways = 1024 // a revision whose number is a multiple of this keeps a whole asset
)

// keepsWhole decides whether the record keeps the whole asset with a revision. The arguments `patch` and `whole`
// are the sizes of the patch and of the asset, in bytes. On average, the whole assets take about as many bytes as
// the patches, plus wholeCost for each change. The patches between two whole assets take about as many bytes as one
// asset.
func keepsWhole(revision int64, patch, whole int) bool {
	if 2*patch >= whole || revision%wholeAlways == 0 {
		return true
	}
	chance := max(min(1.0/wholeEvery, wholeCost/float64(whole)), float64(patch)/float64(whole))
	return rand.Float64() < chance
}

// Change describes a change of an asset.
type Change struct {
	Revision int64
	Position int64 // the asset's dateModified
	By       Author
	Patch    record.List // JSON Patch from the previous revision, or from nothing; nil: too large to keep, or erased
	Size     int         // bytes of the patch
	Erased   *Erasure    // who erased the content, and when; nil: the record still has it
}

// Author says who made a change.
type Author struct {
	Broker string     `json:"broker"` // the broker, or another holder of an API key
	KeyID  string     `json:"key"`    // public name of the key
	Role   asset.Role `json:"role"`   // role of the author for the asset
}

// extra says which content Record.Whole has.
type extra string

// The values of extra. The zero value means that Record.Whole is empty.
const (
	wholeAsset extra = "asset" // the asset after the change
	largePatch extra = "patch" // the patch, which is too large for Change.Patch
)

// change is a Change in the form that a Store keeps.
type change struct {
	By    Author          `json:"by"`
	Patch json.RawMessage `json:"patch,omitempty"`
	Size  int             `json:"size"`
	Extra extra           `json:"extra,omitempty"`
	Leaf  *leaf           `json:"leaf,omitempty"` // for the public log; nil: the change is not public

	Erased *Erasure `json:"erased,omitempty"` // if not nil, Patch and Extra are empty, and the leaf has no salt
}

// encode returns a change as JSON. The patch is not checked, because record.Append has made it.
func (c change) encode() ([]byte, error) {
	patch := c.Patch
	c.Patch = nil
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode change: %w", err)
	}
	if patch == nil {
		return text, nil
	}
	text = append(text[:len(text)-1], `,"patch":`...)
	return append(append(text, patch...), '}'), nil
}

// describe sets the fields Change and Whole of a record that is about to be stored. The arguments `before` and
// `after` are the asset before and after the change. If `before` is nil, the change is a creation. Otherwise
// to.Revision is the revision that the change replaces. The argument `was` says whether the asset was public before
// the change.
func (p *packer) describe(to *Record, by Author, was bool, before, after record.Value) (err error) {
	operations := record.Patch(before, after)
	if before == nil {
		operations = record.List{record.Object{
			{Name: "op", Value: "add"}, {Name: "path", Value: ""}, {Name: "value", Value: after},
		}}
	}
	patch := record.Append(nil, operations)
	c := change{By: by, Patch: patch, Size: len(patch)}
	if c.Leaf, err = newLeaf(p.public, was, *to); err != nil {
		return err
	}
	to.Whole = nil
	switch {
	case before != nil && keepsWhole(to.Revision+1, len(patch), len(to.Body)), before == nil && len(patch) > maxPatch:
		c.Extra = wholeAsset
		to.Whole, err = p.pack(to.Body)
	case len(patch) > maxPatch:
		c.Extra = largePatch
		to.Whole, err = p.deflate(patch)
	}
	if err != nil {
		return err
	}
	if len(patch) > maxPatch {
		c.Patch = nil
	}
	text, err := c.encode()
	if err != nil {
		return err
	}
	to.Change, err = p.pack(text)
	return err
}

// DescribeCreation sets the Change and the Whole of a record in the same way as a creation by this author does.
// It is for programs that fill a store.
func DescribeCreation(r *Record, by Author) error {
	body, err := record.Parse(r.Body)
	if err != nil {
		return fmt.Errorf("describe asset %s: %w", r.ID, err)
	}
	return newPacker(nil).describe(r, by, false, nil, body)
}

// read decodes the stored description of a change.
func (r Revision) read() (c change, err error) {
	text, err := inflate(r.Change)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, errs.In(err, "decode revision %d of asset %s", r.Revision, r.ID)
}

// decode returns the change in the form for callers of Registry.
func (r Revision) decode() (Change, error) {
	c, err := r.read()
	if err != nil {
		return Change{}, err
	}
	shown := Change{Revision: r.Revision, Position: r.Position, By: c.By, Size: c.Size, Erased: c.Erased}
	if c.Patch != nil {
		if shown.Patch, err = record.ParsePatch(c.Patch); err != nil {
			return Change{}, damaged(r, err)
		}
	}
	return shown, nil
}

// damaged returns an internal error for a change whose record cannot be decoded. It does not wrap the cause,
// which may be a fault that is meant for clients.
func damaged(r Revision, cause error) error {
	return fmt.Errorf("decode revision %d of asset %s: %v", r.Revision, r.ID, cause)
}

// The pauses between two reads of the horizon have these limits.
const (
	firstListPause = 5 * time.Millisecond
	mostListPause  = 80 * time.Millisecond
)

// awaitList waits until the list has an asset that entered the list at the given position. It waits for the horizon
// to reach this position, because then no process has an unfinished change at a lower position. From then on, each
// walk over the whole list has the asset. If awaitList cannot read the horizon, or ctx ends, it returns a fault of
// kind Unavailable; the asset is changed nevertheless.
func (r *Registry) awaitList(ctx context.Context, position int64) error {
	for pause := firstListPause; ; pause = min(2*pause, mostListPause) {
		page, err := r.store.Page(ctx, HorizonQuery())
		switch {
		case err != nil:
			return Unavailable("wait until the list has the asset", err)
		case page.Upto >= position:
			return nil
		case !sleep.For(ctx, pause):
			return Unavailable("wait until the list has the asset", context.Cause(ctx))
		}
	}
}

// mostFormer is the maximum number of former bodies on a page. Each of these bodies takes a few reads of the
// record.
const mostFormer = 16

// withFormer adds bodies to the entries of assets that have moved. Each body is the asset as it was at the entry's
// position. If a page needs more than mostFormer such bodies, it ends earlier.
func (r *Registry) withFormer(ctx context.Context, page FeedPage) (FeedPage, error) {
	made := 0
	for i := range page.Entries {
		e := &page.Entries[i]
		if !e.Moved {
			continue
		}
		if made++; made > mostFormer {
			page.Entries, page.Upto = page.Entries[:i], page.Entries[i-1].Position
			break
		}
		var err error
		if e.Body, err = r.former(ctx, e.ID, e.Position); err != nil {
			return FeedPage{}, err
		}
	}
	return page, nil
}

// former returns the body of an asset as it was at a position. If this body was erased from the record, or is too
// large to read, the result is the newest body.
func (r *Registry) former(ctx context.Context, id string, position int64) ([]byte, error) {
	past, err := r.Past(ctx, id, position)
	switch {
	case err == nil:
		return record.Append(nil, past), nil
	case !errors.Is(err, ErrNoCopy) && !errors.Is(err, ErrLarge):
		return nil, err
	}
	newest, err := r.store.Get(ctx, id, AnySize)
	if err != nil {
		return nil, Unavailable("list assets", err)
	}
	return newest.Body, nil
}

// RangeQuery asks for listed assets in the order of their ids.
type RangeQuery struct {
	From  string // lowest id, 32 lowercase hex characters; "" starts at the first asset
	Limit int    // maximum number of assets to look at, at least 1; assets that are not listed count, too
	Bytes int    // maximum number of bytes of all bodies together; the first body may have more
}

// RangePage is a part of the listed assets, in the order of their ids.
type RangePage struct {
	Entries []Entry // with bodies; may be empty although more pages follow
	Next    string  // lowest id after the page; "" at the end
}

// NextID returns the next higher id after an id, or "" after the highest.
func NextID(id string) string {
	next := []byte(id)
	for i := len(next) - 1; i >= 0; i-- {
		switch next[i] {
		case 'f':
			next[i] = '0'
		case '9':
			next[i] = 'a'
			return string(next)
		default:
			next[i]++
			return string(next)
		}
	}
	return ""
}
