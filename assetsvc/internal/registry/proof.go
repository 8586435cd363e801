package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/translog"
)

// Log is the public log of changes (docs/log.md).
type Log interface {
	// Prove returns the proof that the log has the leaf of the change at a position, and
	// that leaf. The proof is for the newest checkpoint, and has no evidence. Prove
	// returns ErrNotLogged, ErrNoLeaf and ErrDamagedLog.
	Prove(ctx context.Context, position int64) (proof translog.Proof, leaf []byte, err error)
}

// ErrNotLogged is returned for a change that the newest checkpoint of the log does not
// cover.
var ErrNotLogged = errors.New("the newest checkpoint does not cover this change")

// ErrDamagedLog is the cause of an error about parts of the log that do not fit together, or
// that are missing.
var ErrDamagedLog = errors.New("the public log is damaged")

// ErrNoLeaf is returned for a change that the log has passed without a leaf. If the change
// is public, the log is damaged.
var ErrNoLeaf = errors.New("the log has later changes, but no leaf of this one")

// WithLog returns a registry on the same store whose Prove reads the public log. A nil log
// means that there is none.
func (r *Registry) WithLog(log Log) *Registry {
	logged := *r
	logged.public = log
	return &logged
}

// maxLookBack is how many of an asset's newest changes Prove looks at for a public one.
const maxLookBack = 1024

// Prove returns the proof that the public log has a revision of an asset, and the evidence
// for it (docs/log.md, "Proofs"). Revision 0 stands for the asset's newest public change.
// The evidence has no salt and no asset for a withdrawal, for an erased revision, and for one
// that the log has with fields that are hidden now.
//
// Prove returns a fault of kind NotFound if there is no such asset, public revision or log,
// one of kind Unavailable if the newest checkpoint does not cover the change yet, and
// ErrLarge (Upto). A damaged log is of kind Unavailable too.
func (r *Registry) Prove(ctx context.Context, id string, revision int64) (translog.Proof, translog.Evidence, error) {
	if r.public == nil {
		return refuseProof(fault.New(fault.NotFound, fault.URL, "not_found", "Not Found: this registry keeps no public log."))
	}
	change, err := r.publicChange(ctx, id, revision)
	if err != nil {
		return refuseProof(err)
	}
	kept, err := change.leaf()
	if err != nil {
		return refuseProof(err)
	}
	leaf, err := kept.entry(change)
	if err != nil {
		return refuseProof(err)
	}
	proof, logged, err := r.public.Prove(ctx, change.Position)
	switch {
	case errors.Is(err, ErrNotLogged):
		return refuseProof(notYet())
	case errors.Is(err, ErrNoLeaf) || errors.Is(err, ErrDamagedLog):
		return refuseProof(fmt.Errorf("%w: prove revision %d of asset %s: %w", unproved(), change.Revision, id, err))
	case err != nil:
		return refuseProof(Unavailable(fmt.Sprintf("prove revision %d of asset %s", change.Revision, id), err))
	case !bytes.Equal(logged, leaf.Encode()):
		return refuseProof(fmt.Errorf("%w: prove revision %d of asset %s: the log has the leaf %s, the record %s",
			unproved(), change.Revision, id, logged, leaf.Encode()))
	}
	evidence := translog.Evidence{Leaf: logged}
	salt := kept.Salt
	if salt == (translog.Salt{}) || !asset.HasGroups(kept.Hidden, r.rules.Hidden) { // nobody may check it any more
		return proof, evidence, nil
	}
	if evidence.Asset, err = r.shown(ctx, id, change.Position, kept.Hidden); err != nil {
		return refuseProof(err)
	}
	if err := leaf.Match(evidence.Asset, salt); err != nil {
		return refuseProof(fmt.Errorf("prove revision %d of asset %s: %w", change.Revision, id, err))
	}
	evidence.Salt = &salt
	return proof, evidence, nil
}

func refuseProof(err error) (translog.Proof, translog.Evidence, error) {
	return translog.Proof{}, translog.Evidence{}, err
}

// notYet returns the fault of a change that is newer than the newest checkpoint.
func notYet() error {
	const text = "The newest checkpoint of the log does not cover this change yet; repeat the request."
	f := fault.New(fault.Unavailable, fault.URL, "revision", text)
	f.RetryAfter = time.Second
	return f
}

