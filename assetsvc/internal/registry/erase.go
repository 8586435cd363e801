package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
	"asset-registry/shared/sleep"
	"asset-registry/shared/translog"
)

// Erasure says who erased the content of a revision, and when.
type Erasure struct {
	By Author `json:"by"`
	At int64  `json:"at"` // µs since the Unix epoch
}

// eraseTries is the largest number of attempts of Erase. An attempt fails if another erasure changes the record at
// the same time. If several erasures try at the same time, at least one of them succeeds.
const eraseTries = 32

// erasePause is the longest pause before Erase tries again.
const erasePause = 20 * time.Millisecond

// Erase destroys the content of a past revision of an asset: its patch, its whole asset and the salt of its leaf
// (docs/contract.md, "Revisions"). The leaf, the position and the author stay. The next revision gets a whole
// asset, so that it no longer depends on the erased revision. Only the administrator may erase. A second erasure of
// the same revision has no effect.
//
// Erase returns the change as Revisions shows it. It returns a fault of kind NotFound if the asset has no such
// revision, and a fault of kind Invalid for the newest revision, which is the asset itself. After any other error
// the revision may be erased or not; other revisions are unchanged.
func (r *Registry) Erase(ctx context.Context, by identity.Identity, id string, revision int64) (Change, error) {
	author := Author{by.Broker, by.KeyID, asset.Administrator}
	if by.Role != identity.Administrator {
		if _, err := r.Head(ctx, id); err != nil {
			return Change{}, err
		}
		return Change{}, forbidden("only the administrator erases revisions")
	}
	var overtaken error
	for range eraseTries {
		log, err := r.revision(ctx, id, revision)
		if err != nil {
			return Change{}, err
		}
		if len(log) == 0 {
			return Change{}, noRevision("the asset has no revision %d.", revision)
		}
		if overtaken = r.erase(ctx, author, &log[0]); overtaken == nil {
			return log[0].decode()
		}
		if !errors.Is(overtaken, errRewritten) && !errors.Is(overtaken, ErrNoCopy) {
			return Change{}, overtaken
		}
		if !sleep.For(ctx, rand.N(erasePause)) {
			break
		}
	}
	return Change{}, Unavailable(fmt.Sprintf("erase revision %d of asset %s", revision, id), overtaken)
}

// errRewritten says that another erasure has changed the record since it was read.
var errRewritten = errors.New("the record was changed meanwhile")

// erase removes the content of a change and stores what is left. Another erasure may change the record during the
// call. Then the parts that this call has read do not fit together, and erase returns errRewritten or ErrNoCopy.
func (r *Registry) erase(ctx context.Context, author Author, of *Revision) error {
	c, err := of.read()
	if err != nil || c.Erased != nil {
		return err
	}
	next, err := r.following(ctx, *of)
	if err != nil {
		return err
	}
	if err := r.stand(ctx, next); err != nil {
		return err
	}
	left := change{By: c.By, Size: c.Size, Leaf: c.Leaf, Erased: &Erasure{By: author, At: r.now().UnixMicro()}}
	if left.Leaf != nil {
		left.Leaf.Salt = translog.Salt{}
	}
	return r.rewrite(ctx, of, left, nil)
}

// following returns the next change of the asset after the given one. If the given change is the newest, it
// returns a fault.
func (r *Registry) following(ctx context.Context, change Revision) (Revision, error) {
	newest, err := r.log(ctx, change.ID, LogQuery{Limit: 1})
	if err != nil {
		return Revision{}, err
	}
	if len(newest) == 0 || newest[0].Position <= change.Position {
		const text = "Revision %d is the newest: it is the asset as it is now. " +
			"Change the asset first, then erase the revision."
		return Revision{}, fault.New(fault.Invalid, fault.URL, "revision", text, change.Revision)
	}
	low, high := change.Position, newest[0] // low < position of the next change <= high.Position
	for high.Before != change.Position && high.Position-low > 1 {
		middle := low + (high.Position-low)/2
		found, err := r.log(ctx, change.ID, LogQuery{Before: middle + 1, Limit: 1})
		switch {
		case err != nil:
			return Revision{}, err
		case len(found) == 0 || found[0].Position <= change.Position:
			low = middle
		default:
			high = found[0]
		}
	}
	if high.Before != change.Position {
		return Revision{}, fmt.Errorf("asset %s has no change that was made from %d", change.ID, change.Position)
	}
	return high, nil
}

