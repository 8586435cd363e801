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

// Log reads the public log of changes (docs/log.md).
type Log interface {
	// Prove returns the proof that the log has a leaf for the change at the given position. It also returns this leaf.
	// The proof is for the newest checkpoint, and contains no evidence. Prove returns ErrNotLogged, ErrNoLeaf or an
	// error with ErrDamagedLog if it has no proof.
	Prove(ctx context.Context, position int64) (proof translog.Proof, leaf []byte, err error)
}

// ErrNotLogged is returned for a change that the newest checkpoint of the log does not
// cover.
var ErrNotLogged = errors.New("the newest checkpoint does not cover this change")

// ErrDamagedLog is wrapped in errors about parts of the log that are missing or do not fit together.
var ErrDamagedLog = errors.New("the public log is damaged")

// ErrNoLeaf is returned for a change that has no leaf, although the log has leaves of later changes. If the
// change is public, the log is damaged.
var ErrNoLeaf = errors.New("the log has later changes, but no leaf of this one")

// WithLog returns a registry on the same store. The method Prove of this registry reads the given log. If the
// argument `log` is nil, the registry has no public log.
func (r *Registry) WithLog(log Log) *Registry {
	logged := *r
	logged.public = log
	return &logged
}

// maxLookBack is the maximum number of changes that Prove reads, from the newest on, to find a public change.
const maxLookBack = 1024