// unproved returns the fault of a change that the log cannot prove, because log and record
// differ. The operator has to act, so a client need not ask again soon.
func unproved() error {
	const text = "The public log is damaged, so this cannot be proved now. The operator of the registry has to repair it."
	f := fault.New(fault.Unavailable, fault.URL, "revision", text)
	f.RetryAfter = time.Hour
	return f
}

// shown returns an asset as the public log has it after the change at a position: without
// hidden fields, and with its dateModified.
func (r *Registry) shown(ctx context.Context, id string, position int64, hidden []asset.Group) ([]byte, error) {
	past, err := r.Past(ctx, id, position)
	switch {
	case errors.Is(err, ErrNoCopy):
		return nil, fmt.Errorf("make asset %s of %d again: %w", id, position, err)
	case err != nil:
		return nil, err
	}
	body := record.Append(nil, past)
	if len(body) > r.most {
		return nil, ErrLarge
	}
	all := r.packer.public
	if !slices.Equal(hidden, all.hidden) { // another setting was in force
		all = publicView(hidden)
	}
	if body, err = all.show(body); err != nil {
		return nil, err
	}
	body = append(bytes.TrimSuffix(body, []byte{'}'}), `,"dateModified":"`...)
	body = asset.AppendTime(body, time.UnixMicro(position), r.rules.Zone)
	return append(body, `"}`...), nil
}

// publicChange returns the change that made a revision of an asset, or its newest public
// change for revision 0. It returns a fault if there is none, or if it is not public.
func (r *Registry) publicChange(ctx context.Context, id string, revision int64) (Revision, error) {
	if revision == 0 {
		return r.newestPublic(ctx, id)
	}
	change, there, err := r.revision(ctx, id, revision)
	if err != nil {
		return Revision{}, err
	}
	if there {
		if _, _, there, err = change.Leaf(); err != nil {
			return Revision{}, err
		}
	}
	if !there {
		return Revision{}, noRevision("the asset has no public revision %d.", revision)
	}
	return change, nil
}

func noRevision(format string, args ...any) error {
	return fault.New(fault.NotFound, fault.URL, "revision", "Not Found: "+format, args...)
}

// newestPublic returns the newest public change of an asset. It is the newest change of
// all, unless the asset is in test mode or a draft.
func (r *Registry) newestPublic(ctx context.Context, id string) (Revision, error) {
	q := LogQuery{Limit: 1}
	for read := 0; read < maxLookBack; {
		log, err := r.log(ctx, id, q)
		if err != nil {
			return Revision{}, err
		}
		for _, change := range log {
			if _, _, is, err := change.Leaf(); is || err != nil {
				return change, err
			}
		}
		if len(log) < q.Limit {
			return Revision{}, noRevision("the asset has no public revision.")
		}
		read += len(log)
		q = LogQuery{Before: log[len(log)-1].Position, Limit: min(logPage, maxLookBack-read)}
	}
	const text = "none of the newest %d changes of the asset is public; name an older revision."
	return Revision{}, noRevision(text, maxLookBack)
}

// revision returns the change that made a revision of an asset. Revisions rise with
// positions. So it halves the span of positions with each read, at most 58 times, until one
// page has the rest.
func (r *Registry) revision(ctx context.Context, id string, revision int64) (Revision, bool, error) {
	newest, err := r.log(ctx, id, LogQuery{Limit: 1})
	if err != nil || len(newest) == 0 || newest[0].Revision < revision {
		return Revision{}, false, err
	}
	low, high := int64(0), newest[0] // the change is after low, and is not after high
	for high.Revision-revision > logPage && high.Position-low > 1 {
		middle := low + (high.Position-low)/2
		found, err := r.log(ctx, id, LogQuery{Before: middle + 1, Limit: 1})
		switch {
		case err != nil:
			return Revision{}, false, err
		case len(found) == 0 || found[0].Revision < revision:
			low = middle
		default:
			high = found[0]
		}
	}
	if high.Revision == revision {
		return high, true, nil
	}
	rest, err := r.log(ctx, id, LogQuery{Before: high.Position, Limit: logPage})
	for _, change := range rest {
		if change.Revision == revision {
			return change, true, err
		}
	}
	return Revision{}, false, err
}
