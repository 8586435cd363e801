package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	return v.searchWith(ctx, q, synonyms, &vocabulary{view: v, left: mostWork})
}

// searchWith does what search does. It spends the work of the given vocabulary.
func (v *view) searchWith(
	ctx context.Context, q search.Query, synonyms *meaning.Synonyms, words *vocabulary,
) (search.Result, error) {
	var reading search.Reading
	if q.After != nil {
		reading = q.After.Reading
	}
	p := newPlan(q, reading)
	result := search.Result{Position: v.position, Reading: reading, Range: p.within}
	matches, total, err := v.match(ctx, &p)
	if err != nil {
		return search.Result{}, orLate(err)
	}
	if total == 0 && p.Text != "" && !q.Exact && q.After == nil {
		err := v.again(ctx, q, &p, &matches, &total, synonyms, words)
		result.Work = words.work
		if err != nil {
			return search.Result{Work: result.Work}, orLate(err)
		}
		result.Reading = p.reading
	} else if q.Also && q.After == nil && !q.Exact {
		if result.Reading, err = v.also(ctx, q, &p, &matches, &total, synonyms, words); err != nil {
			return search.Result{}, orLate(err)
		}
	}
	result.Work += total * int64(1+len(q.Facets)) / visitsAByte
	if total == 0 && p.Text != "" {
		result.NotFound = v.notFound(p.Text)
	}
	if result.Total = total; total == 0 && q.Others {
		if result.Others, err = v.others(ctx, q, synonyms, words); err != nil {
			return result, orLate(err)
		}
	}
	if result.Facets, err = v.facets(ctx, &p, matches); err == nil {
		err = v.page(ctx, &p, matches, &result)
	}
	return result, orLate(err)
}

// match finds the assets of a plan in all segments.
func (v *view) match(ctx context.Context, p *plan) (matches []match, total int64, err error) {
	if p.literal != nil && p.literal.matches == nil {
		if p.literal.matches, _, err = v.match(ctx, p.literal); err != nil {
			return nil, 0, err
		}
	}
	matches = make([]match, len(v.parts))
	for i := range v.parts {
		if matches[i], err = v.parts[i].match(ctx, p); err != nil {
			return nil, 0, err
		}
		if p.literal != nil {
			matches[i].join(&p.literal.matches[i])
		}
		total += int64(matches[i].found.GetCardinality())
	}
	return matches, total, nil
}

// The method `again` is for a plan that finds nothing: it tries other words. The first try that finds something
// replaces the plan and its result.
func (v *view) again(
	ctx context.Context, q search.Query, p *plan, matches *[]match, total *int64, synonyms *meaning.Synonyms,
	words *vocabulary,
) error {
	last, _, err := meaning.Read(p.Text, synonyms, words, func(r search.Reading) (bool, error) {
		tried := newPlan(q, r)
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

// The method `also` is for a plan that finds something: if assets have words of the same meaning, it replaces the plan
// and its result by those that find these assets, too.
func (v *view) also(
	ctx context.Context, q search.Query, p *plan, matches *[]match, total *int64, synonyms *meaning.Synonyms,
	words *vocabulary,
) (search.Reading, error) {
	r := meaning.Also(p.Text, synonyms, words)
	if wide := newPlan(q, r); r.Has(search.ByAlso) && words.spend(v.cost(&wide)) {
		wide.literal.matches = *matches
		found, count, err := v.match(ctx, &wide)
		if err == nil && count > *total {
			*p, *matches, *total = wide, found, count
		}
		return p.reading, errors.Join(err, words.err)
	}
	if words.IsSpent() {
		return search.Reading{Steps: []search.Step{search.Stopped}, Words: r.Words}, words.err
	}
	return p.reading, words.err
}

// mostOthers is the largest number of words that v.others leaves out, one at a time.
const mostOthers = 6

// others returns other questions that find something: the same one, if it was exact, and this question without one of
// its words. It spends the work that is left of the question's second tries.
func (v *view) others(
	ctx context.Context, q search.Query, synonyms *meaning.Synonyms, words *vocabulary,
) (all []search.Query, err error) {
	q.After, q.Others = nil, false
	if q.Exact {
		free := q
		free.Exact = false
		if found, err := v.searchWith(ctx, free, synonyms, words); err != nil {
			return nil, err
		} else if found.Total > 0 {
			all = append(all, free)
		}
	}
	s := v.suggester(q, words)
	filtered, err := s.before(ctx, "")
	texts := strings.Fields(q.Text)
	for i := 0; i < min(len(texts), mostOthers) && len(texts) > 1 && filtered != nil && err == nil; i++ {
		without, isGood := q, false
		without.Text = strings.Join(slices.Delete(slices.Clone(texts), i, i+1), " ")
		if isGood, err = s.finds(ctx, without.Text, filtered); isGood {
			all = append(all, without)
		}
	}
	return all, err
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
			id, all, _ := strings.Cut(string(value), " ")
			hit.Picture = id
			hit.Pictures, _ = strconv.Atoi(all) // the index has written it
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
