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

// maxPatch bounds the bytes of a patch that is kept, so that a hundred of the
// largest weigh less than the largest asset.
const maxPatch = 32 << 10

// Change is what is known of a change of an asset.
type Change struct {
	Revision int64
	Position int64 // when; the asset's dateModified
	By       Author
	Patch    record.List // a JSON Patch from the revision before, or from nothing; nil when it was too large to keep
	Size     int         // of the patch, in bytes
}

// Author is who made a change.
type Author struct {
	Broker string     `json:"broker"` // or other holder of a key
	KeyID  string     `json:"key"`    // names the key without giving it away
	Role   asset.Role `json:"role"`   // in which the change was made
}

// change is a Change as a Store keeps it.
type change struct {
	By    Author          `json:"by"`
	Patch json.RawMessage `json:"patch,omitempty"`
	Size  int             `json:"size"`
}

// encodeChange returns what is kept of a change from before, nil for nothing,
// to after.
func (p *packer) encodeChange(by Author, before, after record.Value) ([]byte, error) {
	operations := record.Patch(before, after)
	if before == nil {
		operations = record.List{record.Object{{Name: "op", Value: "add"}, {Name: "path", Value: ""}, {Name: "value", Value: after}}}
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

// A change that is kept begins with one of these: plain JSON's first byte, or
// that of what is compressed (RFC 1951). Above all it is creations that are,
// which hold the whole asset.
const (
	plain      = '{'
	compressed = 'z'
)

// small is up to how many bytes nothing is compressed.
const small = 512

// packer compresses, with memory that is used again.
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
		return nil, errors.New("the change is of no form that is known")
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

// Revisions returns up to limit changes of an asset before a position, 0 for
// the newest, the newest first. They are for its owner and the administrator.
func (r *Registry) Revisions(ctx context.Context, by identity.Identity, id, token string, before int64, limit int) ([]Change, error) {
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

// Guard tells whether an asset that stands at a position is still the one that
// a client has seen. A nil Guard lets any through.
type Guard func(position int64) bool

// check returns a fault of kind Precondition for an asset that is another by
// now. Who may not change it in any case, or something that is not there, hears
// of that instead (RFC 9110, 13.2.1): refusal is what the rules have said.
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