// stand gives a change a whole asset, so that it does not depend on the previous change. An erased change needs no
// whole asset. stand returns the same errors as the method `erase`.
func (r *Registry) stand(ctx context.Context, of Revision) error {
	c, err := of.read()
	if err != nil || c.Extra == wholeAsset || c.Erased != nil {
		return err
	}
	past, err := r.Past(ctx, of.ID, of.Position)
	if err != nil {
		return fmt.Errorf("make asset %s of %d again: %w", of.ID, of.Position, err)
	}
	whole, err := r.packer.pack(record.Append(nil, past))
	if err != nil {
		return err
	}
	c.Extra = wholeAsset
	return r.rewrite(ctx, &of, c, whole)
}

// rewrite replaces everything that the record keeps of a change. It returns errRewritten if the record has
// changed since it was read.
func (r *Registry) rewrite(ctx context.Context, of *Revision, c change, whole []byte) error {
	text, err := c.encode()
	if err != nil {
		return err
	}
	kept, err := r.packer.pack(text)
	if err != nil {
		return err
	}
	done, err := r.store.Rewrite(ctx, *of, kept, whole)
	if err != nil {
		return Unavailable(fmt.Sprintf("erase a revision of asset %s", of.ID), err)
	}
	if !done {
		return errRewritten
	}
	of.Change, of.Whole = kept, whole
	return nil
}

// Remove removes a draft for ever, in one atomic write (docs/contract.md, "Removal of drafts"). The parameter `token`
// is the owner token, or "" if the caller sent none. The id and the number of the asset are never used again. The
// record keeps the changes of the draft, but nobody can read them any more.
func (r *Registry) Remove(ctx context.Context, caller identity.Identity, id, token string, guard Guard) error {
	if caller.IsAnonymous() {
		return forbidden("an API key is needed")
	}
	var as standing
	_, err := r.save(ctx, id, step{
		ask: func(stored Record) error {
			current, err := decode(stored)
			if err != nil {
				return err
			}
			as, err = r.standing(ctx, caller, current, token, stored.Sealed)
			return err
		},
		next: func(stored Record) (Record, error) {
			current, err := decode(stored)
			if err != nil {
				return Record{}, err
			}
			by := asset.Caller{Role: as.role, NotOwner: as.notOwner(caller, token, tokenOfRead)}
			err = current.OwnedBy(as.owner).CheckRemoval(by)
			if err = guard.check(stored, withinTest(caller, err, current)); err != nil {
				return Record{}, err
			}
			return r.removed(stored, current, Author{caller.Broker, caller.KeyID, asset.Owner})
		},
	})
	return err
}

// removed returns the record that stays in the store in place of a removed draft.
func (r *Registry) removed(stored Record, draft asset.Asset, by Author) (Record, error) {
	origin, err := stored.originLeft(r.now())
	if err != nil {
		return Record{}, err
	}
	left := Record{
		ID: stored.ID, Position: stored.Position, Revision: stored.Revision, Sealed: stored.Sealed, Origin: origin,
		Former: draft.Owner(), Removed: true, Body: []byte{},
	}
	err = r.packer.describe(&left, by, false, draft.Fields(), record.Object{})
	return left, err
}

// originLeft returns the encoded origin for a removed draft, without the hashes of the fields.
func (r Record) originLeft(now time.Time) (string, error) {
	text, err := r.originAfter(now)
	if err != nil {
		return "", err
	}
	o, err := decodeOrigin(r.ID, text)
	o.Fields, o.SameFields = "", ""
	if err != nil {
		return "", err
	}
	return o.encode()
}

// removedUnder is called when a client repeats the creation of a draft that was removed. It returns the fault for
// the client. It returns nil if the creation is too old to be repeated.
func (r *Registry) removedUnder(stored Record, in Input, seed Seed) error {
	before, err := stored.origin(r.now())
	switch {
	case err != nil || before.Created == 0:
		return err
	case !seed.fingerprint(in).Match(before.request()):
		return anotherRequest()
	default:
		const text = "The asset %s, which this key created, was removed."
		return fault.New(fault.Gone, fault.Header, "Idempotency-Key", text, stored.ID)
	}
}
