package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// ErrNoCopy says that the record lacks a whole asset or a patch that is needed to make a past revision.
var ErrNoCopy = errors.New("the record has no copy of the asset after this change")

// logPage is the maximum number of changes that one read of an asset's history returns. A change has at most a
// little more than maxPatch bytes, so a read stays small.
const logPage = 32

// Past returns an asset as it was after the change at the given position, without its dateModified. It makes the asset
// from a whole one in the record at or below that position, and the patches after it. It holds at most logPage patches
// at a time. It returns ErrNoCopy if the record lacks the whole asset or one of the patches. It returns ErrLarge if the
// whole asset and the patches together have more bytes than the registry may read (Upto).
func (r *Registry) Past(ctx context.Context, id string, position int64) (value record.Value, err error) {
	return r.past(ctx, id, position, nil)
}

// past returns the same as Past. The argument `log` has the change at the position and some changes before it, the
// newest first, if they were read already. So past reads nothing more if it can start from one of them.
func (r *Registry) past(
	ctx context.Context, id string, position int64, log []Revision,
) (value record.Value, err error) {
	at, err := start(log)
	var pages []int64 // LogQuery.Before of each page that was read
	for before := position + 1; at < 0 && err == nil; before = log[len(log)-1].Position {
		if log, err = r.log(ctx, id, LogQuery{Before: before, Limit: logPage}); err != nil {
			return nil, err
		}
		pages = append(pages, before)
		if at, err = start(log); at < 0 && len(log) < logPage {
			return nil, ErrNoCopy
		}
	}
	for size := 0; err == nil; {
		for _, revision := range slices.Backward(log[:at+1]) {
			var read int
			if value, read, err = r.redo(ctx, value, revision); err != nil {
				return nil, err
			}
			if size += read; size > r.most {
				return nil, ErrLarge
			}
		}
		if len(pages) <= 1 {
			return value, nil
		}
		pages = pages[:len(pages)-1]
		log, err = r.log(ctx, id, LogQuery{Before: pages[len(pages)-1], Limit: logPage})
		at = len(log) - 1
	}
	return nil, err
}

// start returns the index of the change that past starts from, or -1 if none of these changes will do. This is the
// newest change with a whole asset, or the creation, whose patch has it. The creation is better, because the page has
// its patch and a whole asset is read apart, unless the patches since are large.
func start(log []Revision) (at int, err error) {
	at = -1
	size := 0
	for i, revision := range log {
		c, err := revision.read()
		if err != nil {
			return 0, err
		}
		size += len(c.Patch)
		switch {
		case at < 0 && c.Extra == wholeAsset:
			at = i
		case at < 0 && c.Extra == "" && c.Patch == nil:
			return 0, ErrNoCopy
		}
		if at >= 0 && (c.Patch == nil || size > maxPatch) {
			return at, nil
		}
		if revision.Revision == 1 && c.Patch != nil {
			return i, nil
		}
	}
	return at, nil
}

// redo applies a change to an asset. It returns the asset after the change, and the number of bytes that it has read.
// It may change the given asset, so the caller must not use the given asset any more. If the given asset is nil, the
// change has a whole asset, or is the creation.
func (r *Registry) redo(
	ctx context.Context, before record.Value, revision Revision,
) (after record.Value, read int, err error) {
	c, err := revision.read()
	if err != nil {
		return nil, 0, err
	}
	text, isWhole := []byte(c.Patch), before == nil && c.Extra == wholeAsset
	if isWhole || c.Extra == largePatch {
		if text, err = r.extra(ctx, revision); err != nil {
			return nil, 0, err
		}
	}
	if text == nil {
		return nil, 0, ErrNoCopy
	}
	if isWhole {
		after, err = record.Parse(text)
	} else {
		var patch record.List
		if patch, err = record.ParsePatch(text); err == nil {
			after, err = record.Apply(before, patch)
		}
	}
	if err != nil {
		return nil, 0, damaged(revision, err)
	}
	return after, len(text), ctx.Err()
}

// extra reads the field Whole of a change from the record.
func (r *Registry) extra(ctx context.Context, c Revision) ([]byte, error) {
	found, err := r.log(ctx, c.ID, LogQuery{Before: c.Position + 1, Limit: 1, Whole: true})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].Position != c.Position || len(found[0].Whole) == 0 {
		return nil, ErrNoCopy // the change was erased after it was read
	}
	text, err := inflateUpto(found[0].Whole, r.most)
	if err != nil && !errors.Is(err, ErrLarge) {
		return nil, damaged(c, err)
	}
	return text, err
}

// MaxRevisions is the largest number of changes that Revisions returns.
const MaxRevisions = 100

// Revisions returns changes of an asset, the newest first, and at most the number in the parameter `limit`. If the
// parameter `before` is not 0, it is a position, and only changes below it are returned. Only the owner and the
// administrator may read them (docs/contract.md, "Revisions").
func (r *Registry) Revisions(
	ctx context.Context, by identity.Identity, id, token string, before int64, limit int,
) ([]Change, error) {
	a, stored, err := r.look(ctx, id, asset.Selection{})
	if err != nil {
		return nil, err
	}
	as, err := r.standing(ctx, by, a, token, stored.Sealed)
	if err != nil {
		return nil, err
	}
	if as.role != asset.Owner && as.role != asset.Administrator {
		reason := cmp.Or(as.notOwner(by, token, tokenOfRead), "only the owner and the administrator read revisions")
		return nil, forbidden(reason)
	}
	log, err := r.log(ctx, id, LogQuery{Before: before, Limit: min(limit, MaxRevisions)})
	if err != nil {
		return nil, err
	}
	changes := make([]Change, len(log))
	for i, revision := range log {
		if changes[i], err = revision.decode(); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// log returns changes of an asset, or a fault of kind NotFound.
func (r *Registry) log(ctx context.Context, id string, q LogQuery) ([]Revision, error) {
	log, err := r.store.Log(ctx, id, q)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, missing()
	case err != nil:
		return nil, Unavailable("read changes of asset "+id, err)
	}
	return log, nil
}

// Guard gets the position of an asset, and reports whether the asset is still as the client has seen it
// (docs/contract.md, "Conditional requests"). A nil Guard accepts every position.
type Guard func(position int64) bool

// check returns the error that a request must get, or nil. The parameter `refusal` is the error by the rules, or nil
// if the rules permit the change. A refusal comes first if the caller is not allowed to change the asset at all, or if
// the part is missing (RFC 9110, 13.2.1). Otherwise, if the guard does not accept the position of the stored record,
// check returns a fault of kind Precondition.
func (g Guard) check(stored Record, refusal error) error {
	if g == nil || g(stored.Position) || refusal != nil && fault.KindOf(refusal) != fault.Invalid {
		return refusal
	}
	return PreconditionFailed()
}

// PreconditionFailed returns the fault of a request whose conditions do not hold.
func PreconditionFailed() error {
	return fault.New(fault.Precondition, fault.URL, "precondition",
		"Precondition Failed: the resource is not as If-Match or another condition says; read it, and repeat with its ETag.")
}
