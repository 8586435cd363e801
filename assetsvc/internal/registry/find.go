package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"asset-registry/assetsvc/internal/asset"
	"asset-registry/shared/fault"
	"asset-registry/shared/identity"
)

// Sought names an asset in one of three ways: by its id, by its number, or by a broker's own reference.
type Sought struct{ ID, Number, Broker, Reference string }

// Find returns an asset with its id, number, title, status, owner and mode. Only administrators may call it. If no
// asset is found, the error is a fault of kind NotFound.
func (r *Registry) Find(ctx context.Context, by identity.Identity, s Sought) (asset.Asset, Record, error) {
	if by.Role != identity.Administrator {
		return asset.Asset{}, Record{}, forbidden("only administrators may find assets")
	}
	id, err := s.ID, error(nil)
	switch {
	case s.Number != "":
		id, err = r.numbered(ctx, s.Number)
	case s.Reference != "":
		if id, err = r.store.ClaimReference(ctx, ReferenceKey(s.Broker, s.Reference), "", ""); err != nil {
			err = Unavailable("find a reference", err)
		}
	}
	if err != nil {
		return asset.Asset{}, Record{}, err
	}
	return r.Upto(AnySize).look(ctx, id, asset.Selection{})
}

// The bounds of a search by number. Creations within a time of `untidy` may have numbers in another order.
const (
	probe      = 100     // changes that one step of the search reads
	probeBytes = 1 << 20 // bytes of these changes; the first one may have more
	maxProbes  = 300     // steps
	untidy     = 20 * 1_000_000
	dayMicros  = 24 * 3600 * 1_000_000
)

var assetNumber = regexp.MustCompile(`^UA-AR-DGF-(\d{4}-\d{2}-\d{2})-(\d{6,9})$`)

// number is the number of an asset: the day of its creation, and its place among those of the day.
type number struct {
	day string
	n   int
}

func parseNumber(text string) (number, bool) {
	parts := assetNumber.FindStringSubmatch(text)
	if parts == nil {
		return number{}, false
	}
	n, err := strconv.Atoi(parts[2])
	return number{parts[1], n}, err == nil
}

func (a number) before(b number) bool {
	return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.n, b.n)) < 0
}

// numbered returns the id of the asset with a number. The stores have no index of numbers. But numbers grow with the
// positions of creations, so a few steps through the record of changes lead to the creation. If the clock was wrong
// by more than a day, numbered does not find the asset.
func (r *Registry) numbered(ctx context.Context, text string) (id string, err error) {
	wanted, ok := parseNumber(text)
	begin, bad := time.ParseInLocation(time.DateOnly, wanted.day, r.rules.Zone)
	if !ok || bad != nil {
		return "", missing()
	}
	// The creation is between low and high. Above top, the first creation has a higher number.
	low, high := begin.UnixMicro()-dayMicros, begin.UnixMicro()+2*dayMicros
	top := high
	for range maxProbes {
		after, narrow := low, top-low > 2*untidy
		if narrow {
			after = low + (top-low)/2
		}
		page, err := r.store.Changes(ctx, ChangesQuery{After: after, Limit: probe, Bytes: probeBytes})
		if err != nil {
			return "", Unavailable("find a number", err)
		}
		var first Revision
		var its number
		for _, change := range page.Changes {
			is, err := r.numberOf(ctx, change)
			if err != nil {
				return "", err
			}
			if is == wanted {
				return change.ID, nil
			}
			if first.ID == "" && is.day != "" {
				first, its = change, is
			}
		}
		last := len(page.Changes) - 1
		switch {
		case narrow && first.ID != "" && its.before(wanted):
			low = first.Position - untidy
		case narrow && first.ID != "":
			top, high = after, min(high, first.Position+untidy)
		case narrow && page.More: // many changes and no creation: search from the lower end
			top = low
		case narrow:
			top = after
		case !page.More || page.Changes[last].Position > high:
			return "", missing()
		default:
			low, top = page.Changes[last].Position, 0
		}
	}
	return "", fault.New(fault.Unavailable, fault.Query, "number",
		"There were too many changes on that day for a search by number. Find the asset by its id.")
}

// numberOf returns the number of an asset from its creation. It is zero for another change, and for a removed asset.
func (r *Registry) numberOf(ctx context.Context, creation Revision) (number, error) {
	if creation.Before != 0 {
		return number{}, nil
	}
	c, err := creation.read()
	if err != nil {
		return number{}, err
	}
	var patch []struct{ Value struct{ AssetID string } }
	if c.Patch != nil && json.Unmarshal(c.Patch, &patch) == nil && len(patch) == 1 {
		is, _ := parseNumber(patch[0].Value.AssetID)
		return is, nil
	}
	a, _, err := r.Upto(AnySize).look(ctx, creation.ID, asset.Selection{}) // the record has no content of the creation
	if fault.KindOf(err) == fault.NotFound {
		return number{}, nil
	}
	is, _ := parseNumber(a.AssetID())
	return is, err
}
