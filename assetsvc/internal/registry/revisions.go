package registry

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// maxPatch is the most bytes of a kept patch. MaxLog patches of this size are
// smaller than the largest asset.
const maxPatch = 32 << 10

// Change describes a change of an asset.
type Change struct {
	Revision int64
	Position int64 // the asset's dateModified
	By       Author
	Patch    record.List // JSON Patch from the revision before, or from nothing; nil: too large to keep
	Size     int         // bytes of the patch
}

// Author is who made a change.
type Author struct {
	Broker string     `json:"broker"` // broker, or another holder of a key
	KeyID  string     `json:"key"`    // public name of the key
	Role   asset.Role `json:"role"`   // role of the author for the asset
}

// change is a Change as a Store keeps it.
type change struct {
	By    Author          `json:"by"`
	Patch json.RawMessage `json:"patch,omitempty"`
	Size  int             `json:"size"`
}

// encodeChange returns the Change of a Record for a change from before to after. A
// nil before means a creation.
func (p *packer) encodeChange(by Author, before, after record.Value) ([]byte, error) {
	operations := record.Patch(before, after)
	if before == nil {
		operations = record.List{record.Object{
			{Name: "op", Value: "add"}, {Name: "path", Value: ""}, {Name: "value", Value: after},
		}}
	}
	patch := record.Append(nil, operations)
	c := change{By: by, Patch: patch, Size: len(patch)}
	if len(patch) > maxPatch {
		c.Patch = nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode change: %w", err)
	}
	if len(text) > small {
		return p.deflate(text)
	}
	return text, nil
}

// The first byte of a kept change. It is the first byte of plain JSON, or a mark
// before compressed JSON (RFC 1951). Creations are usually compressed, because they
// have the whole asset.
const (
	plain      = '{'
	compressed = 'z'
)

// small is the most bytes of a change that is not compressed.
const small = 512

// packer compresses changes. It reuses the memory of its compressors.
type packer struct{ idle sync.Pool }

func (p *packer) deflate(text []byte) ([]byte, error) {
	packed := bytes.NewBuffer([]byte{compressed})
	w, ok := p.idle.Get().(*flate.Writer)
	if ok {
		w.Reset(packed)
	} else {
		var err error
		if w, err = flate.NewWriter(packed, flate.DefaultCompression); err != nil {
			return nil, fmt.Errorf("compress change: %w", err)
		}
	}
	defer p.idle.Put(w)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("compress change: %w", err)
	}
	return packed.Bytes(), nil
}

func inflate(kept []byte) ([]byte, error) {
	switch {
	case len(kept) > 0 && kept[0] == plain:
		return kept, nil
	case len(kept) > 0 && kept[0] == compressed:
		return io.ReadAll(flate.NewReader(bytes.NewReader(kept[1:])))
	default:
		return nil, errors.New("the change has an unknown encoding")
	}
}

func (r Revision) decode() (Change, error) {
	text, err := inflate(r.Change)
	if err != nil {
		return Change{}, err
	}
	var c change
	if err := json.Unmarshal(text, &c); err != nil {
		return Change{}, err
	}
	decoded := Change{Revision: r.Revision, Position: r.Position, By: c.By, Size: c.Size}
	if c.Patch == nil {
		return decoded, nil
	}
	decoded.Patch, err = record.ParsePatch(c.Patch)
	return decoded, err
}

// Revisions returns up to limit changes of an asset, the newest first, from below
// the position before; 0 starts at the newest. Only the owner and the administrator
// may read them (docs/contract.md, "Revisions").
func (r *Registry) Revisions(
	ctx context.Context, by identity.Identity, id, token string, before int64, limit int,
) ([]Change, error) {
	stored, err := r.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	a, err := decode(stored)
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
	log, err := r.store.Log(ctx, id)
	if err != nil {
		return nil, unavailable("read changes of asset "+id, err)
	}
	changes := make([]Change, 0, min(limit, len(log)))
	for _, revision := range log {
		if len(changes) == limit {
			break
		}
		if before > 0 && revision.Position >= before {
			continue
		}
		c, err := revision.decode()
		if err != nil {
			return nil, fmt.Errorf("decode revision %d of asset %s: %w", revision.Revision, id, err)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// Guard tells from the position of an asset whether the asset is still as the client
// has seen it (docs/contract.md, "Conditional requests"). A nil Guard accepts any.
type Guard func(position int64) bool

// check returns a fault of kind Precondition if the asset has changed. Refusal is
// the result of the rules. If the caller may not change the asset at all, or the part
// is missing, check returns refusal instead (RFC 9110, 13.2.1).
func (g Guard) check(stored Record, refusal error) error {
	if g == nil || g(stored.Position) || refusal != nil && fault.KindOf(refusal) != fault.Invalid {
		return refusal
	}
	return PreconditionFailed()
}

// PreconditionFailed returns the fault of a request whose conditions do not hold.
func PreconditionFailed() error {
	return fault.New(fault.Precondition, fault.URL, "precondition", "Precondition Failed")
}
