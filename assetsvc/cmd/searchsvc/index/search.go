package index

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"asset-registry/assetsvc/cmd/searchsvc/search"
	"asset-registry/shared/fault"
)

// errLate is returned for a search that takes too long.
var errLate = fault.New(fault.Unavailable, fault.URL, "search", "The search takes too long; use fewer or rarer words.")

// search answers a question from the view.
func (v *view) search(ctx context.Context, q search.Query) (search.Result, error) {
	p := newPlan(q)
	result := search.Result{Position: v.position}
	var matches []match
	for i := range v.parts {
		if ctx.Err() != nil {
			return search.Result{}, errLate
		}
		m, err := v.parts[i].match(ctx, &p)
		if err != nil {
			return search.Result{}, orLate(err)
		}
		result.Total += int64(m.found.GetCardinality())
		matches = append(matches, m)
	}
	best, err := v.rank(ctx, &p, matches)
	if err != nil {
		return search.Result{}, orLate(err)
	}
	if len(best) > q.Limit && q.Limit > 0 { // rank returns one more, if there is one
		best = best[:q.Limit]
		result.Next = best[len(best)-1].cursor(q.Sort)
	}
	for _, place := range best {
		hit, err := place.hit()
		if err != nil {
			return search.Result{}, err
		}
		result.Hits = append(result.Hits, hit)
	}
	result.Facets, err = v.facets(ctx, &p, matches)
	return result, orLate(err)
}

func orLate(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return errLate
	}
	return err
}

// hit reads the text of a hit.
func (p place) hit() (search.Hit, error) {
	var hit search.Hit
	err := p.segment.VisitStoredFields(uint64(p.number), func(field string, _ byte, value []byte, _ []uint64) bool {
		switch field {
		case idField:
			hit.ID = string(value)
		case hitField:
			hit.Asset = slices.Clone(value)
		}
		return true
	})
	if err == nil && (hit.ID == "" || len(hit.Asset) == 0) {
		err = errors.New("the text of the hit is missing")
	}
	if err != nil {
		return hit, fmt.Errorf("read a hit: %w", err)
	}
	return hit, nil
}
