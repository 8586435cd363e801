package index

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"asset-registry/searchsvc/internal/meaning"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fault"
	"asset-registry/shared/ukrainian"
)

// errLate is returned for a search that takes too long.
var errLate = fault.New(fault.Unavailable, fault.URL, "search", "The search takes too long; use fewer or rarer words.")

// visitsAByte is the number of found assets that can be ordered, or counted for a facet, in the time in which a byte of
// JSON is decoded.
const visitsAByte = 2

// search answers a question from the view, on the goroutine of the caller, whose turn is for one processor. If the
// question finds nothing as it is written, it tries other words.
func (v *view) search(ctx context.Context, q search.Query, synonyms *meaning.Synonyms) (search.Result, error) {
	var reading search.Reading
	if q.After != nil {
		reading = q.After.Reading
	}
	p := newPlan(q, reading)
	result := search.Result{Position: v.position, Reading: reading}
	matches, total, err := v.match(ctx, &p)
	if err != nil {
		return search.Result{}, orLate(err)
	}
	if total == 0 && q.Text != "" && !q.Exact && q.After == nil {
		words := &vocabulary{view: v, left: mostWork}
		err := v.again(ctx, &p, &matches, &total, synonyms, words)
		result.Work = words.work
		if err != nil {
			return search.Result{Work: result.Work}, orLate(err)
		}
		result.Reading = p.reading
	}
	result.Work += total * int64(1+len(q.Facets)) / visitsAByte
	if total == 0 && q.Text != "" {
		result.NotFound = v.notFound(q.Text)
	}
	result.Total = total
	if result.Facets, err = v.facets(ctx, &p, matches); err == nil {
		err = v.page(ctx, &p, matches, &result)
	}
	return result, orLate(err)
}

// match finds the assets of a plan in all segments.
func (v *view) match(ctx context.Context, p *plan) (matches []match, total int64, err error) {
	matches = make([]match, len(v.parts))
	for i := range v.parts {
		if matches[i], err = v.parts[i].match(ctx, p); err != nil {
			return nil, 0, err
		}
		total += int64(matches[i].found.GetCardinality())
	}
	return matches, total, nil
}

// The method `again` is for a plan that finds nothing: it tries other words. The first try that finds something
// replaces the plan and its result.
func (v *view) again(
	ctx context.Context, p *plan, matches *[]match, total *int64, synonyms *meaning.Synonyms, words *vocabulary,
) error {
	last, _, err := meaning.Read(p.Text, synonyms, words, func(r search.Reading) (bool, error) {
		tried := newPlan(p.Query, r)
		if !words.spend(v.cost(&tried)) {
			return false, nil
		}
		found, count, err := v.match(ctx, &tried)
		if err == nil && count > 0 {
			*p, *matches, *total = tried, found, count
		}
		return count > 0, err
	})
	if last.Has(search.Stopped) {
		p.reading = last
	}
	return errors.Join(err, words.err)
}

// notFound returns those words of a question that no asset has.
func (v *view) notFound(text string) (all []string) {
	words := &vocabulary{view: v, left: mostWork}
	for _, a := range ukrainian.Ask(text) {
		if !a.IsIn(words.Has) {
			all = append(all, a.Text)
		}
	}
	return all
}

// page adds to a result the hits of the page, and the cursors of the next and the previous page.
func (v *view) page(ctx context.Context, q *plan, matches []match, result *search.Result) error {
	if q.Limit == 0 {
		return nil
	}
	best, before, err := v.rank(ctx, q, matches)
	if err != nil {
		return err
	}
	result.Before = before
	if before > 0 {
		result.Prev = q.pageBefore(best)
	}
	if n := len(best); n > 0 && before+int64(n) < result.Total {
		result.Next = best[n-1].cursor(q)
	}
	for _, place := range best {
		hit, err := place.hit()
		if err != nil {
			return err
		}
		result.Hits = append(result.Hits, hit)
	}
	return nil
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
		case pictureField:
			hit.Picture = string(value)
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
