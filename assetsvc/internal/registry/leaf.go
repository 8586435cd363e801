package registry

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/translog"
)

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

// leaf returns the part of a change that the public log needs. It decodes only this part, because the log reads every
// change.
func (r Revision) leaf() (l *leaf, err error) {
	if len(r.Change) == 0 {
		return nil, nil
	}
	err = unpack(r.Change, func(text io.Reader) error {
		d := jsontext.NewDecoder(text)
		if _, err := d.ReadToken(); err != nil { // the opening brace
			return err
		}
		for d.PeekKind() == jsontext.KindString {
			name, err := d.ReadToken()
			if err != nil {
				return err
			}
			if name.String() == "leaf" {
				value, err := d.ReadValue()
				if err != nil {
					return err
				}
				return json.Unmarshal(value, &l)
			}
			if err := d.SkipValue(); err != nil {
				return err
			}
		}
		_, err := d.ReadToken() // the closing brace
		return err
	})
	return l, err
}