// Prove returns the proof that the public log has a revision of an asset, and the evidence for it (docs/log.md,
// "Proofs"). Revision 0 means the asset's newest public change. In three cases the evidence lacks the salt and
// the asset: the revision is a withdrawal, it was erased, or its commitment includes fields that are hidden now.
//
// Prove returns a fault of kind NotFound if there is no such asset, no such public revision, or no public log. It
// returns a fault of kind Unavailable if the newest checkpoint does not cover the change yet, or if the log is
// damaged, and ErrLarge if the asset has more bytes than the registry may read (Upto).
func (r *Registry) Prove(ctx context.Context, id string, revision int64) (translog.Proof, translog.Evidence, error) {
	if r.public == nil {
		return refuseProof(fault.New(fault.NotFound, fault.URL, "not_found", "Not Found: this registry keeps no public log."))
	}
	log, err := r.publicChange(ctx, id, revision)
	if err != nil {
		return refuseProof(err)
	}
	change := log[0]
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
	if salt == (translog.Salt{}) || !asset.HasGroups(kept.Hidden, r.rules.Hidden) { // the content must not be shown
		return proof, evidence, nil
	}
	if evidence.Asset, err = r.shown(ctx, log, kept.Hidden); err != nil {
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

// notYet returns the fault for a change that is newer than the newest checkpoint.
func notYet() error {
	const text = "The newest checkpoint of the log does not cover this change yet; repeat the request."
	f := fault.New(fault.Unavailable, fault.URL, "revision", text)
	f.RetryAfter = time.Second
	return f
}

// unproved returns the fault for a change that the log cannot prove, because the log differs from the record of
// changes. The operator has to repair this. So the answer tells the client to wait for a long time before the next try.
func unproved() error {
	const text = "The public log is damaged, so this cannot be proved now. The operator of the registry has to repair it."
	f := fault.New(fault.Unavailable, fault.URL, "revision", text)
	f.RetryAfter = time.Hour
	return f
}

// shown returns an asset in the form that the public log commits to. The asset is as it was after the first of the
// given changes (publicChange). Its hidden fields are left out, but it has its dateModified.
func (r *Registry) shown(ctx context.Context, log []Revision, hidden []asset.Group) ([]byte, error) {
	id, position := log[0].ID, log[0].Position
	past, err := r.past(ctx, id, position, log)
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
	if !slices.Equal(hidden, all.hidden) { // other fields were hidden then
		all = publicView(hidden)
	}
	if body, err = all.show(body); err != nil {
		return nil, err
	}
	body = append(bytes.TrimSuffix(body, []byte{'}'}), `,"dateModified":"`...)
	body = asset.AppendTime(body, time.UnixMicro(position), r.rules.Zone)
	return append(body, `"}`...), nil
}

// publicChange returns the change that made a revision of an asset; revision 0 means its newest public change. Some
// changes before it follow, the newest first, because they were read with it. publicChange returns a fault if the
// change does not exist or is not public.
func (r *Registry) publicChange(ctx context.Context, id string, revision int64) ([]Revision, error) {
	if revision == 0 {
		return r.newestPublic(ctx, id)
	}
	log, err := r.revision(ctx, id, revision)
	there := len(log) > 0
	if there && err == nil {
		_, _, there, err = log[0].Leaf()
	}
	if !there && err == nil {
		err = noRevision("the asset has no public revision %d.", revision)
	}
	return log, err
}

func noRevision(format string, args ...any) error {
	return fault.New(fault.NotFound, fault.URL, "revision", "Not Found: "+format, args...)
}

// newestPublic returns the newest public change of an asset, as publicChange does. This is nearly always the newest
// change. For a draft or an asset in test mode, it is an earlier change, or there is none.
func (r *Registry) newestPublic(ctx context.Context, id string) ([]Revision, error) {
	q := LogQuery{Limit: logPage}
	for read := 0; read < maxLookBack; {
		log, err := r.log(ctx, id, q)
		if err != nil {
			return nil, err
		}
		for i, change := range log {
			if _, _, is, err := change.Leaf(); is || err != nil {
				return log[i:], err
			}
		}
		if len(log) < q.Limit {
			return nil, noRevision("the asset has no public revision.")
		}
		read += len(log)
		q = LogQuery{Before: log[len(log)-1].Position, Limit: min(logPage, maxLookBack-read)}
	}
	const text = "none of the newest %d changes of the asset is public; name an older revision."
	return nil, noRevision(text, maxLookBack)
}

// revision returns the change that made a revision of an asset. Some changes before it follow, the newest first. If
// there is no such change, the result is empty. A change at a later position has a higher revision. So revision halves
// the range of positions with each read, until one page has all changes in the range. The search takes at most 58
// reads. For a revision in the newest page it takes one.
func (r *Registry) revision(ctx context.Context, id string, revision int64) ([]Revision, error) {
	log, err := r.log(ctx, id, LogQuery{Limit: logPage})
	if err != nil || len(log) == 0 || log[0].Revision < revision {
		return nil, err
	}
	low, high := int64(0), log[len(log)-1] // an older change is after the position low, and before high.Position
	for high.Revision-revision > logPage && high.Position-low > 1 {
		middle := low + (high.Position-low)/2
		found, err := r.log(ctx, id, LogQuery{Before: middle + 1, Limit: 1})
		switch {
		case err != nil:
			return nil, err
		case len(found) == 0 || found[0].Revision < revision:
			low = middle
		default:
			high, log = found[0], found
		}
	}
	if high.Revision > revision {
		if log, err = r.log(ctx, id, LogQuery{Before: high.Position, Limit: logPage}); err != nil {
			return nil, err
		}
	}
	for i, change := range log {
		if change.Revision == revision {
			return log[i:], nil
		}
	}
	return nil, nil
}

// LogVersion is a version of the API. The public log commits to assets as this version shows them (docs/log.md,
// "Commitment").
const LogVersion asset.Version = "2.5"

// leaf is the part of a change that the public log needs. A nil leaf means that the change is not public.
type leaf struct {
	Kind       translog.Kind       `json:"kind"`
	Commitment translog.Commitment `json:"commitment,omitzero"` // zero for a Withdraw
	Salt       translog.Salt       `json:"salt,omitzero"`       // zero for a Withdraw
	Hidden     []asset.Group       `json:"hidden,omitempty"`    // groups of fields that the commitment leaves out
}

// shownTo says how everybody sees assets: in the version of the log, and without the fields of some groups.
type shownTo struct {
	view   *asset.View
	hidden []asset.Group
}

func publicView(hidden []asset.Group) shownTo {
	return shownTo{asset.NewView(LogVersion, hidden...), hidden}
}

// isPublic reports whether the public log has the changes of an asset: the asset is listed, and not in test mode.
func (r Record) isPublic() bool { return r.Listed && !r.Test }

// newLeaf returns the leaf of a change. The record `r` is the asset after the change. The argument `was` says
// whether the asset was public before the change.
func newLeaf(all shownTo, was bool, r Record) (*leaf, error) {
	switch {
	case was && !r.isPublic():
		return &leaf{Kind: translog.Withdraw}, nil
	case was:
		return all.commit(translog.Change, r.Body)
	case r.isPublic():
		return all.commit(translog.Publish, r.Body)
	default:
		return nil, nil
	}
}

// commit returns a leaf that commits to an asset with a new salt.
func (all shownTo) commit(kind translog.Kind, body []byte) (*leaf, error) {
	body, err := all.show(body)
	if err != nil {
		return nil, err
	}
	l := &leaf{Kind: kind, Salt: translog.NewSalt(), Hidden: all.hidden}
	if l.Commitment, err = translog.Commit(l.Salt, body); err != nil {
		return nil, fmt.Errorf("commit to asset: %w", err)
	}
	return l, nil
}

// show returns a stored asset in the form that everybody sees, without its dateModified.
func (all shownTo) show(body []byte) ([]byte, error) {
	if !all.view.MayHide(body) {
		return body, nil
	}
	members, err := all.view.AppendMembers(nil, body, func(string) bool { return true })
	if err != nil || len(members) == 0 {
		return nil, fmt.Errorf("show asset to the log: %w", err)
	}
	members[0] = '{' // replaces the comma before the first member
	return append(members, '}'), nil
}

// Leaf returns the leaf of a change in the public log, and the salt of its commitment. The result `public` is false
// if the log does not have the change.
func (r Revision) Leaf() (l translog.Leaf, salt translog.Salt, public bool, err error) {
	kept, err := r.leaf()
	if err != nil {
		return l, salt, false, fmt.Errorf("decode the leaf of revision %d of asset %s: %w", r.Revision, r.ID, err)
	}
	if kept == nil {
		return l, salt, false, nil
	}
	l, err = kept.entry(r)
	return l, kept.Salt, true, err
}

// entry returns the leaf in the form of the public log.
func (l *leaf) entry(of Revision) (translog.Leaf, error) {
	entry := translog.Leaf{
		Position: of.Position, Asset: of.ID, Revision: of.Revision, Kind: l.Kind, Commitment: l.Commitment,
	}
	return entry, entry.Check()
}

// leaf returns the part of a change that the public log needs.
func (r Revision) leaf() (*leaf, error) {
	if len(r.Change) == 0 {
		return nil, nil
	}
	c, err := r.read()
	return c.Leaf, err
}
